package bulk

import (
	"sync"
	"time"
)

// Uplink measures what the node's own link carries upwards, over all peers
// together.
//
// A link that is not full shows its rate all the same whenever several segments
// leave at once: they arrive as far apart as the link spaces them (a packet
// train). So the clock runs only while bulk is on the link: see train. How far
// apart they arrive is told by the receivers' clocks (stamp), so neither the length
// of ways nor the queues that acknowledgements meet count.
//
// What trains show may be less than the link carries: the peer's own link was thin,
// or the peer was busy. So the largest recent one is taken, and what is recent passes
// only with trains, which show the same link again. What is sent in any other way
// shows a lower bound, and never more. However little a node sends, and in whatever
// pattern, that alone never makes its link look thinner.
type Uplink struct {
	mu       sync.Mutex
	limit    float64 // bytes/s by configuration; 0 = none
	inflight int     // bytes, to all peers
	arrived  int     // bytes that were acknowledged
	flights  map[*pacer]*flight
	left     departures
	ended    []ended // trains, in order, that are counted once all that left with them is known
	latest   epoch
	before   epoch
	proven   time.Time // up to here trains have been counted as proof
	known    bool      // trains have shown what the link carries
}

// ended is a train that is over.
type ended struct {
	to    *pacer
	train *train
}

// epoch is a part of the measurements.
type epoch struct {
	best  float64       // bytes/s
	proof time.Duration // of trains
}

// Limits of the measurement.
const (
	// longTrain ends a train under bulk that does not end, and begins another. It is
	// long beside the stalls of a busy receiver (tens of ms), and short beside the
	// five seconds in which a fall has to show. longBytes does so on thick links. A train
	// of less than fewBytes, as one of many peers gets on a thin link, would not show
	// whether it is steady.
	longTrain = time.Second
	longBytes = 256 * Segment
	fewBytes  = 6 * Segment
	// sampleTime and sampleTrains are how many trains show a rate together: what a
	// receiver dawdles at the beginning of one and at the end of another evens out.
	// A long train does so alone.
	sampleTime   = 100 * time.Millisecond
	sampleTrains = 8
	// epochProof is how long bulk is on the link in one of the two epochs. A full
	// link that gets thinner shows it after at most two of these and a train.
	epochProof = time.Second
	// ackTime is how much later than the end of a train the acknowledgements come of what
	// left with it to other peers: the longest way back.
	ackTime = 500 * time.Millisecond
	// thinShare: a peer that was never given more than this part of what the link
	// carries may be thin itself. That it takes little proves thinWeight as much.
	thinShare  = 0.5
	thinWeight = 1. / 8
)

// NewUplink returns one for a link that is configured to carry so much; 0 is not configured.
func NewUplink(bytesPerSecond int64) *Uplink {
	return &Uplink{limit: float64(bytesPerSecond), flights: map[*pacer]*flight{}}
}

// SetLimit takes that the link is configured to carry so much from now on; 0 is not configured.
func (u *Uplink) SetLimit(bytesPerSecond int64) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.limit = float64(bytesPerSecond)
}

// Rate is the most that the link was seen to carry recently, in bytes/s, and whether that was
// all that it carries: it was full.
func (u *Uplink) Rate() (bytesPerSecond float64, full bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.complete(time.Now())
	best := u.best()
	if u.limit > 0 && (!u.known || best > u.limit) {
		return u.limit, true
	}
	return best, u.known
}

// best is the most that the link was seen to carry recently, in bytes/s; 0 before the first.
func (u *Uplink) best() float64 { return max(u.latest.best, u.before.best) }

// departed notes that bytes to a peer enter flight.
func (u *Uplink) departed(p *pacer, d departure) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.flights[p] == nil {
		u.flights[p] = &flight{start: d.at, before: u.arrived + u.inflight, train: &train{last: d.at}}
	}
	u.inflight += d.bytes
}

// freed notes that bytes to a peer left flight, and whether more are there.
func (u *Uplink) freed(p *pacer, n int, more bool, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.inflight -= n
	if f := u.flights[p]; f != nil && !more {
		u.bound(p, f, now)
		u.end(p, f.train)
		delete(u.flights, p)
	}
}

// acked notes that a part has arrived at a peer, how long it took by both clocks,
// and how much of that it waited.
func (u *Uplink) acked(p *pacer, d departure, took, waited time.Duration, now time.Time) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.arrived += d.bytes
	l := leaving{to: p, bytes: d.bytes, sent: d.at, left: d.at.Add(waited), there: d.at.Add(took)}
	u.left.add(l)
	u.complete(now)
	f := u.flights[p]
	if f == nil {
		return
	}
	if f.train.passed(l, waited) {
		u.end(p, f.train)
		f.train = &train{last: l.sent}
	}
	f.train.add(l)
	if f.train.long() {
		u.end(p, f.train)
		f.train = f.train.next(l)
	}
	if now.Sub(f.start) >= longTrain {
		u.bound(p, f, now)
		f.start, f.before = now, u.arrived+u.inflight
	}
}

// bound takes in what a flight shows at least: what was sent and acknowledged
// within it left within it, apart from what a token bucket had saved up.
func (u *Uplink) bound(p *pacer, f *flight, now time.Time) {
	if took := now.Sub(f.start).Seconds(); took > 0 {
		u.shown(p, float64(u.arrived-f.before-headBytes)/took)
	}
}

// end notes that a train is over.
func (u *Uplink) end(p *pacer, t *train) {
	if t.took() > 0 {
		u.ended = append(u.ended, ended{p, t})
	}
}

// complete takes in trains of which all is known by now.
func (u *Uplink) complete(now time.Time) {
	for len(u.ended) > 0 && now.Sub(u.ended[0].train.latest.left) >= ackTime {
		u.count(u.ended[0].to, u.ended[0].train)
		u.ended = u.ended[1:]
	}
}

// count takes in a train. One that is not steady shows no more than bound does.
func (u *Uplink) count(p *pacer, t *train) {
	along := u.left.along(p, t)
	if !along.steady() {
		return
	}
	s := &p.sample
	s.bytes += t.after + along.others()
	s.took += t.took()
	if t.last.After(u.proven) {
		s.proof += min(t.last.Sub(u.proven), t.took())
		u.proven = t.last
	}
	s.trains++
	if s.done() {
		u.known = true
		u.shown(p, float64(s.bytes)/s.took.Seconds())
		u.prove(p, s.proof)
		*s = sample{}
	}
}

// shown takes in a rate that the link had for a while.
func (u *Uplink) shown(p *pacer, rate float64) {
	u.latest.best = max(u.latest.best, rate)
	p.reached = max(p.reached, rate)
}

// prove counts proof, and forgets the older epoch when the newer has enough.
func (u *Uplink) prove(p *pacer, d time.Duration) {
	if p.reached < thinShare*u.best() {
		d = time.Duration(thinWeight * float64(d))
	}
	u.latest.proof += d
	if u.latest.proof >= epochProof {
		u.before, u.latest = u.latest, epoch{}
	}
}
