package p2p

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
	c := newTraffic()
	c.track("p")
	c.LogSentMessageStream(3, rpcProtocol, "p")
	c.LogRecvMessageStream(5, rpcProtocol, "stranger")
	if s := c.GetBandwidthForPeer("p"); s.TotalOut != 3 || s.TotalIn != 0 {
		t.Errorf("%+v", s)
	}
	if s := c.GetBandwidthForProtocol(rpcProtocol); s.TotalOut != 3 || s.TotalIn != 5 || c.GetBandwidthTotals().TotalIn != 5 {
		t.Errorf("%+v", s)
	}
	c.leave("p")
	c.LogSentMessageStream(3, rpcProtocol, "p")
	if n := len(c.byPeer()); n != 0 {
		t.Errorf("%d peers, want none", n)
	}
	for range 3 {
		c.track("p")
		c.pass("p")
		c.LogRecvMessageStream(7, rpcProtocol, "p")
		c.leave("p")
	}
	if all := c.byPeer(); len(all) != 1 || all["p"].Received != 21 || len(c.GetBandwidthByPeer()) != 0 {
		t.Errorf("%+v", all)
	}
	for i := range 2 * maxPast {
		p := peer.ID(fmt.Sprint(i))
		c.track(p)
		c.pass(p)
		c.leave(p)
	}
	if n := len(c.byPeer()); n != maxPast {
		t.Errorf("%d peers are kept, want %d", n, maxPast)
	}
}

// What is no request and no answer is taken off what these may have.
func TestTrafficCountsAgainstCaps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for id, want := range map[protocol.ID]time.Duration{rpcProtocol: 0, "gossip": time.Second} {
			c := newTraffic()
			c.caps = caps{up: bulk.NewLimiter(100_000), down: bulk.NewLimiter(100_000)}
			for _, l := range []*bulk.Limiter{c.caps.up, c.caps.down} {
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
