package sim

import "cmp"

// gauge is what a node measured of its uplink, as its host does from acknowledged bulk:
// the bytes that flowed to all peers together, over the time in which some did. The most of
// late counts. What is recent passes only with bulk on its way, so that a link which is used
// little does not look thin.
type gauge struct {
	bytes  float64
	ms     float64
	full   bool // the own uplink, and not the other end, made the rate
	at     Time // up to when time is counted
	latest epoch
	before epoch
}

// epoch is a part of the measurements.
type epoch struct {
	best  float64 // bytes per ms
	proof float64 // ms of bulk
}

// A measurement is over gaugeMs of bulk or more, and made every measureMs at least. An epoch
// has epochMs of it. Where other ends are the narrow ones, of which a host cannot be sure,
// otherWeight counts. The last two are as in gossip/p2p.
const (
	gaugeMs     = 100
	measureMs   = 500
	epochMs     = 1500
	otherWeight = 1. / 8
)

// value is what the uplink carries in bytes per ms; 0 before the first measurement.
func (g *gauge) value() float64 { return max(g.latest.best, g.before.best) }

// carried records bulk of a stream that left in a stretch of time that ends now.
func (n *Node) carried(s *stream, bytes float64, now Time, ms float64) {
	g := &n.gauge
	if g.at != now {
		g.at = now
		g.ms += ms
	}
	g.bytes += bytes
	g.full = g.full || s.narrow == &n.uplink
}

// measures tells the machine what the uplink carries, once that is known, in bytes of payloads
// as the machine has them.
func (n *Node) measures() {
	g := &n.gauge
	if g.ms < gaugeMs {
		return
	}
	g.accept(g.bytes/g.ms, g.ms)
	g.bytes, g.ms, g.full = 0, 0, false
	if n.up {
		n.machine.SetUpload(n.clock(), 1000*g.value()/cmp.Or(n.w.s.PayloadScale, 1), true)
	}
}

// accept adds a measurement.
func (g *gauge) accept(rate, ms float64) {
	g.latest.best = max(g.latest.best, rate)
	if !g.full {
		ms *= otherWeight
	}
	if g.latest.proof += ms; g.latest.proof >= epochMs {
		g.before, g.latest = g.latest, epoch{}
	}
}
