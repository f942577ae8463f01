package p2p

import (
	"math"
	"sync"
	"time"
)

// uplink measures what the node's own link carries upwards, over all peers
// together.
//
// A link that is not full shows its rate all the same whenever several segments
// leave at once: they arrive as far apart as the link spaces them (a packet
// train). So the clock runs only while bulk is on the link. A span is such a time,
// as one peer sees it: from when bulk begins to be in flight to that peer. What
// leaves for others meanwhile counts as well. When a segment left is known from
// the receivers' clocks (oneWay), so neither the length of ways nor the queues
// that acknowledgements meet count.
//
// What a span shows is never more than the link carries. It may be less: the
// window was small, the sender had nothing to send, the peer's own link was thin,
// the peer was busy. So the largest of late is taken, and what is of late passes
// only with spans that may prove a fall: those in which bulk was on its way all
// the time. However little a node sends, and in whatever pattern, that alone
// never makes its link look thinner.
type uplink struct {
	limit float64 // bytes/s by configuration; 0 = none

	mu       sync.Mutex
	inflight int // bytes, to all peers
	// backlog is how many of them are not beyond the link, at most.
	backlog   int
	backlogAt time.Time
	flights   map[*pacer]*flight
	log       departures
	latest    epoch
	before    epoch
	proven    time.Time // up to here spans have been counted as proof
}

// epoch is a part of the measurements.
type epoch struct {
	best  float64       // bytes/s
	proof time.Duration // of bulk that was on its way all the time
}

// Limits of the measurement.
const (
	// leastBytes make a span: two thirds of a payload of the model small.
	leastBytes = 4 * segment
	// leastTime keeps the ticks of stamps below a tenth of what is measured.
	leastTime = 10 * stampTick
	// spanTime and spanBytes end a span under bulk that does not end, and begin
	// another. The time is long beside the stalls of a busy receiver (tens of ms)
	// and short beside the five seconds in which a fall has to show.
	spanTime  = 1500 * time.Millisecond
	spanBytes = 256 * segment
	// epochProof is how long bulk is on the link in one of the two epochs. A full
	// link that gets thinner shows it after at most two of these and a span.
	epochProof = 1500 * time.Millisecond
	// leastShare is the part of what was measured that the link carries for certain.
	leastShare = 0.5
	// gapShare is the part of a span that may be without bulk if it is to prove
	// a fall.
	gapShare = 1. / 8
	// thinShare: a peer that was never given more than this part of what the link
	// carries may be thin itself. That it takes little proves thinWeight as much.
	thinShare  = 0.5
	thinWeight = 1. / 8
)

func newUplink(bytesPerSecond int64) *uplink {
	return &uplink{limit: float64(bytesPerSecond), flights: map[*pacer]*flight{}}
}

// rate is the link's in bytes/s, 0 if it is not known.
func (u *uplink) rate() float64 {
	u.mu.Lock()
	defer u.mu.Unlock()
	best := u.best()
	if u.limit > 0 && (best == 0 || best > u.limit) {
		return u.limit
	}
	return best
}

// best is the most that the link was seen to carry of late, in bytes/s; 0 if that
// is not known.
func (u *uplink) best() float64 { return max(u.latest.best, u.before.best) }

// taken notes that n bytes to a peer enter flight, and returns how many are before
// them on the link at most.
func (u *uplink) taken(p *pacer, n int, now time.Time) (ahead int) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.flights[p] == nil {
		u.flights[p] = &flight{whole: newSpan(now, u.log.end()), train: newSpan(now, u.log.end())}
	}
	u.backlog -= int(u.least() * now.Sub(u.backlogAt).Seconds())
	u.backlog, u.backlogAt = min(max(u.backlog, 0), u.inflight), now
	ahead = u.backlog
	u.backlog += n
	u.inflight += n
	return ahead
}

// freed notes that n bytes to a peer left flight, and whether more are there.
func (u *uplink) freed(p *pacer, n int, more bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inflight -= n
	if f := u.flights[p]; f != nil && !more {
		u.finish(p, f.whole)
		u.finish(p, f.train)
		delete(u.flights, p)
	}
}

// acked notes that a part has arrived at a peer, and how long it waited at least.
func (u *uplink) acked(p *pacer, d departure, took, waited time.Duration, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	l := leaving{to: p, bytes: d.bytes, sent: d.at, early: d.at.Add(waited), late: now}
	if most, ok := u.clears(d.ahead); ok || p.way.sure {
		l.late = d.at.Add(p.way.bound(took, most))
	}
	u.log.add(l)
	f := u.flights[p]
	if f == nil {
		return
	}
	if l.sent.After(f.train.last) {
		u.finish(p, f.train)
		f.train = newSpan(l.sent, max(f.train.log, u.log.end()-spanBytes/segment))
	}
	f.whole = u.goOn(p, f.whole, l, d.at.Add(took))
	f.train = u.goOn(p, f.train, l, d.at.Add(took))
}

// goOn takes a part into a span, and returns the span that goes on.
func (u *uplink) goOn(p *pacer, s *span, l leaving, there time.Time) *span {
	before := s.own
	s.arrived(l, there)
	if s.fresh && s.own/leastBytes > before/leastBytes {
		u.shown(p, s.rate(p, &u.log))
	}
	if !s.full() {
		return s
	}
	u.finish(p, s)
	return &span{log: u.log.end(), start: l.late, last: l.late, busy: s.busy, from: there, to: there}
}

// least is what the link carries though best may be a little too much. What comes
// of it goes into best again, so that could otherwise grow by itself.
func (u *uplink) least() float64 { return leastShare * u.best() }

// clears is how long the link takes for so many bytes at most, as far as that is
// known.
func (u *uplink) clears(n int) (d time.Duration, known bool) {
	least := u.least()
	switch {
	case n == 0:
		return 0, true
	case least == 0:
		return math.MaxInt64 / 2, false
	}
	return time.Duration(float64(n) / least * float64(time.Second)), true
}

// shown takes in a rate that the link had for a while.
func (u *uplink) shown(p *pacer, rate float64) {
	u.latest.best = max(u.latest.best, rate)
	p.reached = max(p.reached, rate)
}

// finish takes in a span that ends.
func (u *uplink) finish(p *pacer, s *span) {
	rate := s.rate(p, &u.log)
	if rate == 0 {
		return
	}
	u.shown(p, rate)
	if s.gappy() {
		return
	}
	from := s.start
	if from.Before(u.proven) {
		from = u.proven
	}
	if s.last.After(from) {
		u.prove(p, s.last.Sub(from))
		u.proven = s.last
	}
}

// prove counts proof, and forgets the older epoch when the newer has enough.
func (u *uplink) prove(p *pacer, d time.Duration) {
	if p.reached < thinShare*u.best() {
		d = time.Duration(thinWeight * float64(d))
	}
	u.latest.proof += d
	if u.latest.proof >= epochProof {
		u.before, u.latest = u.latest, epoch{}
	}
}
