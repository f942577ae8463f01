package status

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// The history of a run of any length has a bounded number of points in the order of
// time, of which the first and the last are those of the run.
func TestHistoryIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var h History
		var at int64
		var got []Point
		steps := rapid.SliceOfN(rapid.Int64Range(0, 5000), 1, 3000).Draw(t, "steps")
		for _, step := range steps {
			at += step
			got = h.Until(Point{AtMs: at})
		}
		if len(got) > historyPoints+1 {
			t.Fatalf("%d points, of at most %d", len(got), historyPoints+1)
		}
		if got[0].AtMs != steps[0] || got[len(got)-1].AtMs != at {
			t.Fatalf("from %d to %d, the run from %d to %d", got[0].AtMs, got[len(got)-1].AtMs, steps[0], at)
		}
		if !slices.IsSortedFunc(got, func(a, b Point) int { return int(a.AtMs - b.AtMs) }) {
			t.Fatal("points are not in the order of time")
		}
	})
}

// A history of statuses that come evenly stays even, however long it is.
func TestHistoryStaysEven(t *testing.T) {
	var h History
	for second := range int64(10_000) {
		h.Add(Point{AtMs: 1000 * second, Tokens: uint64(second)})
	}
	for i := 1; i < len(h.points); i++ {
		if gap := h.points[i].AtMs - h.points[i-1].AtMs; gap != h.gapMs {
			t.Fatalf("%d ms between points %d and %d, elsewhere %d", gap, i-1, i, h.gapMs)
		}
	}
	if n := len(h.points); n < historyPoints/2 {
		t.Errorf("%d points are left, want %d or more", n, historyPoints/2)
	}
}

// A time in which nothing happens takes two points, however long it is, and the end of a run is before it.
func TestHistoryOfAFinishedRun(t *testing.T) {
	var h History
	var points []Point
	for second := range int64(10_000) {
		points = h.Until(Point{AtMs: 1000 * second, Tokens: 7 + uint64(min(second, 100))})
	}
	if began, ended := Span(points); len(points) != 102 || began != (Point{Tokens: 7}) || ended != (Point{AtMs: 100_000, Tokens: 107}) {
		t.Errorf("%d points, from %+v to %+v", len(points), began, ended)
	}
	if began, ended := Span(nil); began != (Point{}) || ended != (Point{}) {
		t.Errorf("from %+v to %+v where nothing is known", began, ended)
	}
}

// A node that comes back goes on with the curve that it left, as often as before.
func TestHistoryIsRestored(t *testing.T) {
	var h History
	var left []Point
	for second := range int64(1000) {
		left = h.Until(Point{AtMs: 1000*second + 1, Tokens: uint64(second)})
	}
	again := RestoreHistory(left)
	if again.gapMs != h.gapMs {
		t.Errorf("a point every %d ms, before it was every %d", again.gapMs, h.gapMs)
	}
	if !slices.Equal(again.points, h.points) {
		t.Errorf("%d points, before there were %d", len(again.points), len(h.points))
	}
	if later := again.Until(Point{AtMs: 1 << 40}); len(later) != len(h.points)+1 {
		t.Errorf("%d points after one more, want %d", len(later), len(h.points)+1)
	}
}

func TestPointOf(t *testing.T) {
	s := snapshot()
	s.TokensFolded, s.ValBPB, s.ValLoss, s.ValAtTokens, s.TokensPerS, s.TrainLoss = 9, 2.5, 7, 8, 3, 1.5
	want := Point{AtMs: s.At.UnixMilli(), Tokens: 9, Val: 2.5, ValAt: 8, PerS: 3, Loss: 1.5}
	if got := PointOf(s); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	s.ValBPB, want.Val = 0, 7
	if got := PointOf(s); got != want {
		t.Errorf("where tokens are no bytes %+v, want %+v", got, want)
	}
}

// A clock that was years off, either way, leaves nothing that a right one cannot go on from.
func TestKeptByAWrongClock(t *testing.T) {
	made := time.UnixMilli(1_700_000_000_000)
	now := made.Add(time.Hour)
	at := func(d time.Duration) int64 { return made.Add(d).UnixMilli() }
	k := Kept{
		History: []Point{{AtMs: 5}, {AtMs: at(0)}, {AtMs: at(time.Minute)}, {AtMs: at(2 * time.Hour)}},
		Heard:   map[string]Heard{"early": {AtMs: 5}, "right": {AtMs: at(time.Minute)}, "late": {AtMs: at(2 * time.Hour)}},
	}
	got := k.Between(made, now)
	h := RestoreHistory(got.History)
	if points := h.Until(Point{AtMs: now.UnixMilli(), Tokens: 1}); len(points) != 3 || points[0].AtMs != at(0) || points[2].Tokens != 1 {
		t.Errorf("history %+v", points)
	}
	if len(got.Heard) != 1 || got.Heard["right"].AtMs == 0 || len(k.Heard) != 3 {
		t.Errorf("heard %+v", got.Heard)
	}
}
