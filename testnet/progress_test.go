package testnet

import (
	"testing"
	"time"
)

// However long a run is, its points are few and lie evenly.
func TestProgressIsThinned(t *testing.T) {
	var p progress
	for i := range 10 * maxPoints {
		p.add(time.Duration(i)*pollEvery, uint64(i))
	}
	if n := len(p.points); n < maxPoints/2 || n > maxPoints {
		t.Fatalf("%d points", n)
	}
	for i, at := range p.points[1:] {
		if gap := at.AtS - p.points[i].AtS; gap < 2*pollEvery.Seconds() || gap > 32*pollEvery.Seconds() {
			t.Errorf("points %v s apart at %v s", gap, at.AtS)
		}
		if at.AtS != float64(at.Tokens)*pollEvery.Seconds() {
			t.Errorf("%d tokens at %v s", at.Tokens, at.AtS)
		}
	}
}
