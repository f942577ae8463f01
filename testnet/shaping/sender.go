package shaping

import (
	"slices"
	"time"
)

// Sender is what one end of a shaped connection knows of what it has sent: TCP with selective
// acknowledgements. A chunk counts as lost when segments are acknowledged that left after it
// (RFC 6675), or when nothing is for too long (RFC 6298). It has no clock and no socket.
type Sender struct {
	window   window
	next     uint64  // where the next byte stands in the stream
	flight   []chunk // sent and not acknowledged, in the order of the stream
	inflight int     // bytes of it
	passed   bool    // one of it may count as lost since the last look
	acks     []ack   // that are on their way back, the first one first
	recover  uint64  // the window was cut for what stands before
	smooth   time.Duration
	varies   time.Duration
	waits    time.Time // since when it waits for an acknowledgement of the first in flight
	backoff  int       // timeouts in a row
}

// chunk is bytes that were sent.
type chunk struct {
	at     uint64 // in the stream
	size   int
	sent   time.Time
	lost   []byte // what has to be sent again; nil if it arrives
	again  bool   // it was sent again
	passed int    // bytes acknowledged that were sent after it
}

// ack says that a chunk has arrived.
type ack struct {
	at   uint64
	due  time.Time // when the sender knows it
	full bool      // a router would have dropped it
}

const (
	// duplicates are the segments that have to arrive for one before them to count as lost.
	duplicates = 3 * Segment
	// windowParts are the chunks of a window at least: acknowledgements set the pace of what is
	// sent, and one for a large part of the window would send a burst.
	windowParts = 16
	// leastTimeout is the one of Linux.
	leastTimeout = 200 * time.Millisecond
	// firstTimeout is for a round trip that is not known (RFC 6298).
	firstTimeout = time.Second
	// maxBackoff bounds how often the timeout doubles: 16 s for the least.
	maxBackoff = 6
)

// NewSender is one that has sent nothing.
func NewSender() Sender { return Sender{window: newWindow()} }

// Acked tells that what stands at a place of the stream has arrived, and when the sender knows it.
func (s *Sender) Acked(at uint64, due time.Time) { s.acks = append(s.acks, ack{at: at, due: due}) }

// Room is how many of n bytes may be sent. Less than a segment is not worth a packet.
func (s *Sender) Room(n int, now time.Time) int {
	if len(s.flight) == 0 && !s.waits.IsZero() {
		s.window.rested(now.Sub(s.waits).Seconds() / s.timeout().Seconds())
		s.waits = now
	}
	room := s.window.bytes() - s.inflight
	if room < min(n, Segment) && s.inflight > 0 {
		return 0
	}
	return min(n, max(min(room, s.window.bytes()/windowParts), Segment))
}

// Send notes that n bytes were sent; lost has them if they will not arrive.
func (s *Sender) Send(n int, lost []byte, now time.Time) (at uint64) {
	if len(s.flight) == 0 {
		s.waits = now
	}
	at = s.next
	s.flight = append(s.flight, chunk{at: at, size: n, sent: now, lost: lost})
	s.inflight += n
	s.next += uint64(n)
	return at
}

// Advance takes in what is known by now, and returns what is to be sent again.
func (s *Sender) Advance(now time.Time) (again []*chunk) {
	for len(s.acks) > 0 && !s.acks[0].due.After(now) {
		s.acked(s.acks[0])
		s.acks = s.acks[1:]
	}
	if s.passed {
		again = s.overtaken(now)
		s.passed = len(again) > 0
	}
	if end := s.deadline(); len(again) == 0 && !end.IsZero() && !end.After(now) {
		again = s.timedOut(now)
	}
	return again
}

// overtaken are the chunks that count as lost and were not sent again.
func (s *Sender) overtaken(now time.Time) (again []*chunk) {
	for i := range s.flight {
		if c := &s.flight[i]; c.passed >= duplicates && c.lost != nil && !c.again {
			if s.congested(c.at); i == 0 {
				s.waits = now
			}
			again = append(again, c)
		}
	}
	return again
}

// acked takes in an acknowledgement.
func (s *Sender) acked(a ack) {
	i, ok := slices.BinarySearchFunc(s.flight, a.at, func(c chunk, at uint64) int { return int(int64(c.at - at)) })
	if !ok {
		return
	}
	c := s.flight[i]
	bounds := s.inflight+max(c.size, Segment) > s.window.bytes() ||
		s.window.size < s.window.threshold && 2*s.inflight > s.window.bytes()
	for k := range i {
		s.flight[k].passed += c.size
	}
	s.inflight -= c.size
	if i == 0 { // nearly always, and a large window has many behind it
		s.flight = s.flight[1:]
		s.waits, s.backoff = a.due, 0
	} else {
		s.flight = slices.Delete(s.flight, i, i+1)
		s.passed = true
	}
	if !c.again {
		s.measure(a.due.Sub(c.sent))
	}
	if a.full {
		s.congested(a.at)
	}
	s.window.acked(float64(c.size)/Segment, bounds, s.smooth, a.due)
}

// congested cuts the window, once for all that was on its way.
func (s *Sender) congested(at uint64) {
	if at >= s.recover {
		s.window.cut()
		s.recover = s.next
	}
}

// timedOut sends again what is lost. Where nothing is, the other end is only slow.
func (s *Sender) timedOut(now time.Time) (again []*chunk) {
	s.waits = now
	for i := range s.flight {
		if s.flight[i].lost != nil {
			again = append(again, &s.flight[i])
		}
	}
	if len(again) > 0 {
		s.window.timeout()
		s.recover, s.backoff = s.next, min(s.backoff+1, maxBackoff)
	}
	return again
}

// measure takes in a round trip (RFC 6298).
func (s *Sender) measure(rtt time.Duration) {
	if s.smooth == 0 {
		s.smooth, s.varies = rtt, rtt/2
		return
	}
	s.varies += ((rtt - s.smooth).Abs() - s.varies) / 4
	s.smooth += (rtt - s.smooth) / 8
}

// timeout is how long an acknowledgement may take.
func (s *Sender) timeout() time.Duration {
	if s.smooth == 0 {
		return firstTimeout << s.backoff
	}
	return (s.smooth + max(4*s.varies, leastTimeout)) << s.backoff
}

// deadline is when the timeout is over; zero if nothing is waited for.
func (s *Sender) deadline() time.Time {
	if len(s.flight) == 0 {
		return time.Time{}
	}
	return s.waits.Add(s.timeout())
}

// Wakes is when advance has something to do; zero = not before something happens.
func (s *Sender) Wakes() time.Time {
	end := s.deadline()
	if len(s.acks) > 0 && (end.IsZero() || s.acks[0].due.Before(end)) {
		return s.acks[0].due
	}
	return end
}
