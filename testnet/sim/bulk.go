package sim

import (
	"math"
	"slices"
)

// bulk is all long answers under way over links with a rate. They flow like a fluid: the
// rates of streams are max-min fair over uplinks and downlinks, as acknowledged segments
// share them in gossip/p2p, and a stream's answers share its rate. Rates change only
// where an answer begins or ends, or a link changes. So an answer costs a few events
// however long it is.
type bulk struct {
	streams []*stream // in order of their beginning
	at      Time      // up to when what has flown is counted
	wakes   Time      // when it looks next; 0 = never
}

// stream is the bulk from one node to another.
type stream struct {
	from, to  *Node
	rate      float64 // bytes per ms
	most      float64 // rate that its path can have, whatever its ends do
	narrow    *side   // which sets the rate; nil: the path does
	served    float64 // bytes that an answer has that was here from the start
	transfers []transfer
}

// transfer is one answer. They are in the order in which they end.
type transfer struct {
	end  float64 // when served comes to this
	call *exchange
	left func() // when the last byte has left
	cut  func() // where nobody waits for the rest any more
}

// bulkBytes is the least answer that is paced: an eighth of the segment of gossip/p2p, as
// payloads here are smaller.
const bulkBytes = 4 << 10

// isBulk says that an answer to p is paced. Where both links have no limit, it takes no
// time to leave, as do all other things.
func (n *Node) isBulk(p *Node, size int) bool {
	return size >= bulkBytes && (n.uplink.rate > 0 || p.downlink.rate > 0)
}

// sends begins an answer of so many bytes.
func (w *World) sends(from *Node, t transfer, size int) {
	w.bulk.count(w.now)
	s := w.bulk.stream(from, t.call.by)
	t.end = s.served + float64(size)
	i, _ := slices.BinarySearchFunc(s.transfers, t, func(a, b transfer) int {
		if a.end <= b.end {
			return -1
		}
		return 1
	})
	s.transfers = slices.Insert(s.transfers, i, t)
	t.call.stream = s
	w.shareAt(w.now) // what begins at one moment is shared out at once
}

func (b *bulk) stream(from, to *Node) *stream {
	for _, s := range b.streams {
		if s.from == from && s.to == to {
			return s
		}
	}
	s := &stream{from: from, to: to}
	b.streams = append(b.streams, s)
	return s
}

// cancel ends an answer that nobody waits for any more.
func (w *World) cancel(call *exchange) {
	s := call.stream
	if s == nil {
		return
	}
	w.bulk.count(w.now)
	i := slices.IndexFunc(s.transfers, func(t transfer) bool { return t.call == call })
	s.transfers[i].cut()
	s.transfers = slices.Delete(s.transfers, i, i+1)
	call.stream = nil
	w.shareAt(w.now)
}

// shareAt shares the links out again at t, or before.
func (w *World) shareAt(t Time) {
	b := &w.bulk
	if b.wakes != 0 && b.wakes <= t {
		return
	}
	b.wakes = t
	w.at(t, func() {
		if b.wakes == t {
			b.wakes = 0
			w.flow()
		}
	})
}

// flow ends the answers that have left, and shares the links among the others.
func (w *World) flow() {
	b := &w.bulk
	if len(b.streams) == 0 {
		return
	}
	b.count(w.now)
	for _, s := range b.streams {
		s.finish()
	}
	b.share()
	if next := b.next(); !math.IsInf(next, 1) {
		w.shareAt(w.now + max(Time(math.Ceil(next)), 1))
	}
}

// almost is what rounding may leave of an answer, in bytes.
const almost = 1e-3

func (s *stream) finish() {
	for len(s.transfers) > 0 && s.transfers[0].end <= s.served+almost {
		t := s.transfers[0]
		s.transfers = s.transfers[1:]
		t.call.stream = nil
		t.left()
	}
}

// count has flown what flows until now.
func (b *bulk) count(now Time) {
	ms := float64(now - b.at)
	b.at = now
	if ms == 0 {
		return
	}
	for _, s := range b.streams {
		bytes := s.rate * ms
		if s.narrow != nil {
			s.narrow.countSmall(ms, now)
			bytes *= 1 - s.narrow.lost
		}
		if bytes > 0 {
			s.served += bytes / float64(max(len(s.transfers), 1))
			s.from.carried(s, bytes, now, ms)
		}
	}
	for _, s := range b.streams {
		s.from.measures()
	}
}

// next is how many ms are left until the first answer ends, or a measurement is due;
// infinite if nothing flows.
func (b *bulk) next() float64 {
	next := math.Inf(1)
	for _, s := range b.streams {
		if s.rate > 0 {
			next = min(measureMs, next, (s.transfers[0].end-s.served)*float64(len(s.transfers))/s.rate)
		}
	}
	return next
}

// stalled says that nothing gets through, so that no acknowledgement comes back.
func (s *stream) stalled() bool {
	w := s.from.w
	return s.from.paused != 0 || s.to.paused != 0 || w.apart(s.from, s.to)
}

// share gives each stream its rate. Rates rise together until an end is full, which sets
// those of its streams, and so on (progressive filling).
func (b *bulk) share() {
	open := b.opened()
	for len(open) > 0 {
		level, narrow := leastShare(open)
		open = slices.DeleteFunc(open, func(s *stream) bool {
			if !s.sets(level, narrow) {
				return false
			}
			s.setRate(level, narrow)
			return true
		})
	}
	for _, s := range b.streams {
		s.from.uplink.fills(b.at, s)
		s.to.downlink.fills(b.at, s)
	}
}

// opened are the streams that flow; their ends have all their room.
func (b *bulk) opened() (open []*stream) {
	for _, s := range b.streams {
		s.rate, s.narrow, s.most = 0, nil, mathis(s.from.link.LatencyMs+s.to.link.LatencyMs, s.from.link.Loss)
		for _, e := range s.ends() {
			e.room, e.open, e.full, e.empty = e.rate, 0, false, float64(b.at)
		}
	}
	b.streams = slices.DeleteFunc(b.streams, func(s *stream) bool { return len(s.transfers) == 0 })
	for _, s := range b.streams {
		if s.stalled() {
			continue
		}
		open = append(open, s)
		for _, e := range s.ends() {
			e.open++
		}
	}
	return open
}

func (s *stream) ends() [2]*side { return [2]*side{&s.from.uplink, &s.to.downlink} }

// leastShare is the smallest rate that a stream can have, and the end which sets it, nil
// if a path does.
func leastShare(open []*stream) (level float64, narrow *side) {
	level = math.Inf(1)
	for _, s := range open {
		if s.most < level {
			level, narrow = s.most, nil
		}
		for _, e := range s.ends() {
			if share := e.room / float64(e.open); e.rate > 0 && share < level {
				level, narrow = share, e
			}
		}
	}
	return level, narrow
}

// sets says that a level is the rate of this stream.
func (s *stream) sets(level float64, narrow *side) bool {
	if narrow == nil {
		return s.most <= level
	}
	return narrow == &s.from.uplink || narrow == &s.to.downlink
}

// setRate gives a stream its rate.
func (s *stream) setRate(rate float64, narrow *side) {
	s.rate, s.narrow = rate, narrow
	for _, e := range s.ends() {
		e.room -= rate
		e.open--
	}
}

// fills records for small things how long the bulk of a stream stands in their way.
func (e *side) fills(now Time, s *stream) {
	if e.rate == 0 || s.rate == 0 {
		return
	}
	e.full = e.full || s.narrow == e
	last := s.transfers[len(s.transfers)-1]
	e.empty += (last.end - s.served) * float64(len(s.transfers)) / e.rate
}
