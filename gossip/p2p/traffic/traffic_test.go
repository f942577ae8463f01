package traffic

import (
	"fmt"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/p2p/bulk"
)

// waits is the protocol of what waits for caps.
const waits = protocol.ID("waits")

func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m meter
		for range 1000 {
			m.add(1000, time.Now())
			time.Sleep(100 * time.Millisecond)
		}
		if got := m.rateAt(time.Now()); m.bytes != 1e6 || math.Abs(got-10_000) > 200 {
			t.Errorf("%d bytes, %.0f bytes/s; want 1000000 and 10000", m.bytes, got)
		}
		time.Sleep(rateMemory)
		if got := m.rateAt(time.Now()); math.Abs(got-10_000/math.E) > 200 {
			t.Errorf("%.0f bytes/s after a pause of one time constant", got)
		}
	})
}

// A stranger is forgotten, and a peer that passed the handshake is not: it goes on where it was.
func TestTrafficForgetsStrangers(t *testing.T) {
	c := New(nil, nil, waits)
	c.Track("p")
	c.LogSentMessageStream(3, waits, "p")
	c.LogRecvMessageStream(5, waits, "stranger")
	if s := c.GetBandwidthForPeer("p"); s.TotalOut != 3 || s.TotalIn != 0 {
		t.Errorf("%+v", s)
	}
	if s := c.GetBandwidthForProtocol(waits); s.TotalOut != 3 || s.TotalIn != 5 || c.GetBandwidthTotals().TotalIn != 5 {
		t.Errorf("%+v", s)
	}
	c.Leave("p")
	c.LogSentMessageStream(3, waits, "p")
	if n := len(c.ByPeer()); n != 0 {
		t.Errorf("%d peers, want none", n)
	}
	for range 3 {
		c.Track("p")
		c.Pass("p")
		c.LogRecvMessageStream(7, waits, "p")
		c.Leave("p")
	}
	if all := c.ByPeer(); len(all) != 1 || all["p"].Received != 21 || len(c.GetBandwidthByPeer()) != 0 {
		t.Errorf("%+v", all)
	}
	for i := range 2 * maxPast {
		p := peer.ID(fmt.Sprint(i))
		c.Track(p)
		c.Pass(p)
		c.Leave(p)
	}
	if n := len(c.ByPeer()); n != maxPast {
		t.Errorf("%d peers are kept, want %d", n, maxPast)
	}
}

// What is no request and no answer is taken off what these may have.
func TestTrafficCountsAgainstCaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for id, want := range map[protocol.ID]time.Duration{waits: 0, "gossip": time.Second} {
			c := New(bulk.NewLimiter(100_000), bulk.NewLimiter(100_000), waits)
			for _, l := range []*bulk.Limiter{c.up, c.down} {
				c.LogSentMessageStream(1<<30, id, "p")
				c.LogRecvMessageStream(1<<30, id, "p")
				began := time.Now()
				if err := l.Wait(t.Context(), 1); err != nil {
					t.Fatal(err)
				}
				if took := time.Since(began); took < want || want == 0 && took > 0 {
					t.Errorf("after %q it took %v", id, took)
				}
			}
		}
	})
}
