package outer

import "atoll/tensor"

// While the others' progress of a round is on its way, a learner trains on from what only it has made, which is
// mostly noise that the average would have cancelled. Where folds come lagFrom of H steps or more after own
// deltas left, theta therefore has only 1-pull of the own progress that is in flight: it is nearer to where the fold will be.
// What a delta holds and declares stays the same; a learner chooses where it trains. Measured with lags of 10
// and 20 steps at H = 24 and 64 (testnet/bench/RESULTS.md): pull from 0.2 to 0.4 is alike, and predicting the fold from the
// outer momentum or from the last one is worse than nothing.
const (
	lagFrom = 0.125
	pull    = 0.3
)

// Pull is the part of own progress in flight that theta is without, where the last own delta was folded lag steps after it left.
func (p Params) Pull(lag uint64) float64 {
	if float64(lag) < lagFrom*float64(p.H) {
		return 0
	}
	return pull
}

// pullBack takes a part of a delta that has just been drafted from theta, until it is folded or comes back.
func (l *Learner) pullBack(f *learning, o *ownDelta) error {
	if o.pulled = l.p.Pull(f.lag); o.pulled == 0 {
		return nil
	}
	return l.addToTheta(f, o, -o.pulled)
}

// addToTheta adds so many times q of one own delta to theta.
func (l *Learner) addToTheta(f *learning, o *ownDelta, times float64) error {
	sum := l.sum[:f.Len]
	clear(sum)
	if err := l.addOwn(f, o, times); err != nil {
		return err
	}
	f.eachRun(l.theta, func(theta []float32, at int) {
		tensor.MoveNarrow(theta, theta, 1, sum[at:at+len(theta)])
	})
	return nil
}
