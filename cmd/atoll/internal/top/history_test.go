package top

import (
	"math"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"atoll/node/status"
)

// A curve stays bounded, in order, and keeps its first and its newest value.
func TestCurveIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var c curve
		n := rapid.IntRange(1, 4*maxPoints).Draw(t, "values")
		for i := range n {
			c.add(uint64(i+1), float64(i+1))
		}
		if len(c.At) > maxPoints || c.At[0] != 1 || c.last() != float64(n) {
			t.Fatalf("%d points from %d to %v", len(c.At), c.At[0], c.last())
		}
		for i := 1; i < len(c.At); i++ {
			if c.At[i] <= c.At[i-1] || c.Value[i] != float64(c.At[i]) {
				t.Fatalf("point %d: %v at %d", i, c.Value[i], c.At[i])
			}
		}
	})
	var c curve
	for _, v := range []float64{0, -1, math.NaN(), math.Inf(1)} {
		c.add(5, v)
	}
	if c.add(5, 1); len(c.At) != 1 {
		t.Errorf("%+v", c)
	}
	if c.add(5, 2); len(c.At) != 1 {
		t.Errorf("the same place twice: %+v", c)
	}
}

// A plot has a dot in every column of a falling curve, the first at the top and the last at the bottom.
func TestPlot(t *testing.T) {
	c := curve{status.Curve{At: []uint64{0, 50, 100}, Value: []float64{3, 2, 1}}}
	rows := c.plot(10, 3, 1, 3)
	for i, row := range rows {
		if n := utf8.RuneCountInString(row); n != 10 {
			t.Errorf("row %d has %d columns", i, n)
		}
	}
	if want := []string{"⠉⠢⢄⠀⠀⠀⠀⠀⠀⠀", "⠀⠀⠀⠉⠢⢄⡀⠀⠀⠀", "⠀⠀⠀⠀⠀⠀⠈⠑⠢⢄"}; strings.Join(rows, "\n") != strings.Join(want, "\n") {
		t.Errorf("%s", strings.Join(rows, "\n"))
	}
	if low, high := c.span(); low != 1 || high != 3 {
		t.Errorf("few values: %v to %v", low, high)
	}
	var long curve
	for i := range 100 {
		long.add(uint64(i), 1+9/float64(i+1))
	}
	if low, high := long.span(); low != long.last() || high > 2 {
		t.Errorf("the first tenth sets the range: %v to %v", low, high)
	}
	flat := curve{status.Curve{At: []uint64{7}, Value: []float64{2}}}
	if low, high := flat.span(); !(low < 2 && 2 < high) {
		t.Errorf("one value spans %v to %v", low, high)
	}
}

// The curve is of what says most: held-out text before what heartbeats say before the loss of batches.
func TestBestCurve(t *testing.T) {
	for want, change := range map[curveKind]func(*status.Snapshot){
		heldOutBits:   func(s *status.Snapshot) { s.ValBPB, s.ValLoss = 2, 3 },
		heldOutLoss:   func(s *status.Snapshot) { s.ValLoss = 3 },
		heartbeatBits: func(s *status.Snapshot) { s.Peers = []status.Peer{{}, {Bits: 2}} },
		trainingLoss:  func(*status.Snapshot) {},
	} {
		s := status.Snapshot{Progress: status.Progress{TokensFolded: 5, ValAtTokens: 5, TrainLoss: 4}}
		change(&s)
		var h History
		h.Add(start, []Node{{Running: true, Status: s}})
		if kind, c := h.bestCurve(); c == nil || kind != want {
			t.Errorf("kind %d, want %d", kind, want)
		}
	}
}

func TestRates(t *testing.T) {
	var m meter
	if _, _, known := m.rates(); known {
		t.Error("known before anything was polled")
	}
	at := func(second int, sent, received uint64) {
		s := status.Snapshot{Identity: status.Identity{At: start.Add(time.Duration(second) * time.Second)}}
		s.Net.SentBytes, s.Net.ReceivedBytes = sent, received
		m.add(s)
	}
	at(0, 0, 1000)
	at(0, 0, 1000) // the same status once more
	for second := 1; second <= 30; second++ {
		at(second, uint64(100*second), 1000)
	}
	if up, down, known := m.rates(); up != 100 || down != 0 || !known || len(m.samples) > 12 {
		t.Errorf("%v up, %v down, %v, of %d samples", up, down, known, len(m.samples))
	}
	at(31, 5, 5) // the process has started again
	if _, _, known := m.rates(); known {
		t.Error("known across a start")
	}
}

// Rounds are fresh for a moment after they close, and not at the first poll.
func TestFreshRounds(t *testing.T) {
	var h History
	add := func(second int, closed ...uint32) {
		var s status.Snapshot
		for _, c := range closed {
			s.Fragments = append(s.Fragments, status.Fragment{Closed: c})
		}
		h.Add(start.Add(time.Duration(second)*time.Second), []Node{{Running: true, Status: s}})
	}
	add(0, 5, 7)
	if h.fresh(0) || h.fresh(1) {
		t.Error("fresh at the first look")
	}
	add(1, 6, 7)
	if !h.fresh(0) || h.fresh(1) {
		t.Error("fragment 0 alone has closed a round")
	}
	if add(9, 6, 7); h.fresh(0) || h.fresh(2) {
		t.Error("fresh after eight seconds")
	}
}

func TestGoodput(t *testing.T) {
	s := status.Snapshot{Progress: status.Progress{TokensPerS: 90}, Peers: []status.Peer{{TokensPerS: 60}, {TokensPerS: 60}, {State: status.Gone}}}
	if got := goodput(s); got != 0.75 {
		t.Errorf("goodput %v", got)
	}
	s.TokensPerS = 1000
	if got := goodput(s); got != 1 {
		t.Errorf("goodput %v", got)
	}
	if s.Finished = true; goodput(s) != 0 {
		t.Error("of a run that is over")
	}
}

// What does not pass by itself comes first, and of nodes that do not run there are no alarms.
func TestAlarms(t *testing.T) {
	h := scenes["alarm"]()
	if want := "state differs " + short(id(2)) + ": "; !strings.HasPrefix(h.alarm(), want) {
		t.Errorf("%q, want %q", h.alarm(), want)
	}
	h.nodes = append(h.nodes, scenes["partition"]().nodes...)
	if want := "node0: state differs "; !strings.HasPrefix(h.alarm(), want) {
		t.Errorf("%q, want %q", h.alarm(), want)
	}
	h.nodes = h.nodes[1:]
	if want := "silent: 2 of 3 peers not heard (" + short(id(2)) + ", " + short(id(3)) + ")"; !strings.HasPrefix(h.alarm(), want) {
		t.Errorf("%q, want %q", h.alarm(), want)
	}
	if h.nodes[0].Running = false; h.alarm() != "" {
		t.Errorf("of a node that is gone: %s", h.alarm())
	}
}
