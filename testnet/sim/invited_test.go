package sim

import (
	"fmt"
	"testing"
)

// invited makes a world admit by invitation.
func invited(s *Scenario) { s.Invited = true }

// A run that admits by invitation goes as one that is open.
func TestInvitedRun(t *testing.T) {
	s := calmScenario(4, 200)
	invited(&s)
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
// which it is honest, and in which nobody lets it in either.
func TestOutsidersChangeNothing(t *testing.T) {
	for _, a := range attackTests {
		if a.seed != 0 || a.ahead != 0 {
			continue // storms and long chains are of no more use to who is not let in
		}
		t.Run(a.name, func(t *testing.T) {
			s := a.scenario(attackSeed)
			invited(&s)
			s.Founders[honestNodes].Outsider = true
			w := withOutsider(t, s)
			if w.Err() != nil {
				t.Fatal(w.Err())
			}
			s.Founders[honestNodes].Attack = Attack{}
			calm := withOutsider(t, s)
			if got, want := cameTo(w), cameTo(calm); got != want {
				t.Errorf("the world ends as %s, without the attack as %s", got, want)
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
