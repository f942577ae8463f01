package p2p

import "time"

// headBytes leave at once from a link that is a token bucket, such as a shaped one;
// what follows has the link's pace.
const headBytes = limitBurst

// span is a time in which bulk was in flight to one peer.
type span struct {
	fresh bool      // nothing was on the link to the peer before
	log   int       // of uplink, where the span begins
	start time.Time // of the span
	last  time.Time // when the peer's latest part had left
	busy  time.Time // up to here a part was certainly on its way to the peer
	gaps  time.Duration
	own   int // bytes to the peer

	// By the peer's clock: the latest arrival, and the one from which it goes on.
	from, to time.Time
	// When headBytes had left, the same by the peer's clock, and what followed to
	// the peer.
	head, headThere time.Time
	after           int
}

// flight is what is measured while bulk is in flight to a peer.
type flight struct {
	whole *span
	train *span // begins anew after each time in which nothing was on the link to the peer
}

func newSpan(start time.Time, log int) *span {
	return &span{fresh: true, log: log, start: start, last: start, busy: start}
}

// leaving is a part that was sent to a peer and then left the link: not before
// early, and not after late.
type leaving struct {
	to                *pacer
	bytes             int
	sent, early, late time.Time
}

// arrived counts a part that the peer had at a time of its clock.
func (s *span) arrived(l leaving, there time.Time) {
	s.gaps += max(l.sent.Sub(s.busy), 0)
	s.busy, s.last, s.to = latest(s.busy, l.early), latest(s.last, l.late), there
	s.own += l.bytes
	switch {
	case !s.head.IsZero():
		s.after += l.bytes
	case s.own >= headBytes:
		s.head, s.headThere = s.last, there
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// full reports whether it is time for another span.
func (s *span) full() bool {
	return s.own >= leastBytes && s.last.Sub(s.start) >= spanTime || s.own >= spanBytes
}

// gappy reports whether nothing was on its way to the peer for more than a small
// part of the time.
func (s *span) gappy() bool { return float64(s.gaps) > gapShare*float64(s.last.Sub(s.start)) }

// rate is what the span shows of the link, 0 if it is too short.
func (s *span) rate(p *pacer, log *departures) float64 {
	if s.fresh {
		return s.trainRate(p, log)
	}
	return s.flowRate(p, log)
}

// flowRate is what a span shows that began in the midst of bulk. For others as much
// arrives from before it as does not yet at its end. That is so to within the
// difference of the peers' ways, so the span has to be long.
func (s *span) flowRate(p *pacer, log *departures) float64 {
	whole := s.to.Sub(s.from)
	bytes := s.own + log.others(p, s.log, func(leaving) bool { return true })
	if s.gappy() { // in which a token bucket filled again
		bytes -= headBytes
	}
	if whole < spanTime*2/3 && s.own < spanBytes || bytes < leastBytes || whole < leastTime {
		return 0
	}
	return float64(bytes) / whole.Seconds()
}

// trainRate is what a span shows that began with an idle link to the peer. How long
// parts take counts from what one takes that meets no queue. Each of these is
// delayed by its own length, or by nothing in the burst of a token bucket. Both are
// allowed for.
func (s *span) trainRate(p *pacer, log *departures) float64 {
	whole := s.last.Sub(s.start)
	bytes := s.own + log.others(p, s.log, func(l leaving) bool { return !l.sent.Before(s.start) && !l.late.After(s.last) })
	rest := s.to.Sub(s.headThere)
	if s.head.IsZero() || bytes < leastBytes || rest < leastTime {
		return 0
	}
	if s.gappy() {
		return float64(bytes-headBytes) / whole.Seconds()
	}
	after := s.after + log.others(p, s.log, func(l leaving) bool { return !l.early.Before(s.head) && !l.late.After(s.last) })
	return min(float64(bytes-segment)/whole.Seconds(), float64(after)/rest.Seconds())
}

// departures are what left of late, in the order of acknowledgements.
type departures struct {
	entries []leaving
	dropped int // before the first of entries
}

// maxDepartures is twice what a span takes.
const maxDepartures = 2 * spanBytes / segment

func (d *departures) add(l leaving) {
	if len(d.entries) >= 2*maxDepartures {
		d.entries = append(d.entries[:0], d.entries[maxDepartures:]...)
		d.dropped += maxDepartures
	}
	d.entries = append(d.entries, l)
}

// end is where the next one will be.
func (d *departures) end() int { return d.dropped + len(d.entries) }

// others sums what left for other peers than this one, from an entry on, and counts.
func (d *departures) others(p *pacer, from int, counts func(leaving) bool) (bytes int) {
	for _, l := range d.entries[max(from-d.dropped, 0):] {
		if l.to != p && counts(l) {
			bytes += l.bytes
		}
	}
	return bytes
}
