package p2p

import (
	"context"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
)

// gossips reports whether gossip on a has a stream to b and knows that b listens.
func gossips(a, b *Host) bool { return slices.Contains(a.topic.ListPeers(), b.pid) }

// checkGossip fails unless gossip flows both ways within the time that a redial and
// a dead connection's end may take.
func checkGossip(t *testing.T, a, b *Host) {
	t.Helper()
	for range 100 {
		time.Sleep(helloTimeout / 100)
		drain(a)
		drain(b)
		if gossips(a, b) && gossips(b, a) {
			return
		}
	}
	t.Errorf("connected %v, %v; gossip flows %v, %v", len(a.Connected()), len(b.Connected()), gossips(a, b), gossips(b, a))
}

// Gossip forgets a peer's subscriptions with its own stream to it; the peer does
// not repeat them on a stream of its own that stays.
func TestGossipLostOnAConnectionThatStays(t *testing.T) {
	inPair(t, rate, func(t *testing.T, b, a *Host) {
		checkGossip(t, a, b)
		for _, s := range a.host.Network().ConnsToPeer(b.pid)[0].GetStreams() {
			if strings.HasPrefix(string(s.Protocol()), "/meshsub/") && s.Stat().Direction == network.DirOutbound {
				s.Reset()
			}
		}
		time.Sleep(10 * delay)
		checkGossip(t, a, b)
	})
}

// On the internet a connection may be through a hole that nobody can punch again. However often
// streams of gossip end, on either side and at any moment, gossip flows again both ways, and
// the connection stays.
func TestGossipIsRegained(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 16 {
		inWorld(t, rate, delay, func(t *testing.T, w *world) {
			a, b := w.abroad(1, false), w.abroad(2, false)
			join(t, a, b)
			checkGossip(t, a, b)
			for range 2 + rng.IntN(6) {
				// At once, a way apart, or after what was ended before has begun anew.
				pause := []time.Duration{0, 2 * delay, 3 * regainPause}[rng.IntN(3)]
				time.Sleep(time.Duration(rng.Float64() * float64(pause)))
				endSomeGossip(a, b, rng)
			}
			for range 20 {
				time.Sleep(time.Second)
				for _, e := range slices.Concat(drain(a), drain(b)) {
					if _, down := e.(PeerDown); down {
						t.Fatal("closes the connection")
					}
				}
			}
			if !gossips(a, b) || !gossips(b, a) {
				t.Errorf("gossip flows %v, %v", gossips(a, b), gossips(b, a))
			}
		})
	}
}

// endSomeGossip ends some of the streams of gossip between two, at one of them.
func endSomeGossip(a, b *Host, rng *rand.Rand) {
	if rng.IntN(2) == 0 {
		a, b = b, a
	}
	for _, c := range a.host.Network().ConnsToPeer(b.pid) {
		for _, s := range c.GetStreams() {
			if strings.HasPrefix(string(s.Protocol()), gossipPrefix) && rng.IntN(2) == 0 {
				s.Reset()
			}
		}
	}
}

// A peer that ends the stream each time is not dialled in a loop.
func TestReconnectsAreBounded(t *testing.T) {
	r := newSeldom(reconnectPause)
	at := time.Unix(0, 0)
	for i, want := range []bool{true, false, false, true, false} {
		if got := r.due("p", at); got != want {
			t.Errorf("time %d: due %v", i, got)
		}
		at = at.Add(reconnectPause*2/5 + 1)
	}
	if !r.due("q", at.Add(reconnectPause)) || len(r.last) != 1 {
		t.Errorf("remembers %d", len(r.last))
	}
}

// On the internet the connection stays at first, and is closed where that was of no use.
func TestReconnectAbroad(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		a, b := w.abroad(1, false), w.abroad(2, false)
		join(t, a, b)
		checkGossip(t, a, b)
		for _, wait := range []time.Duration{0, regainPause, refreshTime / 2} {
			time.Sleep(wait)
			a.Reconnect(b.ID())
			checkGossip(t, a, b)
			if len(a.Connected()) != 1 {
				t.Fatalf("closes the connection after %v", wait)
			}
		}
		time.Sleep(refreshTime)
		drain(a)
		a.Reconnect(b.ID())
		next[PeerDown](t, a)
		next[PeerUp](t, a)
		checkGossip(t, a, b)
	})
}

// openBeforeNotice has a's gossip open a stream to b as if a had not heard of their connection yet. It returns once
// that waits for the notice, with a's link and the channel of the outcome.
func openBeforeNotice(a, b *Host) (l *link, opened <-chan error) {
	a.peers.mu.Lock()
	l = a.peers.links[b.pid]
	delete(a.peers.links, b.pid)
	a.peers.mu.Unlock()
	outcome := make(chan error, 1)
	go func() {
		s, err := gatedHost{a.host, a}.NewStream(context.Background(), b.pid, rpcProtocol)
		if err == nil {
			s.Reset()
		}
		outcome <- err
	}()
	synctest.Wait()
	return l, outcome
}

// What libp2p does on a new connection may come before its notice of it: gossip,
// which tries only once, must not be told that there is no such peer.
func TestGossipBeforeTheNoticeOfItsConnection(t *testing.T) {
	inPair(t, rate, func(t *testing.T, b, a *Host) {
		synctest.Wait()
		l, opened := openBeforeNotice(a, b)
		for c := range l.conns {
			a.peers.add(c)
		}
		if err := a.sayHello(t.Context(), b.pid); err != nil {
			t.Fatal(err)
		}
		if err := <-opened; err != nil {
			t.Error(err)
		}
	})
}

func TestReconnect(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(2)
		a, b := hosts[0], hosts[1]
		join(t, b, a)
		a.Reconnect(b.ID())
		for _, h := range hosts {
			next[PeerDown](t, h)
			next[PeerUp](t, h)
		}
		checkGossip(t, a, b)
	})
}
