package bulk

import (
	"context"
	"sync"
	"time"
)

// Limits of a pacer.
const (
	// Segment is what is sent between two acknowledgements. Below that a
	// response is sent without waiting: 3 ms on a link of 100 Mbit/s.
	Segment = 32 << 10
	// MinWindow keeps a transfer alive on any link.
	MinWindow = 2 * Segment
	// maxWindow is what the muxer lets be in flight.
	maxWindow = 16 << 20
	// QueueTarget is the delay that bulk may add to a connection. Heartbeats share
	// it, and their period is at least 2 s. (RFC 6817 allows 100 ms as well.)
	QueueTarget = 100 * time.Millisecond
	// StallTimeout ends a transfer that makes no progress.
	StallTimeout = 30 * time.Second
)

// pacer bounds the bulk that is on its way to one peer, so that heartbeats, which
// share the connection, do not wait behind it.
//
// Neither the muxer (64 messages of 64 KiB, before streams take turns) nor the
// system's send buffer (megabytes) gives a small message a chance once they are
// full. So what is in flight follows the delay of segments on their way to the peer,
// as LEDBAT does (RFC 6817). It grows while bulk adds less than QueueTarget to
// the smallest delay seen, and shrinks beyond. That keeps the rate just below
// what the link carries, wherever its bottleneck is, and gives way to any other
// traffic.
//
// It was measured over TCP through a relay of 10 Mbit/s and 40 ms with a deep
// buffer, during eight responses of 2 MiB. Without a pacer heartbeats took 1.3 s on
// average and 1.9 s at worst; with it 0.13 and 0.17 s. Bulk took as long.
//
// The peers of a node share its uplink, and each pacer sees the queue of them all.
// So there is no sum of queues to bound: with three peers on 20 Mbit/s and 40 ms
// (testnet/lab/link, up=) bulk takes 0.96 of the link, and the latest heartbeat 0.28 s.
// A window that has grown stays over idle time.
//
// Neither a smaller send buffer of the sockets nor TCP_NOTSENT_LOWAT would help.
// The muxer has one queue for all streams, so what a socket does not take waits
// there, and a heartbeat behind it. The window bounds both.
type pacer struct {
	up    *Uplink
	birth time.Time // where the clock of stamps begins, in both directions

	mu       sync.Mutex
	window   int // bytes that may be in flight
	inflight int
	starting bool // slow start: no queue seen so far
	way      oneWay
	halved   time.Time     // when the window was last halved
	room     chan struct{} // closed and replaced when bytes leave flight
	measured average

	// reached is the most that the uplink was seen to carry while this peer was sent bulk,
	// in bytes/s; sample is what trains to the peer have shown since the last one.
	reached float64
	sample  sample
}

func newPacer(up *Uplink) *pacer {
	return &pacer{up: up, birth: time.Now(), window: MinWindow, starting: true, room: make(chan struct{})}
}

// departure is a part of a response that left.
type departure struct {
	bytes int
	at    time.Time
}

// acquire waits until n bytes may be sent, or ctx is done. One segment may always
// be in flight.
func (p *pacer) acquire(ctx context.Context, n int) (departure, error) {
	for {
		d, room := p.tryAcquire(n, time.Now())
		if room == nil {
			return d, nil
		}
		select {
		case <-room:
		case <-ctx.Done():
			return departure{}, ctx.Err()
		}
	}
}

// tryAcquire takes n bytes, or returns what is closed when there may be room for them.
func (p *pacer) tryAcquire(n int, now time.Time) (departure, <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.inflight > 0 && p.inflight+n > p.window {
		return departure{}, p.room
	}
	p.inflight += n
	d := departure{bytes: n, at: now}
	p.up.departed(p, d)
	return d, nil
}

// acked notes that a part had arrived when the peer's clock showed received.
func (p *pacer) acked(d departure, received stamp, now time.Time) {
	p.mu.Lock()
	defer p.mu.Unlock()
	took, waited := p.way.took(stampOf(d.at, p.birth), received, now)
	p.adapt(d.bytes, waited, now.Sub(d.at), now)
	p.up.acked(p, d, took, waited, now)
	p.free(d.bytes)
}

// lost gives back n bytes whose fate is unknown.
func (p *pacer) lost(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.free(n)
}

func (p *pacer) free(n int) {
	p.inflight -= n
	p.up.freed(p, n, p.inflight > 0, time.Now())
	close(p.room)
	p.room = make(chan struct{})
}

// adapt moves the window by what an acknowledgement of n bytes says that came after
// delay and that waited in a queue on their way.
func (p *pacer) adapt(n int, queue, delay time.Duration, now time.Time) {
	switch {
	case queue > 4*QueueTarget && now.Sub(p.halved) > delay:
		p.starting = false
		p.halved = now
		p.window /= 2
	case p.starting && queue > QueueTarget/2:
		p.starting = false
		p.window /= 2
	case p.inflight < p.window/2:
		return // the sender, not the window, sets the pace
	case p.starting:
		p.window += n
	default:
		off := 1 - float64(queue)/float64(QueueTarget)
		p.window += int(max(off, -1) * float64(n) * Segment / float64(p.window))
	}
	p.window = min(max(p.window, MinWindow), maxWindow)
}

// sent notes that a whole transfer of n bytes took d.
func (p *pacer) sent(n int, d time.Duration) {
	p.measured.add(float64(n) / max(d, time.Microsecond).Seconds())
}

// rate is the average of what transfers reached, in bytes/s.
func (p *pacer) rate() float64 { return p.measured.value() }

// average is an exponential average of measurements; 0 before the first.
type average struct {
	mu sync.Mutex
	v  float64
}

// averageGain is the weight of a new measurement.
const averageGain = 0.25

func (a *average) add(x float64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.v == 0 {
		a.v = x
		return
	}
	a.v += float64(averageGain * (x - a.v))
}

func (a *average) value() float64 {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.v
}
