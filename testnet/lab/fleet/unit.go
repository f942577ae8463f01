package fleet

import (
	"math"
	"math/rand/v2"
)

// unit is chips that step together. Times are seconds since the start.
type unit struct {
	cfg    Config
	draws  *rand.Rand
	chips  float64 // if none were lost
	step   float64 // with what it waits for
	now    float64
	lost   float64   // chips
	back   []float64 // when each lost slice is there again, in order
	away   []float64 // the same of slices that were taken away
	next   float64   // when a slice is lost next
	nextIs loss
	from   float64 // the time in which it is cut off
	until  float64

	done     float64 // steps of a chip that made progress
	cutOff   float64 // as many, of those made in the partition
	pauses   []pause
	failures int
}

// loss is how a slice is lost.
type loss int

const (
	fails loss = iota
	preempted
)

// pause is a time in which a unit makes no progress.
type pause struct{ from, to float64 }

// run steps until the end.
func (u *unit) run(end float64) {
	u.drawLoss(0)
	for u.now < end {
		quiet := min(u.next, u.returns(), end)
		if steps := math.Floor((quiet - u.now) / u.step); steps > 0 {
			u.progress(steps)
			continue
		}
		u.strike(end)
	}
}

// progress are steps in which nothing happens.
func (u *unit) progress(steps float64) {
	took := steps * u.step
	made := steps * (u.chips - u.lost)
	u.done += made
	if made <= 0 {
		u.pauses = append(u.pauses, pause{u.now, u.now + took})
	}
	if both := min(u.now+took, u.until) - max(u.now, u.from); both > 0 {
		u.cutOff += made * both / took
	}
	u.now += took
}

// strike is a step in which something happens. It is made all the same: what was lost of it is in the pause
// that follows. What happens in that pause makes no other one.
func (u *unit) strike(end float64) {
	stepEnd := min(u.now+u.step, end)
	h := u.happens(stepEnd)
	u.progress((stepEnd - u.now) / u.step)
	if wait := u.pauseFor(h); wait > 0 {
		over := min(u.now+wait, end)
		u.pauses = append(u.pauses, pause{u.now, over})
		u.now = over
		u.happens(over)
	}
}

// happenings are what happens to a unit in some time.
type happenings struct {
	shrinks, grows bool
	replaced       float64 // when the last slice that was taken away is replaced, where all wait for it
}

// happens takes what happens until a time.
func (u *unit) happens(until float64) (h happenings) {
	for min(u.next, u.returns()) < until {
		at := min(u.next, u.returns())
		if at == u.next {
			h.shrinks = true
			u.failures++
			h.replaced = max(h.replaced, u.lose())
		} else {
			h.grows = true
			u.readmit()
		}
		u.drawLoss(at)
	}
	return h
}

// pauseFor is how long a unit pauses. Where all restart, a spare takes the place of what failed, and
// what was taken away is waited for.
func (u *unit) pauseFor(h happenings) (wait float64) {
	c := u.cfg
	switch {
	case c.System == DP && h.shrinks:
		return max(c.Detect.Seconds(), h.replaced-u.now) + c.Resume.Seconds()
	case c.System == DP:
		return 0
	}
	if h.shrinks {
		wait += c.Detect.Seconds() + c.Shrink.Seconds()
	}
	if h.grows {
		wait += c.Grow.Seconds()
	}
	return wait
}

// returns is when the next slice is there again.
func (u *unit) returns() float64 { return min(first(u.back), first(u.away)) }

func first(queue []float64) float64 {
	if len(queue) == 0 {
		return math.Inf(1)
	}
	return queue[0]
}

func (u *unit) readmit() {
	if first(u.away) < first(u.back) {
		u.away = u.away[1:]
	} else {
		u.back = u.back[1:]
	}
	u.lost -= u.slice()
}

// lose takes a slice out of the unit. Where all restart, it is out only in the pause, which lasts until
// replaced at least.
func (u *unit) lose() (replaced float64) {
	switch {
	case u.cfg.System == DP && u.nextIs == preempted:
		return u.next + u.cfg.Away.Seconds()
	case u.cfg.System == DP:
		return 0
	case u.nextIs == preempted:
		u.away = append(u.away, u.next+u.cfg.Away.Seconds())
	default:
		u.back = append(u.back, u.next+u.cfg.Repair.Seconds())
	}
	u.lost += u.slice()
	return 0
}

// slice are the chips that are lost at once.
func (u *unit) slice() float64 { return float64(u.cfg.Slice) }

// drawLoss draws when, after a time, the next slice is lost of those that are left. Losses have no memory, so
// it may be drawn again whenever something changes.
func (u *unit) drawLoss(after float64) {
	left := u.chips - u.lost
	if u.next = math.Inf(1); left < u.slice() {
		return
	}
	failing, taken := left/u.cfg.MTBF.Seconds(), 0.0
	if u.cfg.Preempt > 0 {
		taken = left / u.slice() / u.cfg.Preempt.Seconds()
	}
	u.next = after + u.draws.ExpFloat64()/(failing+taken)
	if u.nextIs = fails; taken > 0 && u.draws.Float64()*(failing+taken) >= failing {
		u.nextIs = preempted
	}
}
