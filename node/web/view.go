package web

import (
	"cmp"
	"slices"
	"time"

	"atoll/node/status"
)

// World is what a page is about: one node, or the nodes of a testnet.
type World struct {
	Link  string // to join by; "" = as the leading node has it
	Join  string // the command that joins, with LINK for the link; "" = atoll join LINK
	Nodes []Node
}

// Node is one of the nodes whose own status is known.
type Node struct {
	Name   string          // for people; "" = by its id
	End    string          // how its process ended: see the constants; "" = it runs, as far as is known
	Status status.Snapshot // newest; without a Run until it has said anything
}

// How the process of a node ended.
const (
	EndKilled  = "killed"
	EndLeft    = "left"    // in order
	EndDone    = "done"    // with the run
	EndStopped = "stopped" // by a signal: it does not run, and may go on
)

// seen says whether the node has a status of the run.
func (n Node) seen() bool { return n.Status.Run != "" }

// View is what the page shows at one moment. All of it is data: the page puts every
// string in as text.
type View struct {
	AtMs     int64         `json:"at_ms"` // unix milliseconds, as all times
	Tone     string        `json:"tone"`  // see the constants
	State    string        `json:"state"` // one word
	Headline string        `json:"headline"`
	Detail   string        `json:"detail,omitempty"`
	Notes    []string      `json:"notes,omitempty"` // sentences beside the numbers
	Next     []Row         `json:"next,omitempty"`  // what to type once the run is over, and what that does
	Alarms   []AlarmView   `json:"alarms,omitempty"`
	Run      RunView       `json:"run"`
	Folded   uint64        `json:"folded"`            // tokens
	NotYet   string        `json:"not_yet,omitempty"` // why nobody knows yet how many
	Budget   uint64        `json:"budget"`            // tokens
	PerS     float64       `json:"per_s,omitempty"`
	EtaS     float64       `json:"eta_s,omitempty"`
	Over     bool          `json:"over,omitempty"`    // nothing goes on
	TookPart int           `json:"took_part"`         // machines that trained, by the ledger
	TookS    float64       `json:"took_s,omitempty"`  // from the first moment known to the last fold; 0 = not known
	Average  float64       `json:"average,omitempty"` // tokens per second in that time
	Late     bool          `json:"late,omitempty"`    // the run was under way by then
	Goodput  float64       `json:"goodput,omitempty"` // share of the learners' time that went into steps
	Quality  QualityView   `json:"quality,omitzero"`
	Curve    []CurvePoint  `json:"curve"`
	Peers    []PeerView    `json:"peers"`
	Links    []LinkView    `json:"links"`
	Rounds   []RoundView   `json:"rounds"`
	Account  []AccountPart `json:"account"`
	Trained  uint64        `json:"trained"` // tokens, by the nodes whose status is known
	Traffic  Traffic       `json:"traffic"`
	Events   []EventView   `json:"events"`   // newest first
	CanJoin  bool          `json:"can_join"` // there is a link to ask for
	Join     string        `json:"join,omitempty"`
	Many     bool          `json:"many"` // it is of several nodes' own statuses
}

// Tones of a view: how it is to be taken.
const (
	ToneGood = "good" // it trains, or it is done
	ToneWait = "wait" // it begins
	ToneRest = "rest" // its owner has it rest
	ToneWarn = "warn" // something is missing, and the run mends it by itself
	ToneBad  = "bad"  // a person has to look
)

// RunView says which run it is.
type RunView struct {
	ID        string `json:"id"`
	Name      string `json:"name"`
	Model     string `json:"model"`
	Params    int    `json:"params"`
	Optimizer string `json:"optimizer,omitempty"`
	Version   string `json:"version"`
	StartedMs int64  `json:"started_ms"` // the first moment that is known
	H         int    `json:"h"`          // steps of a delta
}

// QualityView is the newest measure of the model on held-out text.
type QualityView struct {
	Value float64 `json:"value"`
	Unit  string  `json:"unit"`
	At    uint64  `json:"at"`  // tokens folded by then
	Own   bool    `json:"own"` // it is the node's own training loss, as nobody measures the model here
}

// CurvePoint is one moment of the run's curves.
type CurvePoint struct {
	S      float64 `json:"s"` // seconds since the first point
	Tokens uint64  `json:"n"` // tokens folded
	Loss   float32 `json:"l,omitempty"`
	PerS   float32 `json:"r,omitempty"`
}

// PeerView is one node of the run.
type PeerView struct {
	ID       string  `json:"id"`
	Name     string  `json:"name"`
	Self     bool    `json:"self,omitempty"`
	Class    string  `json:"class"` // see the constants
	State    string  `json:"state"`
	Role     string  `json:"role"`
	Hardware string  `json:"hardware,omitempty"`
	Learner  string  `json:"learner,omitempty"`
	Link     string  `json:"link,omitempty"` // how the node of this page reaches it
	Share    float64 `json:"share"`
	Unshared bool    `json:"unshared,omitempty"` // that is not known yet
	Tokens   float64 `json:"tokens"`
	PerS     float64 `json:"per_s,omitempty"`
	LagS     float64 `json:"lag_s,omitempty"`
	UpPerS   float64 `json:"up_per_s,omitempty"` // bytes, of nodes whose status is known
	DownPerS float64 `json:"down_per_s,omitempty"`
	Sent     uint64  `json:"sent,omitempty"`     // bytes, by the node of this page to it
	Received uint64  `json:"received,omitempty"` // bytes, by the node of this page from it
	UpMost   float64 `json:"up_most,omitempty"`  // bytes per second that its uplink was seen to carry
	Full     bool    `json:"full,omitempty"`     // it carries no more
	Reason   string  `json:"reason,omitempty"`
}

// Classes of peers.
const (
	ClassLive   = "live"
	ClassDone   = "done"   // it ended with the run
	ClassRest   = "rest"   // paused by its owner, or it only serves
	ClassSilent = "silent" // it was here and cannot be heard: somebody should look
	ClassGone   = "gone"   // it left, is gone for long, or was refused
)

// LinkView is a connection between two peers, by their places in View.Peers.
type LinkView struct {
	A    int    `json:"a"`
	B    int    `json:"b"`
	Kind string `json:"kind"` // as in status.Peer, or LinkHeard
}

// LinkHeard is the kind of a link to a peer whose messages come through others.
const LinkHeard = "heard"

// RoundView is how far a fragment is.
type RoundView struct {
	Closed       uint32 `json:"closed"`
	Contributors int    `json:"contributors"`
	Tokens       uint64 `json:"tokens"`
	End          uint32 `json:"end,omitempty"`
}

// AccountPart is a part of the tokens that were trained.
type AccountPart struct {
	Name   string  `json:"name"`
	Tokens float64 `json:"tokens"`
	Means  string  `json:"means"`
}

// Traffic is what the known nodes sent and received.
type Traffic struct {
	Sent     uint64  `json:"sent"`
	Received uint64  `json:"received"`
	UpPerS   float64 `json:"up_per_s,omitempty"`
	DownPerS float64 `json:"down_per_s,omitempty"`
	Dropped  uint64  `json:"dropped,omitempty"` // messages
}

// EventView is something worth telling.
type EventView struct {
	AtMs int64  `json:"at_ms"`
	Kind string `json:"kind"`
	Who  string `json:"who,omitempty"`
	Text string `json:"text"`
}

// AlarmView is something wrong, with what to do.
type AlarmView struct {
	EventView
	Remedy string `json:"remedy"`
}

// shownEvents bounds the events of a view: a person reads no more.
const shownEvents = 60

// viewOf makes the view of a world. The rates are those of its nodes.
func viewOf(w World, rates meter, now time.Time) View {
	b := builder{world: w, rates: rates, now: now, index: map[string]int{}}
	b.view = View{AtMs: now.UnixMilli(), Many: len(w.Nodes) > 1, Curve: []CurvePoint{}, Peers: []PeerView{}, Links: []LinkView{}, Rounds: []RoundView{}, Account: []AccountPart{}, Events: []EventView{}}
	if b.lead = leading(w.Nodes); b.lead == nil {
		b.starting()
		return b.view
	}
	b.labels = w.labels()
	b.run()
	b.peers()
	b.links()
	b.curve()
	b.account()
	b.events()
	b.headline()
	b.notes()
	return b.view
}

// builder makes one view.
type builder struct {
	world  World
	rates  meter
	now    time.Time
	lead   *Node          // whose word on the run is taken
	labels status.Labels  // of machines
	index  map[string]int // places in view.Peers, by id
	view   View
	grave  bool // something is wrong that does not pass by itself
}

// labels are what machines are called: the known nodes as the world calls them, others as the leading one does.
func (w World) labels() status.Labels {
	l := status.Labels{}
	if lead := leading(w.Nodes); lead != nil {
		l = status.LabelsOf(lead.Status.Peers)
	}
	for _, n := range w.Nodes {
		if n.Name != "" && n.seen() {
			l[status.ShortID(n.Status.Self)] = n.Name
		}
	}
	return l
}

// leading is the node that has folded most, of those that run if there are any.
func leading(nodes []Node) *Node {
	var best *Node
	for i := range nodes {
		n := &nodes[i]
		if n.seen() && (best == nil || best.End != "" && n.End == "" || (best.End == "") == (n.End == "") && n.Status.TokensFolded > best.Status.TokensFolded) {
			best = n
		}
	}
	return best
}

// starting is the view before any node knows the run.
func (b *builder) starting() {
	b.view.Tone, b.view.State, b.view.Headline = ToneWait, "starting", "Waits for the first node to start."
	b.view.Detail = "This page fills by itself."
	if n := len(b.world.Nodes); n > 0 {
		b.view.Headline = "This node is starting."
		b.view.Detail = sentence(b.world.Nodes[n-1].Status.Stage)
	}
}

func (b *builder) run() {
	s := b.lead.Status
	b.view.Run = RunView{ID: s.Run, Name: status.Clip(plain(s.Name), longestName), Model: plain(s.Model), Params: s.Params, Optimizer: s.Optimizer, Version: s.Version, StartedMs: s.Started.UnixMilli(), H: s.Plan.H}
	b.view.Folded, b.view.Budget, b.view.PerS, b.view.EtaS = s.TokensFolded, s.BudgetTokens, s.TokensPerS, s.ETASeconds
	b.view.NotYet = status.NotYet(s.Peers)
	link, _ := b.world.link()
	b.view.CanJoin, b.view.Join = link != "", b.world.Join
	for _, f := range s.Fragments {
		b.view.Rounds = append(b.view.Rounds, RoundView{Closed: f.Closed, Contributors: f.Contributors, Tokens: f.Tokens, End: f.EndRound})
	}
	var stepping, lived float64
	for _, n := range b.world.Nodes {
		if !n.seen() {
			continue
		}
		b.view.Run.StartedMs = min(b.view.Run.StartedMs, n.Status.Started.UnixMilli())
		stepping += n.Status.Time.Step + n.Status.Time.Paced
		lived += n.Status.Time.Total - n.Status.Time.Paused
		b.view.Traffic.Sent += n.Status.Net.SentBytes
		b.view.Traffic.Received += n.Status.Net.ReceivedBytes
		b.view.Traffic.Dropped += n.Status.Net.Dropped
	}
	if lived > 0 {
		b.view.Goodput = stepping / lived
	}
	b.view.TookPart = status.TookPart(s.Peers)
	if b.view.Over = b.lead.End != "" || s.Finished; b.view.Over {
		b.view.PerS, b.view.EtaS = 0, 0
	}
	b.times()
}

// lateFrom is which part of all tokens, at most, a machine that was there from the start finds folded when it looks first.
const lateFrom = 20

// times says how long the run took and how fast it was, by the longest history: the processes of nodes begin anew.
func (b *builder) times() {
	began, ended := status.Span(historyOf(b.world))
	if began.AtMs == 0 {
		return
	}
	b.view.Run.StartedMs, b.view.Late = min(b.view.Run.StartedMs, began.AtMs), began.Tokens > ended.Tokens/lateFrom
	if took := float64(ended.AtMs-began.AtMs) / 1000; took > 0 {
		b.view.TookS, b.view.Average = took, float64(ended.Tokens-began.Tokens)/took
	}
}

// link is what others join by.
func (w World) link() (link, letsIn string) {
	if w.Link != "" {
		return w.Link, ""
	}
	if lead := leading(w.Nodes); lead != nil && lead.End == "" {
		return lead.Status.Link, lead.Status.LetsIn
	}
	return "", ""
}

// curve takes the history of the node that has measured the model last, and where
// nobody measures it the training loss of the leading one.
func (b *builder) curve() {
	from := b.lead
	for i := range b.world.Nodes {
		if n := &b.world.Nodes[i]; n.seen() && n.Status.ValAtTokens > from.Status.ValAtTokens {
			from = n
		}
	}
	s := from.Status
	switch {
	case s.ValBPB > 0:
		b.view.Quality = QualityView{Value: s.ValBPB, Unit: "bits per byte", At: s.ValAtTokens}
	case s.ValLoss > 0:
		b.view.Quality = QualityView{Value: s.ValLoss, Unit: "nats per token", At: s.ValAtTokens}
	case s.TrainLoss > 0:
		b.view.Quality = QualityView{Value: s.TrainLoss, Unit: "nats per token", At: s.TokensFolded, Own: true}
	}
	b.view.Curve = curveOf(s.History, b.view.Quality.Own)
}

// curveOf is a history as curves. A measure stands at the moment at which it was new.
func curveOf(points []status.Point, own bool) []CurvePoint {
	curve := make([]CurvePoint, 0, len(points))
	measured := int64(-1) // the first measure is that of the model nobody has trained yet
	for _, p := range points {
		c := CurvePoint{S: float64(p.AtMs-points[0].AtMs) / 1000, Tokens: p.Tokens, PerS: p.PerS}
		switch {
		case own:
			c.Loss = p.Loss
		case p.Val > 0 && int64(p.ValAt) != measured:
			c.Loss, measured = p.Val, int64(p.ValAt)
		}
		curve = append(curve, c)
	}
	return curve
}

// account adds up the tokens of the known nodes.
func (b *builder) account() {
	var folded, flying, waiting, discarded, lostHere, lostBefore float64
	for _, n := range b.world.Nodes {
		if !n.seen() {
			continue
		}
		s := n.Status
		b.view.Trained += s.TokensTrained
		folded += status.MeanTokens(s.Fragments, s.Account.OwnFolded)
		flying += status.MeanTokens(s.Fragments, s.Account.OwnInFlight)
		waiting += status.MeanTokens(s.Fragments, s.Account.OwnUnpublished)
		discarded += status.MeanTokens(s.Fragments, s.Account.OwnDiscarded)
		lostHere += status.MeanTokens(s.Fragments, s.Account.OwnLostHere)
		lostBefore += status.MeanTokens(s.Fragments, s.Account.OwnLostBefore)
	}
	b.view.Account = []AccountPart{
		{"folded", folded, "in the model"},
		{"in flight", flying, "published, not yet folded"},
		{"unpublished", waiting, "waits for its delta"},
		{"discarded", discarded, "published too late to count"},
		{"lost here", lostHere, "with damaged memory, a lost learner or a long absence"},
		{"lost before", lostBefore, "before a node was started again"},
	}
	rest := float64(b.view.Trained) - folded - flying - waiting - discarded - lostHere - lostBefore
	if rest > restShown*float64(b.view.Trained) {
		b.view.Account = append(b.view.Account, AccountPart{"other", rest, "of processes that were killed, or on its way between two reports"})
	}
}

// restShown is the part of all tokens from which on what is in no column is shown: the
// columns of one status are of moments that differ a little.
const restShown = 0.01

// events are those of all known nodes, newest first.
func (b *builder) events() {
	for _, n := range b.world.Nodes {
		for _, a := range n.Status.Alarms {
			if b.view.Over && a.Passing() {
				continue
			}
			b.view.Alarms = append(b.view.Alarms, AlarmView{EventView{AtMs: a.Since.UnixMilli(), Kind: plain(a.Kind), Who: b.about(n, a.Who), Text: b.text(a.Text)}, b.text(a.Remedy)})
			b.grave = b.grave || !a.Passing()
		}
		for _, e := range n.Status.Events {
			b.view.Events = append(b.view.Events, EventView{AtMs: e.At.UnixMilli(), Kind: plain(e.Kind), Who: b.about(n, e.Peer), Text: b.text(e.Said())})
		}
	}
	slices.SortStableFunc(b.view.Events, func(x, y EventView) int { return cmp.Compare(y.AtMs, x.AtMs) })
	slices.SortStableFunc(b.view.Alarms, func(x, y AlarmView) int { return cmp.Compare(y.AtMs, x.AtMs) })
	b.view.Alarms = b.view.Alarms[:min(len(b.view.Alarms), alarmsShown)]
	b.view.Events = b.view.Events[:min(len(b.view.Events), shownEvents)]
}

// about says which node tells, where there are several, and of which peer.
func (b *builder) about(n Node, peer string) (who string) {
	if b.view.Many {
		who = b.name(n.Status.Self)
	}
	if peer != "" && !isNode(n.Status.Self, peer) {
		who = joined(who, b.name(peer))
	}
	return who
}

// joined says who tells of whom.
func joined(teller, told string) string {
	if teller == "" {
		return told
	}
	return teller + " \u2192 " + told
}
