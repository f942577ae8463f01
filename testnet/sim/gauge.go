package sim

import "cmp"

// gauge is what a node measured of its uplink, as its host does from acknowledged bulk:
// the bytes that flowed to all peers together, over the time in which some did.
type gauge struct {
	bytes float64
	ms    float64
	at    Time    // up to when time is counted
	value float64 // bytes per ms; 0 before the first measurement
}

// A measurement is over gaugeMs of bulk, so that a fall of the link shows within seconds;
// gaugeGain is its weight.
const (
	gaugeMs   = 500
	gaugeGain = 0.5
)

// carried notes bulk that left in a stretch of time that ends now.
func (n *Node) carried(bytes float64, now Time, ms float64) {
	g := &n.gauge
	if g.at != now {
		g.at = now
		g.ms += ms
	}
	g.bytes += bytes
}

// measures tells the machine what the uplink carries, once that is known, in bytes of payloads
// as the machine has them.
func (n *Node) measures() {
	g := &n.gauge
	if g.ms < gaugeMs {
		return
	}
	rate := g.bytes / g.ms
	g.bytes, g.ms = 0, 0
	if g.value == 0 {
		g.value = rate
	}
	g.value += float64(gaugeGain * (rate - g.value))
	if n.up {
		n.machine.SetUpload(n.clock(), 1000*g.value/cmp.Or(n.w.s.PayloadScale, 1))
	}
}
