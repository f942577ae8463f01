package sim

import (
	"cmp"
	"math"
)

// access is how a node hangs on the network: its link as it is now, and what is under
// way over it.
type access struct {
	link             Link // as it is: what befell it, over what is its own, over that of all
	befell           Link // of a fault of this link; none = nothing did
	uplink, downlink side
	gauge            gauge
}

// side is one direction of a node's link. Small things (gossip, requests, short answers)
// leave one after the other. Bulk has what they leave of the rate; see bulk.
type side struct {
	rate   float64 // bytes per ms; 0 = without limit
	free   float64 // when the small things have left, in ms
	small  float64 // bytes of them since bulk was last counted
	full   bool    // bulk takes all that is left of the rate
	empty  float64 // when the bulk under way will have left, if nothing joins it
	lost   float64 // share of the rate that small things took, up to
	lostAt Time    // this moment

	room float64 // while rates are shared out: what is not given away,
	open int     // and the streams that have none yet
}

// queueTargetMs is what bulk adds to the wait of a small thing where it fills a link: the
// target of the pacers of gossip/p2p, which keep bulk from queueing for longer.
const queueTargetMs = 100

// passes is when something small that comes now is through. It goes ahead of bulk that
// waits for its pacer, and behind bulk that has left.
func (s *side) passes(now Time, size int) Time {
	if s.rate == 0 {
		return now
	}
	s.free = max(s.free, float64(now)+s.queue(now)) + float64(size)/s.rate
	if s.empty > float64(now) {
		s.small += float64(size)
	}
	return Time(s.free)
}

// queue is how long the bulk takes that has left and is not through, in ms.
func (s *side) queue(now Time) float64 {
	if !s.full {
		return 0
	}
	return min(max(s.empty-float64(now), 0), queueTargetMs)
}

// countSmall counts what small things took of a stretch that ends now.
func (s *side) countSmall(ms float64, now Time) {
	if s.rate == 0 || s.lostAt == now {
		return
	}
	took := min(s.small, s.rate*ms)
	s.small -= took
	s.lost, s.lostAt = took/(s.rate*ms), now
}

// over is a link with the traits of another one where it has none.
func (l Link) over(below Link) Link {
	return Link{
		LatencyMs: cmp.Or(l.LatencyMs, below.LatencyMs), JitterMs: cmp.Or(l.JitterMs, below.JitterMs),
		Loss: cmp.Or(l.Loss, below.Loss), Duplicate: cmp.Or(l.Duplicate, below.Duplicate),
		BytesMs: cmp.Or(l.BytesMs, below.BytesMs), DownMs: cmp.Or(l.DownMs, below.DownMs),
	}
}

// setLink makes a node's link what it now is.
func (n *Node) setLink() {
	a := &n.access
	a.link = a.befell.over(n.spec.Link.over(n.w.link))
	a.uplink.rate, a.downlink.rate = a.link.BytesMs, a.link.DownMs
}

// setNetwork makes the links of all nodes what they now are.
func (w *World) setNetwork(l Link) {
	w.link = l
	w.link.LatencyMs = max(w.link.LatencyMs, 1)
	w.bulk.count(w.now)
	for _, n := range w.nodes {
		n.setLink()
	}
	w.bulk.share()
}

// delay is one way from this node.
func (n *Node) delay() Time {
	if n.link.JitterMs == 0 {
		return n.link.LatencyMs
	}
	return n.link.LatencyMs + n.w.rng.Int64N(n.link.JitterMs+1)
}

// resendMs is what a lost packet of a stream costs: it is sent again.
const resendMs = 200

// resent is the delay of a stream, with what is lost on the way sent again.
func (n *Node) resent() Time {
	d := n.delay()
	for n.link.Loss > 0 && n.w.rng.Float64() < n.link.Loss {
		d += resendMs
	}
	return d
}

// departs is when something small that is sent now has left the node.
func (n *Node) departs(size int) Time { return n.uplink.passes(n.w.now, size) }

// landing is how long something small that comes now waits for the downlink.
func (n *Node) landing(size int) Time { return n.downlink.passes(n.w.now, size) - n.w.now }

// comes is a hop's end: the message is at the downlink.
func (n *Node) comes(from *Node, m *message) {
	if wait := n.landing(m.size); wait > 0 {
		n.w.queue.push(event{at: n.w.now + wait, kind: eventLanded, to: n, from: from, msg: m})
		return
	}
	n.arrives(from, m)
}

// Bounds on the rate of one stream over a lossy path: the macroscopic model of TCP's
// congestion avoidance, rate = MSS/RTT * 1.22/sqrt(loss) (Mathis, Semke, Mahdavi and Ott
// 1997). Without loss it has none.
const (
	segmentBytes  = 1460
	mathisFactor  = 1.22
	leastMathisMs = 1
)

func mathis(rttMs Time, loss float64) float64 {
	if loss == 0 {
		return math.Inf(1)
	}
	return segmentBytes / float64(max(rttMs, leastMathisMs)) * mathisFactor / math.Sqrt(loss)
}
