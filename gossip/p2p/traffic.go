package p2p

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

// traffic counts what streams carry, by protocol and by peer. It is libp2p's
// metrics.Reporter; libp2p's own keeps a goroutine of the process alive for ever
// and forgets no peer.
type traffic struct {
	caps caps // what passes without waiting is taken from them

	mu        sync.Mutex
	total     flow
	protocols map[protocol.ID]*flow
	peers     map[peer.ID]*flow // connected ones
	past      map[peer.ID]*flow // those that passed the handshake and are not connected now
}

func newTraffic() *traffic {
	return &traffic{protocols: map[protocol.ID]*flow{}, peers: map[peer.ID]*flow{}, past: map[peer.ID]*flow{}}
}

// caps are what a node may send and receive at most. Requests and answers wait for them, and
// all else passes without waiting.
type caps struct{ up, down *bulk.Limiter }

func newCaps(cfg Config) caps {
	return caps{up: bulk.NewLimiter(cfg.UploadBytesPerSecond), down: bulk.NewLimiter(cfg.DownloadBytesPerSecond)}
}

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

// track begins to count for a peer, or goes on where it was; bytes of others count in the totals only.
func (t *traffic) track(p peer.ID) {
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

// pass says that a connected peer has passed the handshake: what it has carried is kept.
func (t *traffic) pass(p peer.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.peers[p]; f != nil {
		f.passed = true
	}
}

// leave ends counting for a peer that is not connected any more.
func (t *traffic) leave(p peer.ID) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if f := t.peers[p]; f != nil && f.passed && len(t.past) < maxPast {
		t.past[p] = f
	}
	delete(t.peers, p)
}

// byPeer is what peers have carried, those that are connected and those that were.
func (t *traffic) byPeer() map[peer.ID]Traffic {
	all := snapshot(t, t.past, (*flow).traffic)
	maps.Copy(all, snapshot(t, t.peers, (*flow).traffic))
	return all
}

// each applies f to the flows that a stream counts in. The number of protocols
// is bounded: a stream has one only once it is one that we speak.
func (t *traffic) each(id protocol.ID, p peer.ID, f func(*flow)) {
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
func (t *traffic) LogSentMessageStream(n int64, id protocol.ID, p peer.ID) {
	now := time.Now()
	t.each(id, p, func(f *flow) { f.sent.add(n, now) })
	if id != rpcProtocol {
		t.caps.up.Passed(n, now)
	}
}

// LogRecvMessageStream implements metrics.Reporter.
func (t *traffic) LogRecvMessageStream(n int64, id protocol.ID, p peer.ID) {
	now := time.Now()
	t.each(id, p, func(f *flow) { f.received.add(n, now) })
	if id != rpcProtocol {
		t.caps.down.Passed(n, now)
	}
}

// LogSentMessage implements metrics.Reporter; each of its calls comes with one
// of LogSentMessageStream, which counts.
func (t *traffic) LogSentMessage(int64) {}

// LogRecvMessage implements metrics.Reporter, like LogSentMessage.
func (t *traffic) LogRecvMessage(int64) {}

// GetBandwidthForPeer implements metrics.Reporter.
func (t *traffic) GetBandwidthForPeer(p peer.ID) metrics.Stats {
	return t.GetBandwidthByPeer()[p]
}

// GetBandwidthForProtocol implements metrics.Reporter.
func (t *traffic) GetBandwidthForProtocol(id protocol.ID) metrics.Stats {
	return t.GetBandwidthByProtocol()[id]
}

// GetBandwidthTotals implements metrics.Reporter.
func (t *traffic) GetBandwidthTotals() metrics.Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.total.stats(time.Now())
}

// GetBandwidthByPeer implements metrics.Reporter.
func (t *traffic) GetBandwidthByPeer() map[peer.ID]metrics.Stats {
	return snapshot(t, t.peers, (*flow).stats)
}

// GetBandwidthByProtocol implements metrics.Reporter.
func (t *traffic) GetBandwidthByProtocol() map[protocol.ID]metrics.Stats {
	return snapshot(t, t.protocols, (*flow).stats)
}

// Reset implements metrics.Reporter; nothing calls it.
func (t *traffic) Reset() {}

// TrimIdle implements metrics.Reporter; leave does its work.
func (t *traffic) TrimIdle(time.Time) {}

// snapshot reads all flows of one kind at one moment.
func snapshot[K comparable, V any](t *traffic, flows map[K]*flow, read func(*flow, time.Time) V) map[K]V {
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	all := make(map[K]V, len(flows))
	for k, f := range flows {
		all[k] = read(f, now)
	}
	return all
}
