package fetch

import (
	"atoll/gossip/effect"
	"atoll/gossip/peers"
)

// Peer is what a Fetch remembers of a peer.
type Peer struct {
	calls    int  // requests that it has yet to answer, but those to it as a relay
	relayed  int  // those
	bytes    int  // that all of them are for
	late     int  // how often its time was doubled, as a request came to no end in it
	measured bool // its rate was, by a payload

	publishes flow
	debt      int         // as a relay, of relayCredit
	shunned   effect.Time // nobody relies on it before
	pauseMs   int64       // for which it was shunned last
}

func peerOf(p *peers.Peer) *Peer { return peers.Note[Peer](p) }

// Measured reports whether the rate of a peer was measured by a payload.
func Measured(p *peers.Peer) bool { return peerOf(p).measured }

// expected is the rate at which a peer should send. Before something of it was measured
// that is what it says that its uplink carries: one that claims much has little time.
func expected(p *peers.Peer) peers.Rate {
	if !Measured(p) && p.Claims() {
		return max(p.Rate, peers.Rate(p.Heartbeat.Upload/1000))
	}
	return p.Rate
}

// ended notes how long a request took that might have taken so long, twice. A peer that
// sends to several at once is slower than it says: with the same time at each try they
// would break off and begin again for ever. All requests that were under way together, with the
// time doubled late times, double it once: else a peer that gives nothing would have the longest
// time of all after a few seconds.
func (p *Peer) ended(took, transfer int64, late int, err error) {
	switch {
	case err != nil && took >= 2*transfer:
		p.late = max(p.late, min(late+1, maxLate))
	case err == nil && took <= transfer>>p.late:
		p.late = 0
	}
}

// flow measures bytes per ms over the last half to whole of flowMs.
type flow struct {
	from  effect.Time // 0 before the first
	bytes float64
}

// add counts bytes that came now. The first ones only start the clock.
func (f *flow) add(now effect.Time, bytes int) {
	if f.from == 0 {
		f.from = now
		return
	}
	f.forget(now)
	f.bytes += float64(bytes)
}

// forget leaves the last half of a span that has become too long.
func (f *flow) forget(now effect.Time) {
	if span := now - f.from; span > flowMs {
		f.bytes *= float64(flowMs/2) / float64(span)
		f.from = now - flowMs/2
	}
}

// rate is 0 until the flow was watched for FlowMinMs.
func (f flow) rate(now effect.Time) float64 {
	if f.from == 0 || now < f.from+FlowMinMs {
		return 0
	}
	return f.bytes / float64(now-f.from)
}
