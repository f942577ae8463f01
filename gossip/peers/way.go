package peers

import (
	"slices"

	"atoll/gossip/effect"
)

// way is how long a message takes to a peer, in ms: half of the round trip of small
// calls, of which the smallest recent one counts. Others met a queue or a busy peer.
type way struct {
	ms     int64       // smallest of the present window and the one before; 0 if unknown
	window int64       // smallest of the present window
	since  effect.Time // when that began
}

// sampled takes one more measurement.
func (w *way) sampled(now effect.Time, ms int64) {
	switch {
	case w.ms == 0:
		w.ms, w.window, w.since = ms, ms, now
	case now-w.since >= WayWindowMs:
		w.ms, w.window, w.since = min(w.window, ms), ms, now
	default:
		w.window = min(w.window, ms)
		w.ms = min(w.ms, w.window)
	}
}

// SampleWay takes the round trip of a call that was answered, without the time that the
// bytes of the answer took.
func (t *Table) SampleWay(id uint64, bytes int) {
	to, sent, small := t.Small(id)
	p := t.Find(to)
	if p == nil || !small || t.Took == 0 && bytes > wayMaxBytes {
		return
	}
	trip := t.Now - sent - max(t.Took-1, 0)
	p.way.sampled(t.Now, max(trip/2, 1))
}

// usualWay is the way to half of the connected peers to which it is known, 0 if it is to
// none. A few that answer slowly, by their links or by intent, change nothing.
func (t *Table) usualWay() int64 {
	var ways []int64
	for _, p := range t.Linked {
		if p.way.ms > 0 {
			ways = append(ways, p.way.ms)
		}
	}
	return LowerMedian(ways)
}

// LowerMedian is the middle value, the smaller one of two, and 0 of none. It sorts them.
func LowerMedian[T int64 | float64](values []T) T {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	return values[(len(values)-1)/2]
}
