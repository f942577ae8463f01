package core_test

import (
	"slices"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
	"atoll/node/core"
)

// quietBefore is how long no tip had changed when a node says that the run is
// over, which during is told of each moment.
func (w *world) quietBefore(n *node, during func()) core.Time {
	w.t.Helper()
	_, last := n.machine.Digests()
	since := w.now
	for !n.finished {
		if w.now > start+patience {
			w.fatalf("never over\n%s", w)
		}
		during()
		w.runFor(50)
		if _, state := n.machine.Digests(); state != last {
			last, since = state, w.now
		}
	}
	return w.now - since
}

func specOver(t *testing.T, _ *spectest.Spec) {
	w := newWorld(t, 22, worldConfig{params: budgetOf(200)})
	w.found(2)
	n := w.nodes[0]
	if quiet := w.quietBefore(n, func() {}); quiet < quietMs || quiet > quietMs+1000 {
		t.Errorf("over after %d ms", quiet)
	}
	if !n.machine.Rounds().Ended() || !n.machine.Rounds().Settled() || !w.same() || n.machine.State() != wire.Stopped {
		t.Error("over too early")
	}
	w.runUntil("the other is finished", 10_000, w.allFinished)
	// A peer that is there and shows something else holds it, one that has gone or
	// has a fault does not.
	for state, holds := range map[wire.State]bool{wire.Training: true, wire.Stopped: true, wire.Leaving: false, wire.Joining: false} {
		w := newWorld(t, 22, worldConfig{params: budgetOf(100)})
		w.found(1)
		n := w.nodes[0]
		quiet := w.quietBefore(n, func() { n.says(9, wire.Beat{State: state}) })
		if (quiet > quietMs+500) != holds {
			t.Errorf("beside one that says %v it is over after %d ms", state, quiet)
		}
	}
}

func TestEndNotBeaten(t *testing.T) {
	for _, heard := range []bool{true, false} {
		w := newWorld(t, 22, worldConfig{params: budgetOf(100)})
		w.found(1)
		n := w.nodes[0]
		w.connectsKey(9)
		w.runFor(15 * beat) // it would be silent by now
		quiet := w.quietBefore(n, func() {
			if heard {
				n.machine.Gossip().Alive(w.now, wire.PeerIDOf(testKey(9)))
			}
		})
		if (quiet > quietMs+500) != heard {
			t.Errorf("beside one that has not beaten, heard %v, it is over after %d ms", heard, quiet)
		}
	}
}

func TestEndLingers(t *testing.T) {
	w := newWorld(t, 23, worldConfig{params: budgetOf(100)})
	w.found(1)
	n := w.nodes[0]
	still := max(core.Numbers["linger"]*beat, w.cfg.params.GraceMaxMs)
	if quiet := w.quietBefore(n, func() { n.says(9, wire.Beat{State: wire.Training}) }); quiet < still || quiet > still+500 {
		t.Errorf("over after %d ms, want %d", quiet, still)
	}
}

func specMiscalculated(t *testing.T, _ *spectest.Spec) {
	w := newWorld(t, 41, worldConfig{params: budgetOf(2000)})
	w.found(3)
	w.runFor(5000)
	bad := w.nodes[2]
	w.damages, bad.miscalculates = true, true
	w.runUntil("the wrong state is healed", 10_000, func() bool { return bad.heals > 0 })
	w.runUntil("it has the others' state again", 10_000, func() bool { return bad.equalTo(w.nodes[0]) })
	if len(bad.verdicts) == 0 || !bad.verdicts[0].Own {
		t.Errorf("the node that was wrong judged %+v", bad.verdicts)
	}
	for _, n := range w.nodes[:2] {
		if n.heals > 0 || slices.ContainsFunc(n.verdicts, func(v core.Verdict) bool { return v.Own || v.Peer != bad.id }) {
			t.Errorf("node %d judged %+v and healed %d", n.index, n.verdicts, n.heals)
		}
	}
}

// endsAfter is how long a lone node stays after its run is over, where during is
// told of each moment, and of the time since.
func endsAfter(t *testing.T, seed uint64, prepare func(w *world), during func(w *world, n *node, since core.Time)) core.Time {
	t.Helper()
	w := newWorld(t, seed, worldConfig{params: budgetOf(100)})
	w.found(1)
	prepare(w)
	n := w.nodes[0]
	w.runUntil("the run is over", patience, func() bool { return n.finished })
	over := w.now
	for !n.machine.MayEnd(w.now) && w.now < over+2*patience {
		during(w, n, w.now-over)
		w.runFor(50)
	}
	return w.now - over
}

func specFarewell(t *testing.T, s *spectest.Spec) {
	farewell := s.Number(t, "life", "farewell") * beat
	if took := endsAfter(t, 24, func(*world) {}, func(*world, *node, core.Time) {}); took < farewell || took > farewell+100 {
		t.Errorf("stays for %d ms", took)
	}
}

func TestEndLacks(t *testing.T) {
	s := spectest.Load(t)
	farewell := s.Number(t, "life", "farewell") * beat
	silent := func(*world, *node, core.Time) {}
	if took := endsAfter(t, 25, func(w *world) { w.connectsKey(9) }, silent); took < farewell+1000 {
		t.Errorf("beside one that never beats it stays for %d ms", took)
	}
	for state, waits := range map[wire.State]bool{wire.Joining: true, wire.Training: true, wire.Stopped: true, wire.Observing: true, wire.Leaving: false} {
		beside := func(session bool) core.Time {
			return endsAfter(t, 25, func(w *world) {
				if session {
					w.connectsKey(9)
				}
				w.nodes[0].says(9, wire.Beat{State: wire.Leaving})
			}, func(_ *world, n *node, since core.Time) {
				if since < 2000 {
					n.says(9, wire.Beat{State: state})
				}
			})
		}
		if took := beside(true); (took > farewell+500) != waits {
			t.Errorf("beside one that says %v it stays for %d ms", state, took)
		}
		if took := beside(false); took > farewell+500 {
			t.Errorf("without a session with one that says %v it stays for %d ms", state, took)
		}
	}
}

func TestEndShares(t *testing.T) {
	s := spectest.Load(t)
	share, linger := core.Numbers["share"], core.Numbers["linger"]*beat
	if took := endsAfter(t, 25, func(w *world) { w.connectsKey(9) }, func(*world, *node, core.Time) {}); took < share+linger-200 || took > share+linger+200 {
		t.Errorf("beside one that never beats it stays for %d ms", took)
	}
	// One is heard for a while, and then falls silent.
	const talks = 5000
	took := endsAfter(t, 25, func(w *world) { w.connectsKey(9) }, func(_ *world, n *node, since core.Time) {
		if since < talks {
			n.says(9, wire.Beat{State: wire.Joining})
		}
	})
	if want := talks + s.Number(t, "beats", "silent")*beat + linger; took < want-300 || took > want+300 {
		t.Errorf("beside one that falls silent it stays for %d ms, want %d", took, want)
	}
}

// connectsKey begins a session of the first node with a key that is nobody's.
func (w *world) connectsKey(key int) {
	p := newNode(w, 9, nodeConfig{})
	p.key, p.id = testKey(key), wire.PeerIDOf(testKey(key))
	signed, record := p.record()
	n := w.nodes[0]
	n.do(func() { n.machine.PeerUp(w.now, p.id, signed, record, hello.Session{}) })
}
