package sim

import (
	"fmt"
	"testing"
)

// A run that admits by invitation goes as one that is open.
func TestInvitedRun(t *testing.T) {
	s := calmScenario(4, 200)
	s.Open = false
	w := newWorld(t, s)
	w.Finish()
	if w.Err() != nil {
		t.Fatal(w.Err())
	}
	for _, n := range w.nodes {
		if known := len(n.members.All()); known != 4 {
			t.Errorf("node %d knows %d certificates", n.index, known)
		}
		if n.disk.NextSeq() < 2 {
			t.Errorf("node %d published %d deltas", n.index, n.disk.NextSeq()-1)
		}
	}
}

// An outsider changes nothing at all, whatever it does: the others end with the bits of a world in
// which it is honest, and in which nobody lets it in either. ATOLL_LONG=1 plays all attacks, else a ninth.
func TestOutsidersChangeNothing(t *testing.T) {
	t.Parallel()
	calm, met := map[string]string{}, map[AttackKind]bool{}
	for _, a := range attackTests {
		if met[a.kind] || a.kind == Garbage || a.kind == Noise || len(a.scenario(attackSeed).Founders) != honestNodes+1 {
			continue // garbage and noise are drawn with the world's own dice, which the links are as well
		}
		met[a.kind] = true
		if !taken(len(met), 9) {
			continue
		}
		t.Run(string(a.kind), func(t *testing.T) {
			s := a.scenario(attackSeed)
			s.Open = false
			s.Founders[honestNodes].Outsider = true
			w := withOutsider(t, s)
			if w.Err() != nil {
				t.Fatal(w.Err())
			}
			s.Founders[honestNodes].Attack = Attack{}
			key := fmt.Sprintf("%+v", s)
			if calm[key] == "" {
				calm[key] = cameTo(withOutsider(t, s))
			}
			if got := cameTo(w); got != calm[key] {
				t.Errorf("the world ends as %s, without the attack as %s", got, calm[key])
			}
			for reason, n := range w.checks.caught {
				t.Errorf("%d x %s: an outsider was heard", n, reason)
			}
		})
	}
}

// withOutsider plays a world until those who are in it have ended.
func withOutsider(t *testing.T, s Scenario) *World {
	t.Helper()
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	w.RunUntil(Start+s.LimitMs, func() bool {
		for _, n := range w.nodes[:honestNodes] {
			if !n.finished {
				return false
			}
		}
		return true
	})
	return w
}

// cameTo is what honest nodes came to.
func cameTo(w *World) (text string) {
	for _, n := range w.nodes[:honestNodes] {
		for f := range w.plan {
			tip := n.machine.Rounds().Fragment(f).Tip()
			text += fmt.Sprintf("%d:%x ", tip.Round, tip.State[:4])
		}
		text += fmt.Sprintf("%d steps %d bytes in; ", n.Steps, n.BytesIn)
	}
	return text
}
