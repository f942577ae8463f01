package outer

import "atoll/tensor"

// While the others' progress of a round is on its way, a learner trains on from what only it has made, which is
// mostly noise that the average would have cancelled. So where folds come late the local parameters have only
// lateShare of own progress in flight: they are nearer to where the fold will be. What a delta holds and declares stays the same; a learner
// chooses where it trains. Measured with payloads that take 10 and 20 steps at H = 24 and 64
// (testnet/lab/RESULTS.md): shares of 0.6 to 0.8 are alike, and predicting the fold, from the outer momentum or from
// the last one, is worse than nothing.
const lateShare = 0.7

// A fold is late that is adopted lateSteps and lateRound of H after its own delta left. One step passes in any
// case, and with small H a second is no sign of slow links.
const (
	lateSteps = 2
	lateRound = 0.125
)

// share is what the local parameters are to have of the next own delta of a fragment while it is in flight.
func (l *Learner) share(f *learning) float64 {
	if float64(f.lag) < lateSteps+float64(lateRound*float64(l.p.H)) {
		return 1
	}
	return lateShare
}

// recordLag records how many steps it took until own deltas were folded or dropped, the newest of them if there are
// several.
func (l *Learner) recordLag(f *learning, adds []addend) {
	first := true
	for _, a := range adds {
		if lag := l.steps - a.left; a.times < 0 && (first || lag < f.lag) {
			f.lag, first = lag, false
		}
	}
}

// addToLocal adds so many times q of one own delta to the local parameters.
func (l *Learner) addToLocal(f *learning, o *ownDelta, times float64) error {
	if times == 0 {
		return nil
	}
	clear(l.sum[:f.Len])
	if err := l.addOwn(f, o, times); err != nil {
		return err
	}
	l.addSum(f)
	return nil
}

// addSum adds l.sum to the local parameters.
func (l *Learner) addSum(f *learning) {
	f.eachRun(l.local, func(local []float32, at int) {
		tensor.MoveNarrow(local, local, 1, l.sum[at:at+len(local)])
	})
}
