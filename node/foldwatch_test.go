package node

import (
	"testing"
	"time"
)

// It is said once that nothing is folded for three rounds while two nodes train, and again after the next fold.
func TestFoldWatch(t *testing.T) {
	began := time.Unix(1000, 0)
	for name, c := range map[string]struct {
		training, foldEvery int // seconds
		round               time.Duration
		said                []int // at which seconds
	}{
		"goes on":      {2, 36, 12 * time.Second, nil},
		"stalls":       {2, 60, 12 * time.Second, []int{37, 97}},
		"alone":        {1, 1000, 12 * time.Second, nil},
		"short rounds": {3, 1000, time.Millisecond, []int{31}},
		"long rounds":  {3, 1000, time.Minute, nil},
	} {
		var w foldWatch
		var tokens uint64
		var said []int
		for s := range 120 {
			if s%c.foldEvery == 0 {
				tokens++
			}
			quiet, stalled := w.look(began.Add(time.Duration(s)*time.Second), tokens, c.training, c.round)
			if stalled {
				said = append(said, s)
			}
			if want := time.Duration(s%c.foldEvery) * time.Second; c.training > 1 && quiet != want {
				t.Fatalf("%s: at %d s nothing was folded for %v, not %v", name, s, quiet, want)
			}
		}
		if len(said) != len(c.said) {
			t.Errorf("%s: said at %v, not at %v", name, said, c.said)
			continue
		}
		for i := range said {
			if said[i] != c.said[i] {
				t.Errorf("%s: said at %v, not at %v", name, said, c.said)
			}
		}
	}
}
