package sweep

import (
	"context"
	"fmt"

	"atoll/optimizer/trainer/corpus"
)

// shard is a text and the name in which batches are drawn from it.
type shard struct {
	text   *corpus.Corpus
	author [32]byte
}

// union draws a batch of the batches of several learners, in equal parts: along its
// mean gradient goes a step of data parallelism.
type union []shard

// Fits implements trainer.Source.
func (u union) Fits(context int) error {
	for _, s := range u {
		if err := s.text.Fits(context); err != nil {
			return err
		}
	}
	return nil
}

// Batch implements trainer.Source. The author is the author of the shards.
func (u union) Batch(ctx context.Context, seed uint64, _ [32]byte, step int64, rows, length int, dst []int32) error {
	if rows%len(u) != 0 {
		panic(fmt.Sprintf("sweep: %d rows for %d learners", rows, len(u)))
	}
	each := rows / len(u)
	size := each * (length + 1)
	for i, s := range u {
		if err := s.text.Batch(ctx, seed, s.author, step, each, length, dst[i*size:(i+1)*size]); err != nil {
			return err
		}
	}
	return nil
}

// series draws the batches of several learners one after the other: one learner
// with all the tokens.
type series []shard

// Fits implements trainer.Source.
func (r series) Fits(context int) error { return union(r).Fits(context) }

// Batch implements trainer.Source. The author is the author of the shard whose turn
// it is.
func (r series) Batch(ctx context.Context, seed uint64, _ [32]byte, step int64, rows, length int, dst []int32) error {
	n := int64(len(r))
	s := r[step%n]
	return s.text.Batch(ctx, seed, s.author, step/n, rows, length, dst)
}
