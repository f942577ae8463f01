package sim

import (
	"bytes"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/node/core"
	"atoll/tensor/codec"
)

// stateAt is what a node's peer last heard of it.
func (n *Node) stateAt(p *Node) (state wire.State) {
	p.machine.Gossip().Peers().Heartbeats(func(id wire.PeerID, b *wire.Heartbeat, _ gossip.Time) {
		if id == n.id {
			state = b.State
		}
	})
	return state
}

func (n *Node) unpublished() (steps uint32) {
	for p := range n.w.plan {
		left, _ := n.machine.Rounds().Fragment(p).Pending()
		steps += left
	}
	return steps
}

func specLeaves(t *testing.T, _ *spectest.Spec) {
	w := few(t, 2, 3000)
	w.RunFor(3050)
	n := w.nodes[1]
	steps, published := n.Steps, len(n.book.own)
	if n.unpublished() == 0 {
		t.Fatal("nothing is unpublished")
	}
	n.leave()
	w.until(t, "it is gone", 4000, func() bool { return !n.up })
	if n.Steps != steps || len(n.book.own) <= published || n.unpublished() > 0 || n.stateAt(w.nodes[0]) != wire.Leaving {
		t.Errorf("%d steps more, %d deltas more, %d steps unpublished, and it says %v",
			n.Steps-steps, len(n.book.own)-published, n.unpublished(), n.stateAt(w.nodes[0]))
	}
}

// A guest takes nothing from a leaver that it waits for: it may say that it does for ever.
func specLeavesGuests(t *testing.T, _ *spectest.Spec) {
	for guests, want := range map[bool]bool{true: true, false: false} {
		s := hosted(2, 1, 200, 1)
		s.Params.Fragments, s.Params.Codec = 1, codec.F32 // payloads that have to be fetched
		w := newWorld(t, s)
		w.RunFor(3000)
		n, guest := w.nodes[1], w.nodes[2]
		with := []int{n.index, guest.index}
		if !guests {
			with = []int{n.index, 0}
		}
		n.deaf(always, wire.GetPayload)
		w.partition(Fault{Others: with})
		w.until(t, "who is away is no learner", 60_000, func() bool { return len(n.machine.Gossip().Peers().Learners(n.clock())) == 1 })
		n.leave()
		if w.RunFor(3000); !n.up != want {
			t.Errorf("beside a guest alone (%v) it is gone: %v", guests, !n.up)
		}
	}
}

func specStays(t *testing.T, s *spectest.Spec) {
	w := few(t, 2, 3000)
	w.RunFor(3050)
	n := w.nodes[1]
	n.leave()
	announced, deltas := w.now, len(n.book.own)
	w.look(t, "it is gone", 1, 4000, func() bool {
		if len(n.book.own) > deltas {
			announced, deltas = w.now, len(n.book.own)
		}
		return !n.up
	})
	if took, left := w.now-announced, s.Number(t, "life", "left"); took < left || took > left+2*w.s.TickMs {
		t.Errorf("gone %d ms after its last delta", took)
	}
	// One whose payload has to be fetched keeps it until somebody has.
	w = few(t, 2, 3000)
	w.RunFor(1000)
	n = w.nodes[1]
	n.do(func() { n.machine.Leave(n.clock()) })
	w.RunFor(1000)
	if !n.machine.View().MayLeave() {
		t.Fatal("it may not leave")
	}
	payload := make([]byte, 2*wire.MaxInline)
	sh := w.outsiderWith(n.key).signs(headerAt(0, n.machine.Rounds().Fragment(0).Closed()), payload)
	id := sh.Header.ID(w.run)
	n.machine.StoredOwn(n.clock(), core.StoreOwn{ID: id, Header: sh, Payload: payload, Seq: 1 << 20}, nil)
	n.machine.Tick(n.clock() + 600)
	if n.machine.View().MayLeave() {
		t.Error("it leaves with a payload that nobody has")
	}
	n.machine.Step(n.clock()+600, gossip.Replied{Handle: 1, Payload: id})
	if !n.machine.View().MayLeave() {
		t.Error("it stays though a peer has the payload")
	}
}

func specStepsOnly(t *testing.T, _ *spectest.Spec) {
	w := few(t, 1, 100)
	w.until(t, "it is finished", 60_000, w.allFinished)
	if made := w.nodes[0].book.trained; made != w.s.Params.Budget {
		t.Errorf("%d tokens are stepped for a budget of %d", made, w.s.Params.Budget)
	}
}

// worker is a lone learner that has folded something, and a key. It may hold a
// delta of that key.
func worker(t *testing.T, key int, known bool) (*Node, *outsider) {
	t.Helper()
	w := few(t, 1, 3000)
	w.RunFor(2000)
	n, o := w.nodes[0], w.outsider(key)
	if known {
		o.shows(n, headerAt(0, n.machine.Rounds().Fragment(0).Closed()))
		w.RunFor(200)
	}
	return n, o
}

// all is the budget in each fragment.
func (w *World) all() []uint64 {
	all := make([]uint64, len(w.plan))
	for p := range all {
		all[p] = w.s.Params.Budget
	}
	return all
}

// The learners of smallest id take the last steps of a run.
func TestLastStepsAreDealt(t *testing.T) {
	t.Parallel()
	met := map[bool]bool{}
	for key := 2; key < 40 && len(met) < 2; key++ {
		n, o := worker(t, key, true)
		before := bytes.Compare(o.id[:], n.id[:]) < 0
		if met[before] {
			continue
		}
		met[before] = true
		for missing, want := range map[uint64]bool{TokensPerStep: !before, TokensPerStep + 1: true, 0: false} {
			claims := n.w.all()
			for p := range claims {
				claims[p] -= n.machine.Rounds().Fragment(p).Projected(n.clock()) + n.machine.Rounds().Fragment(p).Promised() + missing
			}
			o.life++ // a new process has nothing of what it claimed before
			o.sends(n, wire.Heartbeat{State: wire.Training, Unpublished: claims})
			if n.do(func() { n.machine.Tick(n.clock()) }); n.may != want {
				t.Errorf("%d tokens are missing, the other one comes first %v: steps %v", missing, before, n.may)
			}
		}
	}
	if len(met) < 2 {
		t.Error("no key of both sides")
	}
}

// A learner does not step for what peers have, and will soon have, unpublished, nor for what
// they published of it, though it has not come.
func TestClaimsOfPeers(t *testing.T) {
	t.Parallel()
	n, o := worker(t, 9, true)
	fast := 2 * float64(n.w.s.Params.Budget)
	for i, c := range []struct {
		heartbeat wire.Heartbeat
		ms        Time
		may       bool
		what      string
	}{
		{wire.Heartbeat{State: wire.Training, Unpublished: n.w.all()}, 100, false, "what is missing is unpublished elsewhere"},
		{wire.Heartbeat{State: wire.Training}, 100, false, "it is published"},
		{wire.Heartbeat{State: wire.Training}, 100, true, "nothing is unpublished by a process that begins"},
		{wire.Heartbeat{State: wire.Training, TokensPerSecond: fast}, 200, true, "one steps the budget in half a second"},
		{wire.Heartbeat{}, 500, false, "half a second later"},
		{wire.Heartbeat{State: wire.Stopped, TokensPerSecond: fast}, 700, true, "a fast one does not step"},
	} {
		if o.life = int64(i / 2); c.heartbeat.State != 0 {
			c.heartbeat.PeriodMs = 1000 // or it would be gone before the next
			o.sends(n, c.heartbeat)
		}
		if n.w.RunFor(c.ms); n.may != c.may {
			t.Errorf("%s: steps %v", c.what, n.may)
		}
	}
}

// A learner steps on for what a peer made while it observes, and not for what another one made.
func specPublishesNothing(t *testing.T, _ *spectest.Spec) {
	for state, may := range map[wire.State]bool{wire.Observing: true, wire.Training: false} {
		n, o := worker(t, 9, true)
		for _, made := range []uint64{0, n.w.s.Params.Budget} {
			o.sends(n, wire.Heartbeat{State: state, Tokens: made, PeriodMs: 1000})
			n.w.RunFor(100)
		}
		if n.may != may {
			t.Errorf("beside one that made the budget and says %v it steps: %v", state, n.may)
		}
	}
}

// A peer that claims the budget, and publishes a step now and then so that it is not
// doubted, is waited for once.
func TestClaimsAreWeighed(t *testing.T) {
	t.Parallel()
	n, _ := worker(t, 9, true)
	liar := n.w.outsider(10)
	n.every(500, func() {
		liar.shows(n, headerAt(0, n.machine.Rounds().Fragment(0).Closed()))
		liar.sends(n, wire.Heartbeat{State: wire.Training, Unpublished: n.w.all()})
	})
	if n.w.RunFor(2000); n.may {
		t.Error("steps though what is missing is unpublished elsewhere")
	}
	n.w.RunFor(max(doubtMs, n.w.s.Params.GraceMaxMs))
	before := n.Steps
	n.w.RunFor(10_000)
	if got, want := Time(n.Steps-before), 10_000/n.stepMs(); got < want-1 {
		t.Errorf("takes %d steps beside one that goes on claiming, want %d", got, want)
	}
}

// The claims of a peer count from when a delta of it is held.
func TestClaimsOfAStranger(t *testing.T) {
	t.Parallel()
	n, o := worker(t, 9, false)
	o.sends(n, wire.Heartbeat{State: wire.Training, Unpublished: n.w.all()})
	if n.w.RunFor(100); !n.may {
		t.Error("believes one of whom no delta came")
	}
}

// No claim counts any more when nothing comes of it.
func TestClaimsAreDoubted(t *testing.T) {
	t.Parallel()
	n, o := worker(t, 9, true)
	w, still := n.w, max(doubtMs, n.w.s.Params.GraceMaxMs)
	claims := func() { o.sends(n, wire.Heartbeat{State: wire.Training, Unpublished: w.all(), PeriodMs: 400}) }
	claims()
	w.RunFor(1000) // what it has is published and folded
	began := w.now
	for !n.may && w.now < began+2*still {
		claims()
		w.RunFor(20)
	}
	if took := w.now - began; took < still-1000 || took > still+200 {
		t.Errorf("doubts after %d ms, want %d", took, still)
	}
	claims()
	if w.RunFor(100); !n.may {
		t.Error("believes again without a delta")
	}
}

func specStopped(t *testing.T, _ *spectest.Spec) {
	w := few(t, 1, 100)
	n := w.nodes[0]
	w.join(NodeSpec{Observer: true})
	p := w.nodes[1]
	said := func() (state wire.State, lag uint8) {
		p.machine.Gossip().Peers().Heartbeats(func(_ wire.PeerID, b *wire.Heartbeat, _ gossip.Time) { state, lag = b.State, b.Lag })
		return state, lag
	}
	w.look(t, "it need not step", 1, 60_000, func() bool { return n.Steps > 0 && !n.may })
	if n.unpublished() == 0 {
		t.Fatal("nothing is left to publish")
	}
	w.RunFor(w.s.Link.LatencyMs + w.s.Link.JitterMs + 1)
	if state, lag := said(); state != wire.Stopped || lag == 0 {
		t.Errorf("says %v at once, and that its digests lag by %d", state, lag)
	}
	w.until(t, "it is finished", 60_000, func() bool { return n.finished })
	if state, lag := said(); state != wire.Stopped || lag != 0 || n.unpublished() > 0 {
		t.Errorf("says %v and lag %d with %d steps unpublished", state, lag, n.unpublished())
	}
}

// A learner that need not step keeps what it has while another one steps, for some heartbeat periods at most.
func specLastSteps(t *testing.T, sp *spectest.Spec) {
	keeps := Time(sp.Number(t, "life", "last steps")) * heartbeat
	for state, steps := range map[wire.State]bool{wire.Training: true, wire.Stopped: false} {
		n, o := worker(t, 9, true)
		o.sends(n, wire.Heartbeat{State: state, Unpublished: n.w.all()})
		n.do(func() { n.machine.Tick(n.clock()) })
		if n.may || n.unpublished() == 0 {
			t.Fatalf("it steps %v, with %d steps unpublished", n.may, n.unpublished())
		}
		n.w.RunFor(keeps / 4)                               // a round whose turn it is takes its delta
		kept, few := n.unpublished(), uint32(len(n.w.plan)) // a round that waits for the other one takes a few later
		if steps != (kept > few) {
			t.Errorf("another one steps %v: %d steps are unpublished", steps, kept)
		}
		if n.w.RunFor(keeps / 2); n.unpublished() != kept {
			t.Errorf("it publishes %d steps while another one steps", kept-n.unpublished())
		}
		if n.w.RunFor(keeps / 2); n.unpublished() > few {
			t.Errorf("%d steps are unpublished after %d ms", n.unpublished(), keeps)
		}
	}
}
