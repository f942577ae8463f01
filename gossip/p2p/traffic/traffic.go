// Package traffic counts what streams carry, by protocol and by peer, and takes off a node's caps what passes without waiting for
// them. It is told of bytes by libp2p, and knows no host.
package traffic

import (
	"maps"
	"math"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/metrics"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/p2p/bulk"
)

// Counter counts what streams carry, by protocol and by peer. It is libp2p's
// metrics.Reporter; libp2p's own keeps a goroutine of the process alive for ever
// and forgets no peer.
type Counter struct {
	up, down *bulk.Limiter // what passes without waiting is taken from them
	waits    protocol.ID   // what waits for them

	mu        sync.Mutex
	total     flow
	protocols map[protocol.ID]*flow
	peers     map[peer.ID]*flow // connected ones
	past      map[peer.ID]*flow // those that passed the handshake and are not connected now
}

// New returns a counter that takes off up and down what is of another protocol than waits, which waits for them.
func New(up, down *bulk.Limiter, waits protocol.ID) *Counter {
	return &Counter{up: up, down: down, waits: waits, protocols: map[protocol.ID]*flow{}, peers: map[peer.ID]*flow{}, past: map[peer.ID]*flow{}}
}

// Traffic is bytes and their rates over the last ten seconds or so.
type Traffic struct {
	Sent, Received                   uint64
	SentPerSecond, ReceivedPerSecond float64
}

// maxPast bounds the peers that are gone and whose bytes are still known. A run
// of more has no use for a number for each.
const maxPast = 1024

// flow counts both directions of something.
type flow struct {
	sent, received meter
	passed         bool // of a peer: it has passed the handshake
}

// meter counts bytes, and their recent rate: each byte's share of the rate
// decays with time constant rateMemory.
type meter struct {
	bytes uint64
	rate  float64 // bytes/s at time at
	at    time.Time
}

const rateMemory = 10 * time.Second

func (m *meter) add(n int64, now time.Time) {
	m.bytes += uint64(n)
	m.rate = m.rateAt(now) + float64(n)/rateMemory.Seconds()
	m.at = now
}

func (m *meter) rateAt(now time.Time) float64 {
	if m.rate == 0 {
		return 0
	}
	return m.rate * math.Exp(-now.Sub(m.at).Seconds()/rateMemory.Seconds())
}

func (f *flow) traffic(now time.Time) Traffic {
	return Traffic{
		Sent: f.sent.bytes, SentPerSecond: f.sent.rateAt(now),
		Received: f.received.bytes, ReceivedPerSecond: f.received.rateAt(now),
	}
}

func (f *flow) stats(now time.Time) metrics.Stats {
	t := f.traffic(now)
	return metrics.Stats{TotalIn: int64(t.Received), TotalOut: int64(t.Sent), RateIn: t.ReceivedPerSecond, RateOut: t.SentPerSecond}
}

// Track begins to count for a peer, or goes on where it was; bytes of others count in the totals only.
func (t *Counter) Track(p peer.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.peers[p] != nil {
		return
	}
	if t.peers[p] = t.past[p]; t.peers[p] == nil {
		t.peers[p] = &flow{}
	}
	delete(t.past, p)
}

// Pass says that a connected peer has passed the handshake: what it has carried is kept.
func (t *Counter) Pass(p peer.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.peers[p]; f != nil {
		f.passed = true
	}
}

// Leave ends counting for a peer that is not connected any more.
func (t *Counter) Leave(p peer.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.peers[p]; f != nil && f.passed && len(t.past) < maxPast {
		t.past[p] = f
	}
	delete(t.peers, p)
}

// ByPeer is what peers have carried, those that are connected and those that were.
func (t *Counter) ByPeer() map[peer.ID]Traffic {
	all := snapshot(t, t.past, (*flow).traffic)
	maps.Copy(all, snapshot(t, t.peers, (*flow).traffic))
	return all
}

// ByProtocol is what streams have carried, by their protocol.
func (t *Counter) ByProtocol() map[protocol.ID]Traffic {
	return snapshot(t, t.protocols, (*flow).traffic)
}

// each applies f to the flows that a stream counts in. The number of protocols
// is bounded: a stream has one only once it is one that we speak.
func (t *Counter) each(id protocol.ID, p peer.ID, f func(*flow)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	f(&t.total)
	byProtocol := t.protocols[id]
	if byProtocol == nil {
		byProtocol = &flow{}
		t.protocols[id] = byProtocol
	}
	f(byProtocol)
	if byPeer := t.peers[p]; byPeer != nil {
		f(byPeer)
	}
}

// LogSentMessageStream implements metrics.Reporter.
func (t *Counter) LogSentMessageStream(n int64, id protocol.ID, p peer.ID) {
	now := time.Now()
	t.each(id, p, func(f *flow) { f.sent.add(n, now) })
	if id != t.waits {
		t.up.Passed(n, now)
	}
}

// LogRecvMessageStream implements metrics.Reporter.
func (t *Counter) LogRecvMessageStream(n int64, id protocol.ID, p peer.ID) {
	now := time.Now()
	t.each(id, p, func(f *flow) { f.received.add(n, now) })
	if id != t.waits {
		t.down.Passed(n, now)
	}
}

// LogSentMessage implements metrics.Reporter; each of its calls comes with one
// of LogSentMessageStream, which counts.
func (t *Counter) LogSentMessage(int64) {}

// LogRecvMessage implements metrics.Reporter, like LogSentMessage.
func (t *Counter) LogRecvMessage(int64) {}

// GetBandwidthForPeer implements metrics.Reporter.
func (t *Counter) GetBandwidthForPeer(p peer.ID) metrics.Stats {
	return t.GetBandwidthByPeer()[p]
}

// GetBandwidthForProtocol implements metrics.Reporter.
func (t *Counter) GetBandwidthForProtocol(id protocol.ID) metrics.Stats {
	return t.GetBandwidthByProtocol()[id]
}

// GetBandwidthTotals implements metrics.Reporter.
func (t *Counter) GetBandwidthTotals() metrics.Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total.stats(time.Now())
}

// GetBandwidthByPeer implements metrics.Reporter.
func (t *Counter) GetBandwidthByPeer() map[peer.ID]metrics.Stats {
	return snapshot(t, t.peers, (*flow).stats)
}

// GetBandwidthByProtocol implements metrics.Reporter.
func (t *Counter) GetBandwidthByProtocol() map[protocol.ID]metrics.Stats {
	return snapshot(t, t.protocols, (*flow).stats)
}

// Reset implements metrics.Reporter; nothing calls it.
func (t *Counter) Reset() {}

// TrimIdle implements metrics.Reporter; Leave does its work.
func (t *Counter) TrimIdle(time.Time) {}

// snapshot reads all flows of one kind at one moment.
func snapshot[K comparable, V any](t *Counter, flows map[K]*flow, read func(*flow, time.Time) V) map[K]V {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	all := make(map[K]V, len(flows))
	for k, f := range flows {
		all[k] = read(f, now)
	}
	return all
}
