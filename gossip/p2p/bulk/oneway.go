package bulk

import "time"

// stamp is when the receiver had read a segment, on a clock of its own, in ticks
// and modulo 65536 of them. An acknowledgement carries it, so that bulk which
// meets queues on its way is told from acknowledgements which meet them on theirs.
type stamp uint16

// StampTick is a fifth of what a segment takes at 200 Mbit/s. 65536 of them are
// 16 s: how long segments take may change by half of that.
const StampTick = 250 * time.Microsecond

// baseEpoch is how long the smallest delay seen stands for the path's own.
const baseEpoch = time.Minute

// stampBytes is what a stamp takes on a stream.
const stampBytes = 2

// stampOf is the time on a clock that began at birth.
func stampOf(t, birth time.Time) stamp { return stamp(t.Sub(birth) / StampTick) }

// oneWay follows how long segments take to a peer. The clocks of both ends share no
// zero, so only differences say something: those to the smallest recent one.
type oneWay struct {
	base  time.Duration // smallest that a segment took, in this epoch and the one before
	lower time.Duration // smallest of this epoch
	epoch time.Time     // when it began; zero before the first segment
}

// took notes how long a segment took, and how much of that it waited.
func (w *oneWay) took(sent, received stamp, now time.Time) (took, waited time.Duration) {
	took = w.base + time.Duration(int16(received-sent-stamp(w.base/StampTick)))*StampTick
	if w.epoch.IsZero() {
		w.epoch, w.base, w.lower = now, took, took
	}
	if now.Sub(w.epoch) > baseEpoch {
		w.epoch, w.base, w.lower = now, w.lower, took
	}
	w.lower = min(w.lower, took)
	w.base = min(w.base, took)
	return took, took - w.base
}
