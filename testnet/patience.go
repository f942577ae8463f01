package testnet

import (
	"fmt"
	"time"
)

// stallTime is how long a world may go without a fold where nobody set a limit. The largest model here folds every few
// minutes where its learners share a core, and pauses by chaos are shorter.
const stallTime = 30 * time.Minute

// patience is how long a world may take: that long in all, or, with no limit, for as long as it goes on.
type patience struct {
	most   time.Duration // 0 = no limit
	began  time.Time
	moved  time.Time // when more was folded
	folded float64   // percent of the budget, then
}

func newPatience(most time.Duration, began time.Time) patience {
	return patience{most: most, began: began, moved: began}
}

// spent takes how much is folded now, and returns an ErrTimeout if the world is to end as it takes too long.
func (p *patience) spent(now time.Time, folded float64) error {
	if folded > p.folded {
		p.moved, p.folded = now, folded
	}
	switch {
	case p.most > 0 && now.Sub(p.began) >= p.most:
		return fmt.Errorf("%w: it did not end within %v; raise --timeout or lower --tokens", ErrTimeout, p.most)
	case p.most == 0 && now.Sub(p.moved) >= stallTime:
		return fmt.Errorf("%w: nothing was folded for %v; if rounds take that long, say with --timeout how long all may", ErrTimeout, stallTime)
	}
	return nil
}
