package bulk

import "time"

// headBytes leave at once from a link that is a token bucket; what follows has the
// link's pace. The first part of any train is late by its own length.
const headBytes = Burst

// flight is what is measured while bulk is in flight to a peer.
type flight struct {
	start  time.Time
	before int // bytes that were sent before, to all peers
	train  *train
}

// train is parts that were sent to one peer before the ones before them had left
// the link, or soon after and into a queue of others: while it lasts the link has
// something to carry. What is sent to others between its parts leaves between them
// and counts as well.
type train struct {
	last   time.Time // when its latest part left, or its first was sent
	own    int       // bytes of the head
	head   *leaving  // the part with which headBytes had left
	latest leaving
	after  int // bytes that followed the head
}

// next is the train that goes on after a part.
func (t *train) next(l leaving) *train { return &train{last: t.last, head: &l, latest: l} }

// leaving is a part that was sent to a peer and left the link.
type leaving struct {
	to         *pacer
	bytes      int
	sent, left time.Time
	there      time.Time // when it arrived, by the peer's clock
}

// passed reports whether the train was over before a part that waited so long: by
// more than half of that. The part met a queue that was there for about as long, so
// the train is without one for a small part of its time.
func (t *train) passed(l leaving, waited time.Duration) bool {
	return l.sent.Add(-waited / 2).After(t.last)
}

// add takes in a part.
func (t *train) add(l leaving) {
	t.latest, t.last = l, latest(t.last, l.left)
	if t.head != nil {
		t.after += l.bytes
		return
	}
	if t.own += l.bytes; t.own >= headBytes {
		t.head = &l
	}
}

// took is how long what followed the head took.
func (t *train) took() time.Duration {
	if t.head == nil {
		return 0
	}
	return t.latest.there.Sub(t.head.there)
}

// long reports whether it is time for another train.
func (t *train) long() bool {
	return t.took() >= longTrain && t.after >= fewBytes || t.after >= longBytes
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// sample is trains to one peer, added up.
type sample struct {
	trains int
	bytes  int
	took   time.Duration
	proof  time.Duration // of it, in which no train to another peer counted
}

// done reports whether it is enough to show a rate.
func (s *sample) done() bool {
	return s.took >= longTrain || s.took >= sampleTime && s.trains >= sampleTrains || s.bytes >= longBytes
}

// steadyShare is the share of its even part that each of the first two thirds of a steady train
// brings at least. A congestion window that grows from nothing doubles with each round trip, and the link is
// idle in between: of what such a train brings, its first two thirds have little. One that
// leaves room for others, or has the link for itself at the end, brings more.
const steadyShare = 0.35

// departures are what left recently, about in order.
type departures struct{ entries []leaving }

// maxDepartures is several times what a long train takes.
const maxDepartures = 4 * longBytes / Segment

func (d *departures) add(l leaving) {
	if len(d.entries) >= 2*maxDepartures {
		d.entries = append(d.entries[:0], d.entries[maxDepartures:]...)
	}
	d.entries = append(d.entries, l)
}

// along is what left between the head of a train and its end.
func (d *departures) along(p *pacer, t *train) (a along) {
	begin, end := t.head.left, t.latest.left
	for _, l := range d.entries {
		sent, left := within(l.sent, t.head.sent, t.latest.sent), within(l.left, begin, end)
		if l.to == p {
			if left {
				third := min(2, int(3*l.left.Sub(begin)/max(end.Sub(begin), 1)))
				a.own[third] += l.bytes
			}
			continue
		}
		if sent {
			a.sent += l.bytes
		}
		if left {
			a.left += l.bytes
		}
	}
	return a
}

func within(t, after, until time.Time) bool { return t.After(after) && !t.After(until) }

// along is what left while a train did.
type along struct {
	sent int    // bytes to other peers that were sent after its head, and until its end was
	left int    // bytes to other peers that left then, as far as the clocks tell
	own  [3]int // bytes of the train in each third of its time
}

// others is what left between the parts of the train. A link that is full keeps the order in
// which parts were sent; where congestion windows hold them back, more were sent than left.
// When parts left is less certain: the shortest way to a peer may not be known yet.
func (a along) others() int { return min(a.sent, a.left) }

// steady reports whether the train had the pace of a link, and not of a congestion window that
// grew. One that loses pace shows a link that fell.
func (a along) steady() bool {
	all := a.own[0] + a.own[1] + a.own[2]
	return float64(min(a.own[0], a.own[1])) >= steadyShare*float64(all)/3
}
