package optimizer

import "atoll/tensor"

// pieceLen is how many values one call of a loop's body handles. It is large
// enough to hide the hand-over between threads, and small enough to share a
// model of a million parameters among several.
const pieceLen = 1 << 16

// pieces returns how many pieces n values make.
func pieces(n int) int { return (n + pieceLen - 1) / pieceLen }

// inPieces calls f for each piece i of n values, which spans [from, to), on the
// pool's threads. The pieces do not depend on the number of threads.
func inPieces(n int, f func(i, from, to int)) {
	tensor.Parallel(pieces(n), func(i int) {
		f(i, i*pieceLen, min((i+1)*pieceLen, n))
	})
}
