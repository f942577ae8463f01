package nn

import (
	"math"

	"atoll/tensor"
)

// CrossEntropy is softmax and negative log-likelihood in one pass, forward and
// backward: the gradient replaces the logits, so that no second buffer of
// rows*vocab is needed.
//
//	losses [rows], in nats
//	logits [rows, vocab], overwritten by scale * (softmax - onehot(target))
func CrossEntropy(losses []float64, logits []float32, targets []int32, rows, vocab int, scale float32) {
	overRows(rows, func(lo, hi int) {
		for r := lo; r < hi; r++ {
			losses[r] = crossEntropyRow(logits[r*vocab:(r+1)*vocab], int(targets[r]), scale)
		}
	})
}

func crossEntropyRow(logits []float32, target int, scale float32) float64 {
	top, chosen := tensor.Max(logits), logits[target]
	sum := tensor.ExpSum(logits, logits, top)
	tensor.Scale(scale/sum, logits)
	logits[target] -= scale
	return math.Log(float64(sum)) + float64(top) - float64(chosen)
}
