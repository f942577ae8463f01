package votes

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"atoll/gossip/finality"
	"atoll/gossip/wire"
)

// Bounds are how far a search goes.
type Bounds struct {
	Views    uint32 // in which voters act: those that are led into a later one stop there
	Restarts int    // of all voters together
	Liars    uint32 // bit by bit from view 0: views whose proposer is the liar
	Ordered  bool   // follow one of the orders that come to the same, see order
	Together bool   // in each phase all vote before one goes on: fewer histories, so that more views can be searched
	Astray   uint32 // bit by bit from voter 0: honest voters that took tips of a chain which parted before the newest certificate
}

// Report is what a search saw.
type Report struct {
	States  int // of the world
	Locals  int // of a voter
	Inputs  int // to a voter that were computed
	Choices int
	Whole   bool
	Sealed  int  // sets of precommits for one value in one view
	A, B    bool // whether a certificate of the value could be made in some state
}

func (r Report) String() string {
	return fmt.Sprintf("%d states of the world, %d of a voter from %d inputs, %d choices, %d sets of precommits, certificates of A %v, of B %v, whole %v",
		r.States, r.Locals, r.Inputs, r.Choices, r.Sealed, r.A, r.B, r.Whole)
}

// Broken is a promise that does not hold, and how to get there.
type Broken struct {
	Text string
	Path []string
}

func (b *Broken) Error() string { return b.Text + "\n  " + strings.Join(b.Path, "\n  ") }

// world is a state of the honest voters.
type world struct {
	at       [liar]*local
	restarts int
	order    order
	before   *world
	choice   step // that led here
}

// step is an input to a voter.
type step struct {
	at int
	in input
}

// order is how far a history is told that goes phase by phase, and in each from the first voter to the last. What a voter
// does in a phase depends on what others signed in earlier phases alone, unless votes of the same view led it there. So
// every history can be told in this order, and comes to the same votes.
type order struct {
	view  uint32
	phase wire.Phase // 0 for the way into the view
	last  int        // the voter that acted last in that phase; -1 if each may still
}

func (o order) compare(p order) int {
	return cmp.Or(cmp.Compare(o.view, p.view), cmp.Compare(o.phase, p.phase))
}

// allows reports whether an input that comes to next may follow o.
func (o order) allows(next order) bool {
	c := next.compare(o)
	return c > 0 || c == 0 && next.last > o.last
}

type key struct {
	at       [liar]uint64
	restarts int
	order    order
}

func (s *search) key(w *world) key {
	k := key{restarts: w.restarts}
	if s.bounds.Ordered {
		k.order = w.order
	}
	for i, l := range w.at {
		k.at[i] = uint64(l.id)
	}
	if s.alike() {
		s.sort(w, &k)
	}
	return k
}

// sort makes one key of states that differ in the names of the voters.
func (s *search) sort(w *world, k *key) {
	for i, l := range w.at {
		k.at[i] = l.shape << 1
		if s.bounds.Ordered && i <= w.order.last {
			k.at[i]++ // has had its turn
		}
	}
	slices.Sort(k.at[:])
	k.order.last = 0
}

// alike says that honest voters differ in their names alone: none of them proposes, and their chains are one.
func (s *search) alike() bool { return s.bounds.Liars+1 == 1<<s.bounds.Views && s.bounds.Astray == 0 }

// sealed is precommits of honest voters in a view for a value.
type sealed struct {
	view, round uint32
	by          [liar]bool
}

type search struct {
	*rig
	seen   map[key]bool
	made   map[sealed]bool // whether they make a certificate, with the liar's
	report Report
}

// Search visits the states of the world within bounds, at most limit of them. The error is a *Broken.
func Search(bounds Bounds, limit int) (Report, error) {
	s := newSearch(bounds)
	broken := s.visit(limit)
	s.report.States, s.report.Locals, s.report.Inputs, s.report.Sealed = len(s.seen), len(s.all), s.inputs, len(s.made)
	if broken != nil {
		return s.report, broken
	}
	return s.report, nil
}

func newSearch(b Bounds) *search {
	return &search{rig: newRig(runWith(b), b), seen: map[key]bool{}, made: map[sealed]bool{}}
}

// begin is a world in which all have begun and nothing has come.
func (s *search) begin() *world {
	w := &world{order: order{last: -1}}
	for i := range w.at {
		w.at[i] = s.first(i)
	}
	return w
}

// runWith is a run in which the liar proposes in the views that bounds say.
func runWith(b Bounds) wire.RunID {
	table := newRig(wire.RunID{}, b).before.Table()
	last := table.IDs()[liar]
	for n := uint32(0); ; n++ {
		run := wire.RunID{byte(n), byte(n >> 8), byte(n >> 16)}
		fits := true
		for view := range b.Views {
			fits = fits && (table.Proposer(run, height, view) == last) == (b.Liars>>view&1 == 1)
		}
		if fits {
			return run
		}
	}
}

// visit is a search in depth.
func (s *search) visit(limit int) *Broken {
	first := s.begin()
	s.seen[s.key(first)] = true
	stack := []*world{first}
	for len(stack) > 0 {
		w := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		for i := range w.at {
			for _, in := range s.choices(w, i) {
				s.report.Choices++
				next := s.apply(w, i, in)
				if next == nil {
					continue
				}
				if text := s.wrong(next); text != "" {
					return s.broken(next, text)
				}
				if k := s.key(next); !s.seen[k] && next.at[i].certified == nil { // who has certified is done
					if len(s.seen) >= limit {
						return nil
					}
					s.seen[k] = true
					stack = append(stack, next)
				}
			}
		}
	}
	s.report.Whole = true
	return nil
}

// apply gives an input to a voter. It is nil if that does nothing, or if the same is told in another order.
func (s *search) apply(w *world, i int, in input) *world {
	to := s.take(w.at[i], in)
	if to == w.at[i] || s.bounds.Together && !s.together(w, i, to) {
		return nil
	}
	next := &world{at: w.at, restarts: w.restarts, order: w.order, before: w, choice: step{i, in}}
	next.at[i] = to
	if in.restart {
		next.restarts++
	}
	if o, counts := s.orderOf(w.at[i], to, in); counts && s.bounds.Ordered {
		if !w.order.allows(o) {
			return nil
		}
		if next.order = o; in.leads {
			next.order.last = -1
		}
	}
	return next
}

// together reports whether all others are done with the phases before what a voter does.
func (s *search) together(w *world, i int, to *local) bool {
	for _, l := range w.at {
		if to.view > w.at[i].view && !s.votedIn(l, wire.Precommit, w.at[i].view) ||
			s.votedIn(to, wire.Precommit, to.view) && !s.votedIn(l, wire.Prevote, to.view) {
			return false
		}
	}
	return true
}

func (s *search) votedIn(l *local, phase wire.Phase, view uint32) bool {
	_, any := s.voted(l, phase, view)
	return any
}

// orderOf is the place of what a voter does in the order of a history, if it has one.
func (s *search) orderOf(from, to *local, in input) (o order, counts bool) {
	o = order{view: to.view, last: from.at}
	if in.leads {
		o.phase, o.last = wire.Prevote, liar
		return o, true
	}
	for _, n := range to.signed {
		if _, had := slices.BinarySearch(from.signed, n); had {
			continue
		}
		signed := order{view: s.sent[n].View, phase: s.sent[n].Phase, last: from.at}
		if !counts || signed.compare(o) < 0 {
			o, counts = signed, true
		}
	}
	return o, counts || to.view > from.view
}

// wrong says which promise does not hold in a state.
func (s *search) wrong(w *world) string {
	if s.err != nil {
		return s.err.Error()
	}
	a, b := s.can(w, roundA), s.can(w, roundB)
	s.report.A, s.report.B = s.report.A || a, s.report.B || b
	switch {
	case a && b:
		return "two certificates of one height with different values"
	case b && s.bounds.Astray > 0:
		return "a certificate that does not go on from the one before"
	}
	return ""
}

// can tells whether a certificate of a value can be made of all that was ever signed.
func (s *search) can(w *world, round uint32) bool {
	for view := range s.bounds.Views {
		key := sealed{view: view, round: round}
		for i, l := range w.at {
			_, key.by[i] = s.precommit(l, view, round)
		}
		ok, known := s.made[key]
		if !known {
			ok = s.verifies(w, view, round)
			s.made[key] = ok
		}
		if ok {
			return true
		}
	}
	return false
}

func (s *search) precommit(l *local, view, round uint32) (v vote, any bool) {
	return s.find(l, func(v wire.SignedVote) bool {
		return v.Phase == wire.Precommit && v.View == view && v.Round == round
	})
}

// verifies makes a certificate of the precommits for a value in a view, the liar's among them, and checks it.
func (s *search) verifies(w *world, view, round uint32) bool {
	c := finality.Certificate{Height: height, View: view, Value: s.values[round]}
	for i, l := range w.at {
		if v, any := s.precommit(l, view, round); any {
			c.Seals = append(c.Seals, finality.Seal{Voter: uint16(i), Sig: s.sent[v].Sig})
		}
	}
	lie := s.sent[s.lie(wire.Precommit, view, round, 0)]
	c.Seals = append(c.Seals, finality.Seal{Voter: liar, Sig: lie.Sig})
	return c.Verify(s.run, &s.before) == nil
}

func (s *search) find(l *local, is func(v wire.SignedVote) bool) (v vote, any bool) {
	for _, n := range l.signed {
		if is(s.sent[n]) {
			return n, true
		}
	}
	return 0, false
}

func (s *search) broken(w *world, text string) *Broken {
	b := &Broken{Text: text}
	for ; w.before != nil; w = w.before {
		b.Path = append(b.Path, s.name(w.choice.at, w.choice.in))
	}
	slices.Reverse(b.Path)
	return b
}

// name tells an input.
func (s *search) name(i int, in input) string {
	if in.restart {
		return fmt.Sprintf("voter %d restarts", i)
	}
	var got []string
	for _, n := range in.votes {
		if n > 0 {
			v := s.sent[n-1]
			by, _ := s.before.Table().Place(v.Author)
			got = append(got, fmt.Sprintf("%v of %d in view %d for %s, proof %d", v.Phase, by, v.View, []string{"none", "", "A", "B"}[v.Round], v.Proof))
		}
	}
	if got == nil {
		return fmt.Sprintf("voter %d waits no longer", i)
	}
	return fmt.Sprintf("voter %d gets %s", i, strings.Join(got, "; "))
}
