package sim

import (
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/testnet/fault"
)

// quietBefore is how long no tip had changed when the first node says that the run
// is over. during is told of each moment.
func (w *World) quietBefore(t *testing.T, during func()) Time {
	t.Helper()
	n := w.nodes[0]
	_, last := n.machine.View().Digests()
	since := w.now
	w.until(t, "it is over", 400_000, func() bool {
		if _, state := n.machine.View().Digests(); state != last {
			last, since = state, w.now
		}
		if !n.finished {
			during()
		}
		return n.finished
	})
	return w.now - since
}

func specOver(t *testing.T, _ *spectest.Spec) {
	w := few(t, 2, 200)
	n := w.nodes[0]
	if quiet := w.quietBefore(t, func() {}); quiet < quietMs || quiet > quietMs+1000 {
		t.Errorf("over after %d ms", quiet)
	}
	if !n.machine.Rounds().Status().Ended || !n.machine.Rounds().Status().Settled || !w.same() || n.machine.View().State() != wire.Stopped {
		t.Error("over too early")
	}
	w.until(t, "the other is finished", 10_000, w.allFinished)
	// A peer that is there and shows something else holds it, one that has gone or
	// has a fault does not, nor does a stranger without a session.
	for state, holds := range map[wire.State]bool{wire.Training: true, wire.Stopped: true, wire.Leaving: false, wire.Joining: false} {
		for _, met := range []bool{true, false} {
			w := few(t, 1, 100)
			o := w.outsider(9)
			if met {
				o.meets(t, w.nodes[0])
			}
			quiet := w.quietBefore(t, func() { o.sends(w.nodes[0], wire.Heartbeat{State: state}) })
			if (quiet > quietMs+500) != (holds && met) {
				t.Errorf("beside one that says %v, with a session %v, it is over after %d ms", state, met, quiet)
			}
		}
	}
}

// At the end a delta of a closed round comes by gossip for a while, and by repair all the time.
func specLateAtTheEnd(t *testing.T, _ *spectest.Spec) {
	w := few(t, 2, 200)
	a, b := w.nodes[0], w.nodes[1]
	w.until(t, "the end is reached", 60_000, func() bool {
		return a.machine.Rounds().Status().Ended && b.machine.Rounds().Status().Ended
	})
	late := func(number int, n *Node) wire.Digest {
		return w.outsider(number).shows(n, headerAt(0, n.machine.Rounds().Fragment(0).Closed()-1))
	}
	soon := late(9, a)
	w.until(t, "what comes soon is folded", 2000, func() bool { return a.folds(soon) && b.folds(soon) })
	w.partition(Fault{Others: []int{b.index}})
	parted := late(10, b)
	w.RunFor(max(holdUpMs, w.s.Params.GraceMaxMs))
	refused := late(11, a)
	w.RunFor(2000)
	if a.folds(refused) || a.folds(parted) || !b.folds(parted) {
		t.Errorf("late by gossip: folded %v, and soon %v", a.folds(refused), b.folds(parted))
	}
	w.merge()
	w.until(t, "repair brings the other", 30_000, func() bool { return a.folds(parted) && w.same() })
}

// The run is not over while a peer that is heard has not beaten, unless it is silent.
func TestEndWaitsForAFirstHeartbeat(t *testing.T) {
	t.Parallel()
	for _, heard := range []bool{true, false} {
		w := few(t, 1, 100)
		n, o := w.nodes[0], w.outsider(9)
		o.meets(t, n)
		w.RunFor(15 * heartbeat) // it would be silent by now
		quiet := w.quietBefore(t, func() {
			if heard {
				n.machine.Step(n.clock(), gossip.Forwarded{From: o.id})
			}
		})
		if (quiet > quietMs+500) != heard {
			t.Errorf("beside one that has not beaten, heard %v, it is over after %d ms", heard, quiet)
		}
	}
}

// The run is over without the consent of peers that show another end when nothing changes.
func TestEndLingers(t *testing.T) {
	t.Parallel()
	w := few(t, 1, 100)
	o := w.outsider(9)
	o.meets(t, w.nodes[0])
	still := max(holdUpMs, w.s.Params.GraceMaxMs)
	said := false
	once := func() {
		if !said {
			said = true
			o.sends(w.nodes[0], wire.Heartbeat{State: wire.Stopped, PeriodMs: wire.MaxPeriodMs})
		}
	}
	if quiet := w.quietBefore(t, once); quiet > still+500 {
		t.Errorf("over after %d ms beside one that names the longest period, want %d", quiet, still)
	}
	w = few(t, 1, 100)
	o = w.outsider(9)
	o.meets(t, w.nodes[0])
	if quiet := w.quietBefore(t, func() { o.sends(w.nodes[0], wire.Heartbeat{State: wire.Training}) }); quiet < still || quiet > still+500 {
		t.Errorf("over after %d ms, want %d", quiet, still)
	}
}

// A run is over as well where repair with a stranger changes its tips for ever.
func TestEndOutlastsChanges(t *testing.T) {
	t.Parallel()
	s := calmScenario(2, 100)
	s.Founders[1].Attack, s.Founders[1].Observer = Attack{Kind: LateSets}, true
	w := newWorld(t, s)
	n := w.nodes[0]
	w.until(t, "the end is reached", 60_000, func() bool { return n.machine.Rounds().Status().Ended })
	reached, tokens := w.now, n.machine.View().FoldedTokens()
	w.until(t, "it is over", 120_000, func() bool { return n.finished })
	want := 3 * max(holdUpMs, w.s.Params.GraceMaxMs)
	if took := w.now - reached; took < want-500 || took > want+500 {
		t.Errorf("over after %d ms, want %d", took, want)
	}
	if n.machine.View().FoldedTokens() == tokens {
		t.Error("nothing changed meanwhile")
	}
}

// Where addresses change, two that lose each other near the end and are back in time end as one.
// Else each takes the other for gone, and ends with what it has.
func TestBackNearTheEnd(t *testing.T) {
	t.Parallel()
	for away := Time(10 * heartbeat); away <= holdUpMs; away += 5 * heartbeat {
		w := few(t, 2, 200)
		a, b := w.nodes[0], w.nodes[1]
		for _, n := range w.nodes {
			n.machine.Step(n.clock(), gossip.Reached{Public: true})
		}
		most := w.s.Params.Budget
		w.until(t, "the end is near", 60_000, func() bool { return a.machine.View().FoldedTokens() > most*8/10 })
		w.partition(Fault{Others: []int{b.index}})
		w.RunFor(away)
		w.merge()
		w.until(t, "it is over", 120_000, w.allFinished)
		if !w.same() {
			t.Errorf("after %d ms without a connection two end apart", away)
		}
	}
}

// One that does not come back is waited for until a time after its last sign of life.
func TestEndWaitsForThoseThatVanished(t *testing.T) {
	t.Parallel()
	for _, moves := range []bool{false, true} {
		w := few(t, 2, 200)
		a, b := w.nodes[0], w.nodes[1]
		if moves {
			a.machine.Step(a.clock(), gossip.Reached{Public: true})
		}
		w.until(t, "some is folded", 60_000, func() bool { return a.machine.View().FoldedTokens() > 0 })
		quiet := w.quietBefore(t, func() {
			if b.up && a.machine.View().State() == wire.Stopped {
				b.crash()
			}
		})
		if waits := quiet > quietMs+4*heartbeat; waits != moves || quiet > holdUpMs+500 {
			t.Errorf("addresses change %v: over after %d ms", moves, quiet)
		}
	}
}

// endsAfter is how long a lone node stays after its run is over beside a key, which
// during is given with each moment and the time since.
func endsAfter(t *testing.T, prepare func(n *Node, o *outsider), during func(n *Node, o *outsider, since Time)) Time {
	t.Helper()
	w := few(t, 1, 100)
	n, o := w.nodes[0], w.outsider(9)
	prepare(n, o)
	w.until(t, "the run is over", 60_000, func() bool { return n.finished })
	over := w.now
	for !n.machine.View().MayEnd(n.clock()) && w.now < over+900_000 {
		during(n, o, w.now-over)
		w.RunFor(50)
	}
	return w.now - over
}

func asItIs(*Node, *outsider)       {}
func silent(*Node, *outsider, Time) {}

func specLinger(t *testing.T, s *spectest.Spec) {
	linger := s.Number(t, "life", "linger") * heartbeat
	if took := endsAfter(t, asItIs, silent); took < linger || took > linger+100 {
		t.Errorf("stays for %d ms", took)
	}
}

// A node whose run is over stays for peers that lack its end, as long as their session lasts.
func TestStaysForThoseThatLackTheEnd(t *testing.T) {
	t.Parallel()
	for state, waits := range map[wire.State]bool{wire.Joining: true, wire.Training: true, wire.Stopped: true, wire.Observing: true, wire.Leaving: false} {
		for _, session := range []bool{true, false} {
			took := endsAfter(t, func(n *Node, o *outsider) {
				if session {
					o.meets(t, n)
				}
				o.sends(n, wire.Heartbeat{State: wire.Leaving})
			}, func(n *Node, o *outsider, since Time) {
				if since < 2000 {
					o.sends(n, wire.Heartbeat{State: state})
				}
			})
			if (took > lingerMs+500) != (waits && session) {
				t.Errorf("beside one that says %v, in a session %v, it stays for %d ms", state, session, took)
			}
		}
	}
}

// It stays only so long for peers that never send a heartbeat or fall silent.
func TestStaysOnlySoLong(t *testing.T) {
	t.Parallel()
	meets := func(n *Node, o *outsider) { o.meets(t, n) }
	if took := endsAfter(t, meets, silent); took < shareMs+holdUpMs-200 || took > shareMs+holdUpMs+200 {
		t.Errorf("beside one that never sends a heartbeat it stays for %d ms", took)
	}
	// One is heard for a while, and then falls silent.
	const talks = 5000
	took := endsAfter(t, meets, func(n *Node, o *outsider, since Time) {
		if since < talks {
			o.sends(n, wire.Heartbeat{State: wire.Joining})
		}
	})
	if want := Time(talks + silentMs + holdUpMs); took < want-300 || took > want+300 {
		t.Errorf("beside one that falls silent it stays for %d ms, want %d", took, want)
	}
}

func specMiscalculated(t *testing.T, _ *spectest.Spec) {
	s := calmScenario(4, 2000)
	s.Faults = []Fault{{At: 5000, Kind: fault.Miscalculate, Node: 2}}
	w := newWorld(t, s)
	bad := w.nodes[2]
	w.Finish()
	if d := bad.damage; d.repairs == 0 || len(d.verdicts) == 0 || !d.verdicts[0].Own {
		t.Errorf("the node that was wrong repaired %d times and judged %+v", d.repairs, d.verdicts)
	}
	for _, n := range w.nodes {
		if n != bad && n.damage.repairs > 0 {
			t.Errorf("node %d repaired what was not damaged", n.index)
		}
	}
}
