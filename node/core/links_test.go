package core

import (
	"testing"

	"pgregory.net/rapid"
)

// One claim counts for at most claimMost times the lower median, whatever it is.
func TestClaimsAreCapped(t *testing.T) {
	for _, c := range []struct {
		claims []float64
		want   float64
	}{
		{nil, 0},
		{[]float64{7}, 7},
		{[]float64{20, 100}, 100},
		{[]float64{20, 81}, 100},
		{[]float64{5, 100, 100, 100}, 305},
		{[]float64{1e300, 20, 20, 20}, 140},
	} {
		if got := sumCapped(c.claims); got != c.want {
			t.Errorf("%v: %v, want %v", c.claims, got, c.want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		honest := rapid.SliceOfN(rapid.Float64Range(10, 40), 3, 20).Draw(t, "honest")
		sum := sumCapped(append([]float64{}, honest...))
		liar := rapid.Float64Range(0, 1e12).Draw(t, "liar")
		if got := sumCapped(append(honest, liar)); got < sum || got > sum+claimMost*40 {
			t.Fatalf("%v with a claim of %v: %v, without it %v", honest, liar, got, sum)
		}
	})
}

// Uplinks that never were full count as the others do, or as what they have carried.
func TestUnknownUplinks(t *testing.T) {
	var l links
	if l.upload() != 0 {
		t.Error("something is known of nothing")
	}
	l.carries(40, false)
	if l.upload() != 0 {
		t.Error("one that carries 40 or more says how much all carry")
	}
	for _, up := range []float64{10, 20} {
		l.carries(up, true)
	}
	for _, least := range []float64{0, 14, 1e9} {
		l.carries(least, false)
	}
	if got := l.upload(); got != 10+20+40+15+15+80 { // the usual is 20
		t.Errorf("six uplinks, two that carry 10 and 20, others at least 40, 0, 14 and 1e9: %v, want 180", got)
	}
	var honest links // whose links were never full, and one that claims to carry next to nothing
	for range 5 {
		honest.carries(1e6, false)
	}
	honest.carries(1, true)
	if got, sweep := honest.upload(), honest.sweepMs(1e6); got < 5e6 || sweep > 4000*Time(honest.others+1) {
		t.Errorf("five that carried 1e6 and a liar: %v together, a sweep takes %d ms", got, sweep)
	}
}

// Few peers are looked at as often as they heartbeat, many more seldom, and invented ones stop no look.
func TestLooksAtLinks(t *testing.T) {
	for peers, want := range map[int]Time{0: linksMs, 25: linksMs, 300: 6000, 4096: linksMostMs} {
		if got := linksEvery(peers); got != want {
			t.Errorf("%d peers: every %d ms, want %d", peers, got, want)
		}
	}
}
