package baseline

import (
	"cmp"
	"slices"
	"time"

	"atoll/gossip/wire"
)

// Registry decides who makes rounds together: it is the coordinator without its clock
// and its network. It takes reports with the time and says what to answer whom.
//
// A view is a fixed set of members from some state on. It ends when a member cannot go
// on (another one died or cannot be reached), or after a round, when somebody waits to
// take part. Then all members report the state that they hold, and the next view begins
// with the newest. A member makes a round only with the contributions of all members of
// its view. So they are never more than one round apart, and a round that only some of
// them made counts.
type Registry struct {
	cfg   Rules
	nodes map[wire.PeerID]*entry

	view    View      // the newest; its Number is 0 before the first
	views   []View    // all of them: that with the number n is views[n-1]
	began   time.Time // first report of all
	outAt   time.Time // when the first member of the view was out; zero while it runs
	changed time.Time // the last time that somebody came or went
	calmTo  time.Time // nobody is let in before
	stop    bool      // the view ends after the round that is under way
	end     *Label
	answers []Answer
}

// Rules are what a registry is told.
type Rules struct {
	Expect  int           // members of the first view
	Budget  uint64        // tokens after which a state is the run's model
	Start   time.Duration // how long the first view waits for them
	Grace   time.Duration // how long a view that ended waits for a member that does not report
	Settle  time.Duration // how long members may take to connect to each other
	Standby time.Duration // how long a report stands: members that wait report again before
}

// Answer is what is to be said to the member that asked.
type Answer struct {
	Ask   uint64 // as given with the report
	Order Order
}

// Span is what one view did in the history of the newest state.
type Span struct {
	Number      uint64
	Members     []wire.PeerID
	First, Last Label // states: its own rounds are between
}

// entry is a node as the registry knows it.
type entry struct {
	addr      string
	in        uint64 // the newest view that it has said it knows
	invited   uint64 // the view that it was made a member of
	waits     bool   // reported that it is ready, for the view after said.In
	said      Report
	at        time.Time // when it last reported
	ready     uint64    // the question to answer with a view, 0 = none
	watch     uint64    // the question to answer with a stop, 0 = none
	connected map[wire.PeerID]bool
}

// NewRegistry is a registry that nobody has reported to.
func NewRegistry(r Rules) *Registry {
	return &Registry{cfg: r, nodes: map[wire.PeerID]*entry{}}
}

// Take returns what is to be answered since the last call.
func (r *Registry) Take() []Answer {
	out := r.answers
	r.answers = nil
	return out
}

// View is the newest view, with the number 0 before the first.
func (r *Registry) View() View { return r.view }

// End is the state of the run's model, nil before the end.
func (r *Registry) End() *Label { return r.end }

// History has the views whose rounds are in the state that the newest view began with,
// oldest first. Once the run has ended it is the state of the model. What other views did
// is lost.
func (r *Registry) History() (out []Span) {
	at := r.view.From
	if r.end != nil {
		at = *r.end
	}
	for at.View > 0 { // falls: a view begins with a state of an earlier one
		v := r.views[at.View-1]
		out = append(out, Span{v.Number, v.Members, v.From, at})
		at = v.From
	}
	slices.Reverse(out)
	return out
}

// Report takes what a node says. It is answered by Take, now or later; ask is not 0.
func (r *Registry) Report(now time.Time, from wire.PeerID, said Report, ask uint64) {
	s := r.nodes[from]
	if s != nil && said.Op == opReady && (said.In < s.in || said.Label.before(s.said.Label)) {
		r.Gone(now, from) // another process, which knows nothing of what this node was told
		s = nil
	}
	if s == nil {
		if len(r.nodes) >= MaxMembers {
			r.answer(ask, Order{})
			return
		}
		s = &entry{}
		r.nodes[from] = s
		r.changed = now
		r.news(from)
	}
	if r.began.IsZero() {
		r.began = now
	}
	s.at = now
	switch {
	case said.In > r.view.Number || said.Label.View > r.view.Number:
		r.answer(ask, Order{}) // of a run that this registry does not know
	case said.Op == opWatch && (said.In != r.view.Number || r.stop || r.end != nil):
		r.answer(ask, Order{Stop: true})
	case said.Op == opWatch:
		r.replace(&s.watch, ask)
	default:
		r.ready(now, from, s, said, ask)
	}
	if said.In <= r.view.Number {
		s.in = said.In
	}
	r.decide(now)
}

func (r *Registry) ready(now time.Time, from wire.PeerID, s *entry, said Report, ask uint64) {
	if r.end == nil && r.isIn(s) && said.In < r.view.Number {
		view := r.view
		r.answer(ask, Order{View: &view}) // it was told between two reports
		return
	}
	s.addr, s.said, s.waits = said.Addr, said, true
	s.connected = map[wire.PeerID]bool{}
	for _, id := range said.Connected {
		s.connected[id] = true
	}
	if r.end != nil {
		r.answer(ask, Order{End: r.end})
		return
	}
	if r.outAt.IsZero() && r.outOf(s) {
		r.outAt = now
		r.stopWatchers()
	}
	r.replace(&s.ready, ask)
	for _, p := range r.peerList(from) {
		if !s.connected[p.ID] {
			r.flush(from, s) // it has somebody to dial first
			return
		}
	}
}

// isIn says whether a process was made a member of the newest view. One that was started
// on the folder of a member that died was not.
func (r *Registry) isIn(s *entry) bool { return r.view.Number > 0 && s.invited == r.view.Number }

// outOf says whether a member of the newest view has said that it is not in it any more.
func (r *Registry) outOf(s *entry) bool { return r.isIn(s) && s.waits && s.said.In == r.view.Number }

// Gone takes that a node has no connection any more: its process is gone, or cut off.
func (r *Registry) Gone(now time.Time, id wire.PeerID) {
	s := r.nodes[id]
	if s == nil {
		return
	}
	r.flush(id, s)
	r.replace(&s.watch, 0)
	delete(r.nodes, id)
	r.changed = now
	if r.isIn(s) && r.outAt.IsZero() {
		r.outAt, r.stop = now, true
		r.stopWatchers()
	}
	r.decide(now)
}

// Tick takes that time has passed.
func (r *Registry) Tick(now time.Time) { r.decide(now) }

// Renew answers questions that have waited long with the peer list: a member asks
// again, with fresh news.
func (r *Registry) Renew(now time.Time) {
	for _, id := range r.ids() {
		if s := r.nodes[id]; now.Sub(s.at) >= r.cfg.Standby/2 {
			r.flush(id, s)
			r.replace(&s.watch, 0)
		}
	}
}

// flush answers a member that waits for a view with the peer list.
func (r *Registry) flush(id wire.PeerID, s *entry) {
	if s.ready != 0 {
		r.answer(s.ready, Order{PeerList: r.peerList(id)})
		s.ready = 0
	}
}

// news lets everybody that waits know of a new node.
func (r *Registry) news(of wire.PeerID) {
	for _, id := range r.ids() {
		if id != of {
			r.flush(id, r.nodes[id])
		}
	}
}

// replace puts another question in the place of one that waits.
func (r *Registry) replace(waiting *uint64, ask uint64) {
	if *waiting != 0 {
		r.answer(*waiting, Order{})
	}
	*waiting = ask
}

func (r *Registry) answer(ask uint64, o Order) { r.answers = append(r.answers, Answer{ask, o}) }

// ids names all nodes, sorted: decisions must not depend on the order of a map.
func (r *Registry) ids() []wire.PeerID {
	var out []wire.PeerID
	for id := range r.nodes {
		out = append(out, id)
	}
	slices.SortFunc(out, wire.PeerID.Compare)
	return out
}

func (r *Registry) peerList(but wire.PeerID) (out []Place) {
	for _, id := range r.ids() {
		if s := r.nodes[id]; id != but && s.addr != "" {
			out = append(out, Place{id, s.addr})
		}
	}
	return out
}

// candidates are those that wait for a view and have said so recently.
func (r *Registry) candidates(now time.Time) (out []wire.PeerID) {
	for _, id := range r.ids() {
		s := r.nodes[id]
		if s.waits && now.Sub(s.at) < r.cfg.Standby && (!r.isIn(s) || r.outOf(s)) {
			out = append(out, id)
		}
	}
	return out
}

// stragglers are the members of the view that are there and have not said that they are
// out of it.
func (r *Registry) stragglers() int {
	n := 0
	for _, id := range r.view.Members {
		if s := r.nodes[id]; s != nil && r.isIn(s) && !r.outOf(s) {
			n++
		}
	}
	return n
}

func (r *Registry) linked(a, b wire.PeerID) bool {
	return r.nodes[a].connected[b] && r.nodes[b].connected[a]
}

// decide begins a view, ends one, or does nothing.
func (r *Registry) decide(now time.Time) {
	ready := r.candidates(now)
	switch {
	case r.end != nil || len(ready) == 0:
	case r.view.Number > 0 && r.outAt.IsZero():
		r.letIn(now, ready)
	case r.mayForm(now, ready):
		r.form(now, ready)
	}
}

// letIn ends a running view after its round if somebody waits who can reach all of its
// members.
func (r *Registry) letIn(now time.Time, ready []wire.PeerID) {
	if r.stop || now.Before(r.calmTo) {
		return
	}
	for _, id := range ready {
		reaches := true
		for _, m := range r.view.Members {
			reaches = reaches && r.nodes[id].connected[m]
		}
		if reaches {
			r.stop = true
			r.stopWatchers()
			return
		}
	}
}

func (r *Registry) stopWatchers() {
	for _, id := range r.ids() {
		if s := r.nodes[id]; s.watch != 0 {
			r.answer(s.watch, Order{Stop: true})
			s.watch = 0
		}
	}
}

// mayForm says whether it is time for the next view: everybody that is expected has
// reported and is connected to all others, or the time for it is over.
func (r *Registry) mayForm(now time.Time, ready []wire.PeerID) bool {
	if r.view.Number == 0 {
		if now.Sub(r.began) >= r.cfg.Start {
			return true
		}
		return len(ready) >= r.cfg.Expect && (r.allLinked(ready) || now.Sub(r.changed) >= r.cfg.Settle)
	}
	if r.stragglers() == 0 {
		return r.allLinked(ready) || now.Sub(r.outAt) >= r.cfg.Settle
	}
	return now.Sub(r.outAt) >= r.cfg.Grace
}

func (r *Registry) allLinked(ids []wire.PeerID) bool {
	for i, a := range ids {
		for _, b := range ids[:i] {
			if !r.linked(a, b) {
				return false
			}
		}
	}
	return true
}

// form begins the next view with the best of those that are ready, or ends the run.
func (r *Registry) form(now time.Time, ready []wire.PeerID) {
	group := r.best(ready)
	v := View{Number: r.view.Number + 1, Members: group}
	for i, id := range group {
		if l := r.nodes[id].said.Label; i == 0 || v.From.before(l) {
			v.From, v.Source = l, id
		}
	}
	for _, id := range group {
		if r.nodes[id].said.Label != v.From {
			v.Lacking = append(v.Lacking, id)
		}
	}
	if v.From.Tokens >= r.cfg.Budget && len(v.Lacking) == 0 {
		r.finish(v.From)
		return
	}
	r.views = append(r.views, v)
	r.view, r.outAt, r.stop = v, time.Time{}, false
	r.calmTo = now.Add(r.cfg.Settle)
	for _, id := range group {
		s := r.nodes[id]
		s.waits, s.invited = false, v.Number
		if s.ready != 0 {
			r.answer(s.ready, Order{View: &v})
			s.ready = 0
		}
	}
}

// finish ends the run with a state.
func (r *Registry) finish(l Label) {
	r.end = &l
	for _, id := range r.ids() {
		if s := r.nodes[id]; s.ready != 0 {
			r.answer(s.ready, Order{End: &l})
			s.ready = 0
		}
	}
	r.stopWatchers()
}

// best is the group that goes on. Its members all reach each other. It prefers groups
// with a state of the newest view, then the largest, then the newest state, then the
// first ids. Groups are grown from each node in turn. That finds the largest where
// links are cut between sides. Where they are cut at random it may miss it by a few.
func (r *Registry) best(ready []wire.PeerID) (best []wire.PeerID) {
	var newest uint64
	for _, id := range ready {
		newest = max(newest, r.nodes[id].said.Label.View)
	}
	for _, seed := range ready {
		group := []wire.PeerID{seed}
		for _, id := range ready {
			reaches := id != seed
			for _, m := range group {
				reaches = reaches && r.linked(id, m)
			}
			if reaches {
				group = append(group, id)
			}
		}
		slices.SortFunc(group, wire.PeerID.Compare)
		if best == nil || r.better(group, best, newest) {
			best = group
		}
	}
	return best
}

func (r *Registry) better(a, b []wire.PeerID, newest uint64) bool {
	la, lb := r.head(a), r.head(b)
	if x, y := la.View == newest, lb.View == newest; x != y {
		return x
	}
	return cmp.Or(cmp.Compare(len(a), len(b)), cmp.Compare(la.Round, lb.Round)) > 0
}

// head is the newest state that a group holds.
func (r *Registry) head(group []wire.PeerID) (head Label) {
	for _, id := range group {
		if l := r.nodes[id].said.Label; head.before(l) {
			head = l
		}
	}
	return head
}
