package outer

import (
	"atoll/tensor"
	"atoll/tensor/codec"
)

// heldDecay is what is left, at each delta of a fragment, of the progress that the sparse codec has not
// sent: it was made at an anchor that has moved on since. It is that of SparseLoCo (arXiv 2508.15706), and of 0, 0.5, 0.8,
// 0.95 and 1 the best over a hundred rounds; over twenty 0.8 was (testnet/bench/RESULTS.md).
const heldDecay = 0.95

// hold parts what of U, which l.sum has, does not travel with the payload from theta, and keeps it for the next U:
// theta = A + sum(q_k : own k not folded) but for rounding, this payload among them.
//
// A sparse delta leaves nine tenths of U's square behind. With that in theta, as with other codecs, a learner
// would train on a model that no other has and that the anchor does not follow. What is held is lost in a crash, and
// at the end of the run.
func (l *Learner) hold(f *learning, payload []byte) error {
	rest := l.sum[:f.Len]
	err := codec.Walk(payload, f.Len, func(at int, q []float32) { tensor.AxpyWide(-1, q, rest[at:at+len(q)]) })
	if err != nil {
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
