package testnet

import (
	"fmt"
	"time"

	"atoll/node/status"
)

// How long a world may go without progress where nobody set a limit. It is several rounds of the slowest learner, as a
// barrier waits for it and chaos slows it, and no less than random pauses and partitions can last.
const (
	stallTime   = chanceFor
	stallRounds = 8
)

// timeLimit is how long a world may take: that long in all, or, with no limit, for as long as it goes on.
type timeLimit struct {
	most   time.Duration // 0 = no limit
	stall  time.Duration // without progress
	began  time.Time
	moved  time.Time // when folded last changed
	folded uint64
}

// newTimeLimit is for a world whose rounds take so long.
func newTimeLimit(most, round time.Duration, began time.Time) timeLimit {
	return timeLimit{most: most, stall: max(stallTime, stallRounds*round), began: began, moved: began}
}

// exceeded takes how many tokens the nodes say are folded now, in sum. It returns an ErrTimeout if the world takes too long
// and must end.
func (l *timeLimit) exceeded(now time.Time, folded uint64) error {
	if folded != l.folded {
		l.moved, l.folded = now, folded
	}
	switch {
	case l.most > 0 && now.Sub(l.began) >= l.most:
		return fmt.Errorf("%w: it did not end within %v; raise --timeout or lower --tokens", ErrTimeout, status.Duration(l.most))
	case l.most == 0 && now.Sub(l.moved) >= l.stall:
		return fmt.Errorf("%w: nothing was folded for %v; if rounds take that long, raise --timeout", ErrTimeout, status.Duration(l.stall))
	}
	return nil
}

// roundTime is how long a round of the slowest learner takes.
func (w *world) roundTime() time.Duration {
	slowest := 1.0
	for i := range w.cfg.Nodes + w.joins() {
		slowest = max(slowest, w.cfg.divisor(i))
	}
	return time.Duration(float64(w.genesis.Outer.H) * slowest * w.calibration.step() * float64(time.Millisecond))
}

// foldedInSum is what each node's newest process says of itself, in sum: any change is progress, also of those that lost a chain.
func (w *world) foldedInSum() (sum uint64) {
	for _, m := range w.members {
		if l := m.newest(); l != nil {
			sum += l.last.TokensFolded
		}
	}
	return sum
}
