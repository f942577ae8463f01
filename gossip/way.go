package gossip

import (
	"slices"
)

// way is how long a message takes to a peer, in ms: half of the round trip of small
// calls, of which the smallest recent one counts. Others met a queue or a busy peer.
type way struct {
	ms     int64 // smallest of the present window and the one before; 0 if unknown
	window int64 // smallest of the present window
	since  Time  // when that began
}

// sampled takes one more measurement.
func (w *way) sampled(now Time, ms int64) {
	switch {
	case w.ms == 0:
		w.ms, w.window, w.since = ms, ms, now
	case now-w.since >= wayWindowMs:
		w.ms, w.window, w.since = min(w.window, ms), ms, now
	default:
		w.window = min(w.window, ms)
		w.ms = min(w.ms, w.window)
	}
}

// sampleWay takes the round trip of a call that was answered, without the time that the
// bytes of the answer took.
func (t *peers) sampleWay(id uint64, bytes int) {
	to, sent, small := t.Small(id)
	p := t.find(to)
	if p == nil || !small || t.Took == 0 && bytes > wayMaxBytes {
		return
	}
	trip := t.Now - sent - max(t.Took-1, 0)
	p.way.sampled(t.Now, max(trip/2, 1))
}

// usualWay is the way to half of the connected peers to which it is known, 0 if it is to
// none. A few that answer slowly, by their links or by intent, change nothing.
func (t *peers) usualWay() int64 {
	var ways []int64
	for _, p := range t.linked {
		if p.way.ms > 0 {
			ways = append(ways, p.way.ms)
		}
	}
	return lowerMedian(ways)
}

// lowerMedian is the middle value, the smaller one of two, and 0 of none. It sorts them.
func lowerMedian[T int64 | float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
