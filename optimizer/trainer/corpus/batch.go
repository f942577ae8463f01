package corpus

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// batchDomain separates the hash that seeds batches from every other use of
// the same inputs.
const batchDomain = "atoll batch 1"

// Batch fills dst with rows x (context+1) tokens of the part to train on,
// row-major. In each row the first context tokens are inputs and the last
// context tokens are their targets. It is a pure function of its arguments:
// rows start at places drawn uniformly by ChaCha8, seeded with a hash of seed,
// author and step. The corpus must fit the context (Fits) and dst must have the
// length.
func (c *Corpus) Batch(seed uint64, author [32]byte, step int64, rows, context int, dst []int32) {
	width := context + 1
	if len(dst) != rows*width {
		panic(fmt.Sprintf("corpus: batch of %d rows of %d tokens into %d", rows, width, len(dst)))
	}
	train := c.Train()
	starts := uint64(len(train) - width + 1)
	source := batchSource(seed, author, step)
	for r := range rows {
		start, _ := bits.Mul64(source.Uint64(), starts)
		for i, b := range train[start : start+uint64(width)] {
			dst[r*width+i] = int32(b)
		}
	}
}

func batchSource(seed uint64, author [32]byte, step int64) *rand.ChaCha8 {
	b := []byte(batchDomain)
	b = binary.BigEndian.AppendUint64(b, seed)
	b = append(b, author[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(step))
	return rand.NewChaCha8(sha256.Sum256(b))
}
