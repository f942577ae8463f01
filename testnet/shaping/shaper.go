package shaping

import (
	"hash/fnv"
	"math"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// Shaper is one node's link. Its TCP connections on one machine are as slow, as far apart and
// as lossy as those between two places. Both ends need one. The sockets are the loopback's, where
// nothing is slow or lost; what TCP would make of the link is made here:
//
//   - What leaves waits for the uplink, one chunk after the other, over all connections of the
//     node. A writer waits once the queue is as long as the buffer of a home router.
//   - It arrives after the delay and the jitter, in order.
//   - What comes waits for the downlink of the receiver in the same way. Where that queue is
//     longer than the buffer of a router, the sender is told, as if a packet were lost.
//   - Each segment may be lost. What follows it on its connection waits at the receiver until it
//     is sent again: see Sender.
//   - No more is on its way than the congestion window of the connection: see window.
type Shaper struct {
	mu       sync.Mutex
	link     Link
	up, down queue
	passes   int // segments until one is lost
	rng      *rand.Rand
}

const (
	// shapeQueue is how long bytes may wait for a link: the buffer of a home router, which has
	// at least the round trip that it is made for (the rule of one bandwidth-delay product).
	// With 50 ms, where three peers sent to one over 80 ms, CUBIC filled three quarters of a link
	// of 20 Mbit/s; with this, nine tenths.
	shapeQueue = 120 * time.Millisecond
	// shapeChunk is what leaves at once, in time of the uplink: small against every other time
	// here, and few enough chunks not to take the cores from those that train.
	shapeChunk = 4 * time.Millisecond
	// maxShapeChunk is what leaves at once of a link without a rate.
	maxShapeChunk = 64 << 10
	// Segment is the payload of a TCP segment in an Ethernet frame.
	Segment = 1460
)

// New is the link of a node, nil for one that is as it is. Chance follows from whose it is.
func New(s *Link, whose string) *Shaper {
	if s == nil {
		return nil
	}
	seed := fnv.New64a()
	seed.Write([]byte(whose))
	l := &Shaper{rng: rand.New(rand.NewPCG(seed.Sum64(), 0))}
	l.Become(*s)
	return l
}

// Become makes the link another, unless it is as it is; what waits goes on waiting.
func (l *Shaper) Become(s Link) {
	if l == nil {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if s != l.link {
		l.link, l.up.rate, l.down.rate = s, s.Up, s.Down
		l.draw()
	}
}

// Conn puts the link onto a connection. The caller runs run, which returns once that is closed and
// what was sent has left.
func (l *Shaper) Conn(c net.Conn) (on net.Conn, run func()) {
	if l == nil {
		return c, func() {}
	}
	s := newShapedConn(c, l)
	return s, s.run
}

// queue is one direction of a link: bytes leave one after the other.
type queue struct {
	rate int64     // bytes/s; 0 = as fast as it goes
	free time.Time // when all that waits has left
}

// reserve is when n bytes have left that come at some time.
func (q *queue) reserve(n int, at time.Time) time.Time {
	if q.rate == 0 {
		return at
	}
	if q.free.Before(at) {
		q.free = at
	}
	q.free = q.free.Add(q.takes(n))
	return q.free
}

// takes is how long n bytes take to leave.
func (q *queue) takes(n int) time.Duration {
	if q.rate == 0 {
		return 0
	}
	return time.Duration(float64(n) / float64(q.rate) * float64(time.Second))
}

// full is by how much a writer comes too early.
func (l *Shaper) full(now time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up.rate == 0 || l.up.free.Before(now) {
		return 0
	}
	return l.up.free.Sub(now) - shapeQueue
}

// leave is when n bytes have left.
func (l *Shaper) leave(n int, now time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.up.reserve(n, now)
}

// arrive is when n bytes have come that reach the downlink at some time, and whether a router
// would have had no room for them.
func (l *Shaper) arrive(n int, at time.Time) (ready time.Time, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	ready = l.down.reserve(n, at)
	return ready, ready.Sub(at)-l.down.takes(n) > shapeQueue
}

// cut is how much of n bytes leaves as one chunk, and whether that is lost: one segment.
func (l *Shaper) cut(n int) (chunk int, lost bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	most := maxShapeChunk
	if l.up.rate > 0 {
		most = min(most, int(float64(l.up.rate)*shapeChunk.Seconds()))
	}
	n = min(n, max(most, Segment))
	if l.link.Loss == 0 {
		return n, false
	}
	if l.passes == 0 {
		l.draw()
		return min(n, Segment), true
	}
	n = min(n, l.passes*Segment)
	l.passes -= (n + Segment - 1) / Segment
	return n, false
}

// draw is how many segments pass until one is lost.
func (l *Shaper) draw() {
	l.passes = 0
	if l.link.Loss > 0 {
		l.passes = int(min(math.Log1p(-l.rng.Float64())/math.Log1p(-l.link.Loss), math.MaxInt32))
	}
}

// travel is what a connection makes of the delay. Like a queue on the path, the jitter stays
// for a while: bytes keep their order, so a draw for each would make all as late as the latest.
type travel struct {
	extra time.Duration
	drawn time.Time
	last  time.Time // that something arrived
}

// arrives is when something arrives that leaves the link at some time.
func (t *travel) arrives(l *Shaper, left time.Time) time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	if j := l.link.Jitter; left.Sub(t.drawn) > 2*j {
		t.extra, t.drawn = time.Duration(l.rng.Int64N(int64(2*j)+1))-j, left
	}
	if at := left.Add(l.link.Delay + t.extra); at.After(t.last) {
		t.last = at
	}
	return t.last
}
