package shaping

import (
	"math"
	"time"
)

// window is the congestion window of one direction of a connection, in segments: CUBIC as in
// RFC 9438, which Linux, macOS and Windows use, with the slow start and the timeouts of RFC 5681.
type window struct {
	size      float64
	threshold float64   // below it, slow start
	top       float64   // what it was when it was cut last, and a bit less if it was larger before
	prior     float64   // what it was when it was cut last
	began     time.Time // when it began to grow again; zero = not yet
	back      float64   // seconds from then until it is at the top
	reno      float64   // what the window of RFC 5681 would be
	heard     time.Time // the newest acknowledgement
}

const (
	// windowAtFirst is what a connection begins with (RFC 6928).
	windowAtFirst = 10
	// maxWindowBytes is the largest send buffer that Linux gives a connection by itself.
	maxWindowBytes = 4 << 20
	// cubicGrowth and cubicCut are C and beta of RFC 9438.
	cubicGrowth = 0.4
	cubicCut    = 0.7
	// cubicRenoGrowth is what a window that is cut so little may grow to take as much as one of
	// RFC 5681 (RFC 9438, section 4.3).
	cubicRenoGrowth = 3 * (1 - cubicCut) / (1 + cubicCut)
	// leastWindow is what a loss leaves (RFC 9438, section 4.6).
	leastWindow = 2
)

func newWindow() window { return window{size: windowAtFirst, threshold: math.Inf(1)} }

func (w *window) bytes() int { return int(w.size * Segment) }

// acked lets the window grow by an acknowledgement of so many segments. One that did not bound
// what was on its way stays as it is (RFC 9438, section 5.8).
func (w *window) acked(segments float64, bounds bool, rtt time.Duration, now time.Time) {
	idle := now.Sub(w.heard)
	w.heard = now
	switch {
	case !bounds:
		if !w.began.IsZero() {
			w.began = w.began.Add(idle)
		}
	case w.size < w.threshold:
		w.size += segments
	default:
		w.avoid(segments, rtt, now)
	}
	w.size = min(w.size, maxWindowBytes/Segment)
}

// avoid is congestion avoidance.
func (w *window) avoid(segments float64, rtt time.Duration, now time.Time) {
	if w.began.IsZero() {
		w.began, w.reno = now, w.size
		w.top = max(w.top, w.size)
		w.back = math.Cbrt((w.top - w.size) / cubicGrowth)
	}
	growth := cubicRenoGrowth
	if w.reno >= w.prior {
		growth = 1
	}
	w.reno += growth * segments / w.size
	since := now.Sub(w.began).Seconds()
	if w.cubic(since) < w.reno {
		w.size = max(w.size, w.reno)
		return
	}
	target := min(max(w.cubic(since+rtt.Seconds()), w.size), 1.5*w.size)
	w.size += (target - w.size) / w.size * segments
}

func (w *window) cubic(seconds float64) float64 {
	x := seconds - w.back
	return cubicGrowth*x*x*x + w.top
}

// cut is what a loss does.
func (w *window) cut() {
	w.prior = w.size
	if w.size < w.top {
		w.top = w.size * (1 + cubicCut) / 2
	} else {
		w.top = w.size
	}
	w.size = max(cubicCut*w.size, leastWindow)
	w.threshold, w.began = w.size, time.Time{}
}

// timeout is what the loss of all that could tell of a loss does.
func (w *window) timeout() {
	w.cut()
	w.size = 1
}

// rested is what a pause of so many timeouts leaves of the window: half of it for each, as
// Linux does instead of all at once (RFC 5681, section 4.1).
func (w *window) rested(timeouts float64) {
	if timeouts >= 1 && w.size > windowAtFirst {
		w.threshold = max(w.threshold, 0.75*w.size)
		w.size = max(windowAtFirst, w.size*math.Exp2(-math.Floor(timeouts)))
		w.began = time.Time{}
	}
}
