package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"math/bits"
	"math/rand/v2"
)

// batchDomain separates the hash that seeds batches from every other use of
// the same inputs.
const batchDomain = "atoll batch 1"

// Batch fills dst with rows x (length+1) tokens of the part to train on,
// row-major. In each row the first length tokens are inputs and the last
// length tokens are their targets. It is a pure function of its arguments:
// rows start at places drawn uniformly by ChaCha8, seeded with a hash of seed,
// author and step. The corpus must fit the context (Fits) and dst must have the
// length. There is never an error: all of the corpus is in memory.
func (c *Corpus) Batch(_ context.Context, seed uint64, author [32]byte, step int64, rows, length int, dst []int32) error {
	width := length + 1
	if len(dst) != rows*width {
		panic(fmt.Sprintf("corpus: batch of %d rows of %d tokens into %d", rows, width, len(dst)))
	}
	train := c.Train()
	for r, start := range c.Starts(seed, author, step, rows, length) {
		for i, b := range train[start : start+uint64(width)] {
			dst[r*width+i] = int32(b)
		}
	}
	return nil
}

// Starts are the places of the part to train on at which the rows of Batch begin.
func (c *Corpus) Starts(seed uint64, author [32]byte, step int64, rows, context int) []uint64 {
	places := uint64(len(c.Train()) - context)
	source := batchSource(seed, author, step)
	starts := make([]uint64, rows)
	for r := range starts {
		starts[r], _ = bits.Mul64(source.Uint64(), places)
	}
	return starts
}

func batchSource(seed uint64, author [32]byte, step int64) *rand.ChaCha8 {
	b := []byte(batchDomain)
	b = binary.BigEndian.AppendUint64(b, seed)
	b = append(b, author[:]...)
	b = binary.BigEndian.AppendUint64(b, uint64(step))
	return rand.NewChaCha8(sha256.Sum256(b))
}
