// Package nn holds the operations of a decoder-only transformer as pairs of a
// forward and a backward function over flat, row-major []float32.
//
// Conventions, the same everywhere: outputs come first, dimensions last. A
// "row" is one position of one sequence, so rows = batch * context. A backward
// function says for each gradient whether it writes or adds; gradients of
// weights can be added, so that micro-batches accumulate. Nothing here
// allocates more than a closure: the caller owns every buffer.
//
// Work is split so that each output element is summed by one task in a fixed
// order: results do not depend on the number of threads.
package nn

import "atoll/tensor"

// rowBlock is how many rows one task takes: enough to outweigh the hand-over
// to another thread, few enough to share 512 rows among 16 threads.
const rowBlock = 32

// overRows calls f for consecutive ranges [lo, hi) that cover rows.
func overRows(rows int, f func(lo, hi int)) {
	overBlocks(rows, rowBlock, f)
}

// overBlocks calls f in parallel for ranges of at most block that cover [0, n).
func overBlocks(n, block int, f func(lo, hi int)) {
	tensor.Parallel((n+block-1)/block, func(i int) {
		f(i*block, min((i+1)*block, n))
	})
}
