package sim

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"runtime/debug"
	"slices"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/testnet/fault"
)

// World is a network of nodes in virtual time. It is not for concurrent use;
// worlds share nothing, so many may run side by side.
type World struct {
	s        Scenario
	ctx      context.Context
	rng      *rand.Rand // of the wires and of damage
	now      Time
	queue    queue
	nodes    []*Node // founders first, then in order of joining
	byID     map[wire.PeerID]*Node
	run      wire.RunID
	plan     outer.Plan
	genesis  []*outer.Tip
	link     Link // of all nodes
	bulk     bulk
	cuts     map[pair]bool   // nothing gets from a to b
	refusals map[pair]string // why the handshake with b failed, as a sees it
	folder   folder
	verifier verifier
	checks   checks
	history  history
	counts   Counts
	err      error // the first broken promise
	watch    watch
	door     door
	traced   bytes.Buffer // what nodes write down of deltas
}

// pair is an ordered pair of node indices.
type pair struct{ a, b int }

// New makes the world of a scenario, with its founders up and connected.
func New(s Scenario) (*World, error) {
	s = s.withDefaults()
	if err := s.Validate(); err != nil {
		return nil, err
	}
	w := &World{
		ctx: context.Background(),
		s:   s, rng: rand.New(rand.NewPCG(s.Seed, 1)), now: Start, run: wire.RunID{7}, link: s.Link,
		byID: map[wire.PeerID]*Node{}, plan: planOf(s.Task, s.Params), cuts: map[pair]bool{}, refusals: map[pair]string{},
		folder: newFolder(s.Lean), verifier: newVerifier(), checks: newChecks(), counts: Counts{Faults: map[fault.Verb]int{}},
	}
	if !s.Open {
		w.door = newDoor(w.run)
	}
	if corrupts(s.Faults) {
		w.folder.every = 1
	}
	w.genesis = w.plan.Genesis(s.Task.Initial(), s.Params)
	for _, spec := range s.Founders {
		n := w.add(spec, true)
		n.contacts = w.someOf(n.index)
		for _, i := range n.contacts {
			w.connect(n, w.nodes[i])
		}
	}
	for _, f := range w.s.Faults {
		w.at(Start+f.At, func() { w.inject(f) })
	}
	if s.CalmMs > 0 {
		w.at(Start+s.CalmMs, w.calm)
	}
	return w, nil
}

// tips are the tips of genesis, for the caller to change.
func (w *World) tips() []*outer.Tip { return slices.Clone(w.genesis) }

// add makes a node and starts it, with nobody to talk to yet.
func (w *World) add(spec NodeSpec, founder bool) *Node {
	n := newNode(w, len(w.nodes), spec, founder)
	w.nodes = append(w.nodes, n)
	w.byID[n.id] = n
	n.boot()
	return n
}

// someOf draws up to Degree of the first n nodes that are up, as a join link
// would name them. The newest is always among them, so that founders form one
// network; one that was never admitted does not count, as nobody gets in by it alone.
func (w *World) someOf(n int) []int {
	var up []int
	for i := range n {
		if w.nodes[i].up && !w.nodes[i].left {
			up = append(up, i)
		}
	}
	if len(up) > w.contactsOf(n) {
		last := up[len(up)-1]
		for i := len(up) - 2; i >= 0 && w.nodes[last].spec.Outsider; i-- {
			last = up[i]
		}
		w.rng.Shuffle(len(up), func(i, j int) { up[i], up[j] = up[j], up[i] })
		up = append(up[:w.contactsOf(n)-1], last)
		slices.Sort(up)
		up = slices.Compact(up)
	}
	return up
}

// contactsOf is how many peers a new node knows at first: half of the degree, as
// others will know it in turn.
func (w *World) contactsOf(n int) int {
	if n <= w.s.Degree {
		return w.s.Degree
	}
	return max(w.s.Degree/2, 1)
}

// at schedules a call.
func (w *World) at(t Time, do func()) {
	w.queue.push(event{at: max(t, w.now), kind: eventCall, do: do})
}

func (w *World) after(d Time, do func()) { w.at(w.now+d, do) }

// Nodes are all nodes that ever were.
func (w *World) Nodes() []*Node { return w.nodes }

// Now is the virtual time.
func (w *World) Now() Time { return w.now }

// Err is the first promise that was broken, with the time.
func (w *World) Err() error { return w.err }

// RunFor lets time pass, until something breaks.
func (w *World) RunFor(ms Time) {
	end := w.now + ms
	for w.err == nil {
		if at, any := w.queue.next(); !any || at > end {
			break
		}
		e := w.queue.pop()
		w.lookUpTo(e.at)
		w.now = e.at
		w.play(&e)
	}
	w.now = end
}

// RunUntil runs until cond holds; it reports false if something broke, the time is
// over or somebody interrupts before.
func (w *World) RunUntil(limit Time, cond func() bool) bool {
	const look = 50 // ms between two looks
	for w.err == nil && !cond() {
		if w.now >= limit || w.ctx.Err() != nil {
			return false
		}
		w.RunFor(look)
	}
	return w.err == nil
}

// play does one event. A panic of a core is a broken promise like any other.
func (w *World) play(e *event) {
	defer func() {
		if r := recover(); r != nil {
			w.broken("panic", "%v\n%s", r, debug.Stack())
		}
	}()
	w.counts.Events++
	w.history.event(e)
	switch e.kind {
	case eventCall:
		e.do()
	case eventHop:
		e.to.comes(e.from, e.msg)
	case eventLanded:
		e.to.arrives(e.from, e.msg)
	case eventTick:
		e.to.tick(e.life)
	case eventStep:
		e.to.stepTimer(e.life)
	}
}

// broken records the first promise that does not hold. name names a checker.
func (w *World) broken(name, format string, args ...any) {
	if w.err == nil {
		w.err = &Broken{Check: name, At: w.now - Start, Text: fmt.Sprintf(format, args...), Seed: w.s.Seed}
	}
}

// Broken is a promise that a world did not keep.
type Broken struct {
	Check string // which checker found it; see DESIGN.md
	At    Time   // after the start
	Text  string
	Seed  uint64
}

func (b *Broken) Error() string {
	return fmt.Sprintf("%s: seed %d at %d ms: %s", b.Check, b.Seed, b.At, b.Text)
}

// first is the first honest node that is up; where all are down, the first of all.
func (w *World) first() *Node {
	for _, n := range w.nodes {
		if n.up && n.liar == nil {
			return n
		}
	}
	return w.nodes[0]
}

// alive are the honest nodes that are up.
func (w *World) alive() []*Node {
	up := make([]*Node, 0, len(w.nodes))
	for _, n := range w.nodes {
		if n.up && n.liar == nil {
			up = append(up, n)
		}
	}
	return up
}
