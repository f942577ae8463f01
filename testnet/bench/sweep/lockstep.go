package sweep

import (
	"context"

	"atoll/optimizer/trainer"
)

// bytesPerValue is what a synchronous arm's ring sends of each value: bf16.
const bytesPerValue = 2

// ringBytes is what all learners together receive when a ring all-reduce averages
// so many values.
func ringBytes(learners, values int) float64 {
	return 2 * float64(learners-1) * float64(values) * bytesPerValue
}

// dp steps along the mean gradient of all learners.
func (b *bench) dp(t *Trial) error {
	tr, err := b.newTrainer(b.M*b.Batch, union(b.shards), [32]byte{})
	if err != nil {
		return err
	}
	if err := b.alone(t, tr); err != nil {
		return err
	}
	t.PayloadPerToken = ringBytes(b.M, len(tr.Params())) / float64(b.M*b.stepTokens(b.model))
	return nil
}

// local takes all batches one after the other.
func (b *bench) local(t *Trial) error {
	tr, err := b.newTrainer(b.Batch, series(b.shards), [32]byte{})
	if err != nil {
		return err
	}
	return b.alone(t, tr)
}

// alone runs one trainer to the budget.
func (b *bench) alone(t *Trial, tr *trainer.Builtin) error {
	schedule := b.schedule()
	for t.Folded < b.Tokens {
		r, err := tr.Step(context.Background(), schedule.At(float64(t.Folded)/float64(b.Tokens)))
		if err != nil {
			return err
		}
		t.Steps++
		t.Folded += uint64(r.Tokens)
		if err := b.look(t.Folded, tr.Params); err != nil {
			return err
		}
	}
	t.Trained, t.VirtualSteps = t.Folded, float64(t.Steps)
	return b.judge(t, tr.Params())
}
