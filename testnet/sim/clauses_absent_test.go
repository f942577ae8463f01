package sim

import (
	"testing"

	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// A key that only says that it learns is not waited for; one that was there from the beginning is at
// first, and so is who gave something, for some rounds each.
func specAbsent(t *testing.T, s *spectest.Spec) {
	missed, first := s.Number(t, "life", "missed"), s.Number(t, "life", "missed at first")
	scenario := calmScenario(2, 400)
	scenario.Params.Fragments = 1
	w := newWorld(t, scenario)
	n, early, later := w.nodes[0], w.outsider(8), w.outsider(9)
	closed := func() int64 { return int64(n.machine.Rounds().Fragment(0).Closed()) }
	rounds := func(many int64, also ...*outsider) {
		t.Helper()
		for end := closed() + many; closed() < end; {
			for _, o := range also {
				o.sends(n, wire.Heartbeat{State: wire.Training})
			}
			w.RunFor(heartbeat / 4)
		}
	}
	waits := func(o *outsider, want bool, when string) {
		t.Helper()
		n.do(func() { n.machine.Tick(n.clock()) })
		if got := !n.machine.View().Absent(o.id); got != want {
			t.Errorf("%s, after %d rounds: rounds wait for it: %v", when, closed(), got)
		}
	}
	early.sends(n, wire.Heartbeat{State: wire.Training})
	waits(early, true, "a founder")
	rounds(first, early)
	waits(early, true, "a founder that missed what it may")
	rounds(1, early)
	waits(early, false, "a founder that gave nothing")
	later.sends(n, wire.Heartbeat{State: wire.Training})
	waits(later, false, "a newcomer that says that it learns")
	later.shows(n, headerAt(0, uint32(closed())))
	w.RunFor(2 * diskMs)
	waits(later, true, "a newcomer that gave a delta")
	came := closed()
	for closed() < came+missed {
		rounds(1, later)
		waits(later, true, "with some rounds missed")
	}
	rounds(1, later)
	waits(later, false, "with too many missed")
	later.shows(n, headerAt(0, uint32(closed())))
	w.RunFor(2 * diskMs)
	waits(later, true, "once it gives another")
}

// Who announces what nobody has is not waited for, long before it missed too many rounds.
func specFailingSource(t *testing.T, s *spectest.Spec) {
	const withholds = 4000
	w := newWorld(t, attackTest{kind: WithholdAll, from: withholds}.scenario(attackSeed))
	n, o := w.nodes[0], w.nodes[honestNodes]
	o.liar.answer = func(_ *liar, _ *Node, q wire.Request, honest []byte) []byte {
		if q.Kind != wire.GetPayload {
			return honest
		}
		return wire.Response{Status: wire.NotFound}.Encode()
	}
	waits := func(x *Node) bool { return !n.machine.View().Absent(x.id) }
	w.RunFor(withholds)
	if !waits(o) {
		t.Fatal("rounds do not wait for one that gives what it announces")
	}
	closed := n.machine.Rounds().Fragment(0).Closed()
	w.until(t, "rounds wait no more for a failing source of payloads", 60_000, func() bool { return !waits(o) })
	if took, most := int64(n.machine.Rounds().Fragment(0).Closed()-closed), s.Number(t, "life", "missed"); took > most/2 {
		t.Errorf("%d rounds waited for it", took)
	}
	for _, x := range w.nodes[1:honestNodes] {
		if !waits(x) {
			t.Errorf("rounds do not wait for node %d", x.index)
		}
	}
}

// A crowd that comes later has no round of a run take longer.
func TestCrowdIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	took := func(crowd int) Time {
		w := few(t, 3, 300)
		w.RunFor(3000)
		var keys []*outsider
		for i := range crowd {
			keys = append(keys, w.outsider(10+i))
		}
		began := w.now
		w.look(t, "some rounds are closed", heartbeat/4, 60_000, func() bool {
			for _, o := range keys {
				for _, n := range w.nodes {
					o.sends(n, wire.Heartbeat{State: wire.Training})
				}
			}
			return w.nodes[0].machine.Rounds().Fragment(0).Closed() >= 12
		})
		return w.now - began
	}
	if calm, crowded := took(0), took(30); crowded > calm*5/4 {
		t.Errorf("twelve rounds take %d ms, %d beside a crowd", calm, crowded)
	}
}
