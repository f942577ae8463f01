package exhaust

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"
)

// Bounds are how often each thing may happen on one way through the search.
type Bounds struct {
	Nodes   int // 2 or 3
	Steps   int // of all nodes together
	Ticks   int // likewise
	Crashes int
	Copies  int // messages that arrive twice
	Drops   int // messages that do not arrive
}

// Report is what a search saw.
type Report struct {
	States int // of the world
	Locals int // states of a node
	Inputs int // that a node was given; all else follows from these
	Edges  int
	Rests  int // states with nothing under way, from which the world came to rest
	Depth  int // of the longest way
	Rounds int // the highest that a delta was under way for
	Whole  bool
}

func (r Report) String() string {
	return fmt.Sprintf("%d states of the world, %d of a node from %d inputs, %d choices, depth %d, %d rounds, at rest from %d, whole %v",
		r.States, r.Locals, r.Inputs, r.Edges, r.Depth, r.Rounds, r.Rests, r.Whole)
}

// Broken is a promise that does not hold, and how to get there.
type Broken struct {
	Text string
	Path []string
}

func (b *Broken) Error() string { return b.Text + "\n  " + strings.Join(b.Path, "\n  ") }

// flight is a delta on its way to a node.
type flight struct {
	to, message int
}

// world is a state of the world.
type world struct {
	at     [mostNodes]*local
	count  int      // of them
	flying []flight // sorted
	used   used
}

func (w *world) nodes() []*local { return w.at[:w.count] }

// used counts what happened on the way.
type used struct{ steps, ticks, crashes, copies, drops uint8 }

// key names a state of the world.
type key struct {
	at     [mostNodes]uint32
	flying string
	used   used
}

func (w *world) key() key {
	k := key{used: w.used}
	for i, l := range w.nodes() {
		k.at[i] = l.id
	}
	b := make([]byte, 0, 3*len(w.flying))
	for _, f := range w.flying {
		b = binary.LittleEndian.AppendUint16(append(b, byte(f.to)), uint16(f.message))
	}
	k.flying = string(b)
	return k
}

// search visits every state of the world within bounds.
type search struct {
	*locals
	bounds   Bounds
	limit    int // states
	messages []string
	names    map[string]int
	senders  []int
	seen     map[key]bool
	rested   map[key]bool
	report   Report
}

// way is how the search came to a state: its last choice, and the way before it.
type way struct {
	before *way
	choice choice
	depth  int
}

// Search visits the states of the world within bounds, at most limit of them. From states in which
// nothing is under way it lets the world come to rest. The error is a *Broken.
func Search(bounds Bounds, limit int) (Report, error) {
	s := newSearch(bounds, limit)
	broken := s.visitAll(s.begin())
	s.report.States, s.report.Locals, s.report.Inputs = len(s.seen), len(s.all), s.runs
	if broken != nil {
		return s.report, broken
	}
	return s.report, nil
}

func newSearch(bounds Bounds, limit int) *search {
	return &search{
		locals: newLocals(), bounds: bounds, limit: limit, names: map[string]int{},
		seen: map[key]bool{}, rested: map[key]bool{},
	}
}

// meetTicks is how many ticks pass until every node takes every other for a live
// learner: one to be ready, one to say so, one to look who does.
const meetTicks = 3

// begin is a world in which all nodes have met and trained nothing.
func (s *search) begin() *world {
	w := &world{count: s.bounds.Nodes}
	for i := range w.nodes() {
		w.at[i] = s.first(i)
	}
	for i := range w.nodes() {
		s.start(w, i)
	}
	for range meetTicks {
		for i := range w.nodes() {
			s.run(w, i, input{kind: inTick})
		}
	}
	return w
}

// entry is a state that was found and not visited yet.
type entry struct {
	w   *world
	way *way
}

// visitAll is a search in depth.
func (s *search) visitAll(first *world) *Broken {
	s.seen[first.key()] = true
	stack := []entry{{first, nil}}
	for len(stack) > 0 {
		e := stack[len(stack)-1]
		stack = stack[:len(stack)-1]
		if broken := s.look(e); broken != nil {
			return broken
		}
		for _, c := range s.choices(e.w) {
			w, possible := s.apply(e.w, c)
			s.report.Edges++
			next := &way{e.way, c, depthOf(e.way) + 1}
			if s.err != nil {
				return s.broken(next, s.err.Error())
			}
			if k := w.key(); possible && !s.seen[k] {
				if len(s.seen) >= s.limit {
					return nil
				}
				s.seen[k] = true
				stack = append(stack, entry{w, next})
				s.report.Depth = max(s.report.Depth, next.depth)
				s.report.Rounds = max(s.report.Rounds, s.round(w))
			}
		}
	}
	s.report.Whole = true
	return nil
}

// round is the highest that a delta under way is for.
func (s *search) round(w *world) (most int) {
	for _, f := range w.flying {
		most = max(most, int(s.open(s.messages[f.message]).Header.Header.Round))
	}
	return most
}

func depthOf(w *way) int {
	if w == nil {
		return 0
	}
	return w.depth
}

func (s *search) broken(w *way, text string) *Broken {
	b := &Broken{Text: text}
	for ; w != nil; w = w.before {
		b.Path = append(b.Path, s.name(w.choice))
	}
	slices.Reverse(b.Path)
	return b
}

// look lets the world come to rest, as promised, from a state in which nothing is
// under way and all nodes are up: every other state leads to one. What must hold
// in each state is checked where a node takes an input.
func (s *search) look(e entry) *Broken {
	if !e.w.quiet() {
		return nil
	}
	s.report.Rests++
	if text := s.finish(e.w.clone()); text != "" {
		return s.broken(e.way, text)
	}
	if s.err != nil {
		return s.broken(e.way, s.err.Error())
	}
	return nil
}

// quiet says that all nodes are up and nothing is under way.
func (w *world) quiet() bool {
	for _, l := range w.nodes() {
		if !l.up {
			return false
		}
	}
	return len(w.flying) == 0
}

func (w *world) clone() *world {
	c := *w
	c.flying = slices.Clone(w.flying)
	return &c
}

// restTicks is how many ticks of each node may pass until a world is at rest: ten
// heartbeats until a silent peer is given up, and as many until the run counts as over.
const restTicks = 60

// finish ends all faults, delivers what is under way, and lets learners step and
// time pass until the run is over. It says what is wrong then.
func (s *search) finish(w *world) string {
	w.used = used{}
	var passed []key
	for range restTicks {
		k := w.key()
		if s.rested[k] {
			break
		}
		passed = append(passed, k)
		if w.over() {
			if text := w.atRest(); text != "" {
				return text
			}
			break
		}
		s.calm(w)
		if len(passed) == restTicks {
			return "does not come to rest: " + w.String()
		}
	}
	for _, k := range passed {
		s.rested[k] = true
	}
	return ""
}

// calm is one turn of a world without faults.
func (s *search) calm(w *world) {
	for i, l := range w.nodes() {
		if !l.up {
			s.start(w, i)
		}
	}
	for len(w.flying) > 0 {
		s.deliver(w, 0, false)
	}
	for i := range w.nodes() {
		if w.at[i].may {
			s.run(w, i, input{kind: inStep})
		}
	}
	for i := range w.nodes() {
		s.run(w, i, input{kind: inTick})
	}
}

// over says that nothing more will happen.
func (w *world) over() bool {
	for _, l := range w.nodes() {
		if !l.up || !l.done || !l.settled {
			return false
		}
	}
	return len(w.flying) == 0
}

// atRest says which promise a world at rest does not keep.
func (w *world) atRest() string {
	first := w.at[0]
	var made uint64
	for _, l := range w.nodes() {
		made += l.mine
		switch {
		case l.chain != first.chain || l.closed != first.closed:
			return "at rest on two chains: " + w.String()
		case l.state != first.state:
			return "at rest with two states on one chain: " + w.String()
		case l.rest && l.off > 1e-5 || math.IsNaN(l.off):
			return fmt.Sprintf("local parameters of node %d are %g off the global ones with nothing in flight: %s", l.index, l.off, w)
		}
	}
	switch {
	case first.tokens < budget:
		return "at rest below the budget: " + w.String()
	case first.tokens != made:
		return fmt.Sprintf("%d tokens folded, %d made and not lost at a crash: %s", first.tokens, made, w)
	}
	return ""
}

func (w *world) String() string {
	var b strings.Builder
	for i, l := range w.nodes() {
		fmt.Fprintf(&b, "[node %d up %v may %v done %v closed %d chain %x state %x tokens %d of its %d at rest %v] ",
			i, l.up, l.may, l.done, l.closed, l.chain[:3], l.state[:3], l.tokens, l.mine, l.rest)
	}
	fmt.Fprintf(&b, "%d messages under way", len(w.flying))
	return b.String()
}
