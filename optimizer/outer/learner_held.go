package outer

import (
	"atoll/tensor/codec"
)

// heldDecay is what is left, at each delta of a fragment, of the progress that the sparse codec has not
// sent. It is made again from the anchor in each round until it is, so up to 1/(1-heldDecay) times as much as
// a value needs may add up before it travels: 0.95, which SparseLoCo (arXiv 2508.15706) has, and 0.9 make
// simulated runs diverge whose learners come near their optimum within a round, 0.8 none. Measured on text 0.8 was
// the best with few rounds, and 0.95 2 % better with many (testnet/bench/RESULTS.md).
const heldDecay = 0.8

// hold parts what of U, which l.sum has, does not travel with the payload from theta, and keeps it for the next U:
// theta = A + sum(s_k q_k : own k not folded) but for rounding, this payload among them.
//
// A sparse delta leaves nine tenths of U's square behind. With that in theta, as with other codecs, a learner
// would train on a model that no other has and that the anchor does not follow. What is held is lost in a crash, and
// at the end of the run.
func (l *Learner) hold(f *learning, payload []byte) error {
	rest := l.sum[:f.Len]
	if err := codec.Add(payload, f.Len, -1, rest); err != nil {
		return err
	}
	f.eachRun(l.theta, func(theta []float32, at int) {
		held := f.held[at : at+len(theta)]
		for i, x := range rest[at : at+len(theta)] {
			theta[i] = float32(float64(theta[i]) + (float64(held[i]) - x))
			held[i] = float32(heldDecay * x)
		}
	})
	return nil
}
