package sim

import (
	"math"
	"testing"
)

// linked are nodes that talk over links of their own and have nothing else to say.
func linked(t *testing.T, links ...Link) *World {
	t.Helper()
	s := calmScenario(len(links), 1000)
	s.HeartbeatMs = 60_000
	for i, l := range links {
		s.Founders[i] = NodeSpec{Link: l, Observer: i > 0, Slow: 1_000_000}
	}
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	w.RunFor(2000)
	return w
}

// carry sends so many bytes from one node to another, and notes when the last has left.
func (w *World) carry(from, to int, size int, at *Time) *exchange {
	x := &exchange{by: w.nodes[to], to: w.nodes[from]}
	began := w.now
	w.sends(w.nodes[from], transfer{call: x, left: func() { *at = w.now - began }, cut: func() { *at = -1 }}, size)
	return x
}

func near(t *testing.T, what string, got, want Time) {
	t.Helper()
	if math.Abs(float64(got-want)) > 0.01*float64(want)+2 {
		t.Errorf("%s after %d ms, want %d", what, got, want)
	}
}

const mega = 1_000_000

// Answers to several peers share the uplink, and when one has left the others have its part.
func TestBulkSharesTheUplink(t *testing.T) {
	t.Parallel()
	w := linked(t, Link{BytesMs: 1000}, Link{}, Link{})
	var a, b Time
	w.carry(0, 1, mega, &a)
	w.carry(0, 2, 2*mega, &b)
	w.RunFor(10_000)
	near(t, "the short one left", a, 2000)
	near(t, "the long one left", b, 3000)
}

// Two answers to one peer have half of what its stream has; the third peer has as much as
// both.
func TestStreamsAreEqual(t *testing.T) {
	t.Parallel()
	w := linked(t, Link{BytesMs: 1000}, Link{}, Link{})
	var a, b, c Time
	w.carry(0, 1, mega, &a)
	w.carry(0, 1, mega, &b)
	w.carry(0, 2, 2*mega, &c)
	w.RunFor(10_000)
	near(t, "one", a, 4000)
	near(t, "its brother", b, 4000)
	near(t, "the other peer's", c, 4000)
}

// A downlink is shared as an uplink is. What a sender cannot give there it gives to others.
func TestBulkIsMaxMinFair(t *testing.T) {
	t.Parallel()
	w := linked(t, Link{BytesMs: 1000}, Link{BytesMs: 1000}, Link{DownMs: 400}, Link{})
	var thin, thin2, wide Time
	w.carry(0, 2, mega, &thin)
	w.carry(1, 2, mega, &thin2)
	w.carry(0, 3, 4*mega, &wide)
	w.RunFor(20_000)
	near(t, "over the thin downlink", thin, 5000)
	near(t, "of the other", thin2, 5000)
	near(t, "over what is left", wide, 5000)
}

// Something small waits for the queue that bulk makes, and for no more; bulk has the rest.
func TestSmallThingsGoAheadOfBulk(t *testing.T) {
	t.Parallel()
	w := linked(t, Link{BytesMs: 1000}, Link{})
	n := w.nodes[0]
	var a Time
	w.carry(0, 1, mega, &a)
	w.RunFor(10)
	if got := n.departs(100_000) - w.now; got != queueTargetMs+100 {
		t.Errorf("100 kB in one piece left after %d ms, want %d", got, queueTargetMs+100)
	}
	w.RunFor(5000)
	near(t, "bulk left", a, 1100)
	if got := n.departs(1000) - w.now; got != 1 {
		t.Errorf("a kilobyte on a free link left after %d ms", got)
	}
}

// An answer that nobody waits for leaves its part to others; one that nothing gets through
// stands still and goes on.
func TestBulkEndsAndStalls(t *testing.T) {
	t.Parallel()
	w := linked(t, Link{BytesMs: 1000}, Link{}, Link{})
	var a, b Time
	x := w.carry(0, 1, mega, &a)
	w.carry(0, 2, mega, &b)
	w.RunFor(500)
	w.cancel(x)
	w.RunFor(250)
	if a != -1 {
		t.Error("the sender does not hear that the asker is gone")
	}
	w.partition(Fault{Others: []int{2}})
	w.flow()
	w.RunFor(1000)
	w.merge()
	w.flow()
	w.RunFor(5000)
	near(t, "the other left", b, 250+1000+500+500)
}

// The uplink is measured over all peers, whatever the demand is and whatever they can take, and
// shows a fall.
func TestUploadIsMeasured(t *testing.T) {
	t.Parallel()
	w := linked(t, Link{BytesMs: 1000}, Link{}, Link{}, Link{DownMs: 100})
	n := w.nodes[0]
	var at Time
	for range 20 { // a tenth of what it carries
		w.carry(0, 1, mega/20, &at)
		w.carry(0, 2, mega/20, &at)
		w.RunFor(1000)
	}
	if got := n.gauge.value(); got < 950 || got > 1001 {
		t.Errorf("measured %.0f bytes/ms of 1000", got)
	}
	w.carry(0, 3, mega/2, &at)
	w.RunFor(6000)
	if got := n.gauge.value(); got < 950 {
		t.Errorf("measured %.0f bytes/ms after bulk to a thin peer", got)
	}
	n.befell = Link{BytesMs: 50}
	n.setLink()
	w.carry(0, 1, mega, &at)
	w.RunFor(4000)
	if got := n.gauge.value(); got > 100 {
		t.Errorf("measures %.0f bytes/ms 4 s after the link fell to 50", got)
	}
}

// What befalls a link is over what the node has of its own, and that over what all have; in
// the end all is as at the start.
func TestLinksOfNodes(t *testing.T) {
	t.Parallel()
	s := withFaults(t, 3, 20, "link 1 up=8mbit,delay=40ms @1s..3s, network latency 5ms downlink 500kB/s @2s..4s")
	s.Founders[1].Link = Link{BytesMs: 2000, DownMs: 3000}
	s.Founders[2].Link = Link{LatencyMs: 100}
	w, err := New(s)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []struct {
		at       Time
		own, far Link // of nodes 1 and 2
	}{
		{500, Link{LatencyMs: 10, JitterMs: 5, BytesMs: 2000, DownMs: 3000}, Link{LatencyMs: 100, JitterMs: 5}},
		{1500, Link{LatencyMs: 40, JitterMs: 5, BytesMs: 1000, DownMs: 3000}, Link{LatencyMs: 100, JitterMs: 5}},
		{2500, Link{LatencyMs: 40, BytesMs: 1000, DownMs: 3000}, Link{LatencyMs: 100, DownMs: 500}},
		{3500, Link{LatencyMs: 5, BytesMs: 2000, DownMs: 3000}, Link{LatencyMs: 100, DownMs: 500}},
		{4500, Link{LatencyMs: 10, JitterMs: 5, BytesMs: 2000, DownMs: 3000}, Link{LatencyMs: 100, JitterMs: 5}},
	} {
		w.RunFor(Start + want.at - w.now)
		if w.nodes[1].link != want.own || w.nodes[2].link != want.far {
			t.Errorf("at %d ms: %+v and %+v, want %+v and %+v", want.at, w.nodes[1].link, w.nodes[2].link, want.own, want.far)
		}
	}
}
