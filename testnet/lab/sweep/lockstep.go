package sweep

import (
	"context"
	"slices"

	"atoll/optimizer/trainer"
	"atoll/testnet/baseline/lockstep"
)

// lockstep is a run of rounds of H steps.
func (b *bench) lockstep(h int) lockstep.Run {
	return lockstep.Run{Budget: b.Tokens, StepTokens: uint64(b.stepTokens(b.model)), H: h, Schedule: b.schedule()}
}

// dp steps along the mean gradient of all learners, also of those that join. One trainer
// with everybody's batch finds it: what baseline's dp sums of members' gradients, rounded
// for the wire, is this without the rounding and in one pass.
func (b *bench) dp(t *Trial) error {
	due, err := b.joins()
	if err != nil {
		return err
	}
	shards, sent := b.shards, 0.0
	tr, err := b.together(shards)
	if err != nil {
		return err
	}
	err = b.alone(t, tr, func(tr *trainer.Builtin) (*trainer.Builtin, error) {
		before := len(shards)
		for len(due) > 0 && due[0] <= b.ms(float64(t.Steps)) {
			shards, due = append(slices.Clip(shards), b.shard(len(shards))), due[1:]
		}
		sent += lockstep.RingBytes(len(shards), len(tr.Params()))
		if len(shards) == before {
			return tr, nil
		}
		return b.enlarge(tr, shards)
	})
	if err != nil {
		return err
	}
	t.PayloadPerToken = sent / float64(t.Folded)
	return nil
}

// together is a trainer with the batches of all shards.
func (b *bench) together(shards []shard) (*trainer.Builtin, error) {
	return b.newTrainer(len(shards)*b.Batch, union(shards), [32]byte{})
}

// enlarge is a trainer that goes on where another is, with the batches of all shards.
func (b *bench) enlarge(from *trainer.Builtin, shards []shard) (*trainer.Builtin, error) {
	tr, err := b.together(shards)
	if err != nil {
		return nil, err
	}
	state, err := from.SaveState()
	if err != nil {
		return nil, err
	}
	copy(tr.Params(), from.Params())
	return tr, tr.LoadState(state)
}

// local takes all batches one after the other.
func (b *bench) local(t *Trial) error {
	tr, err := b.newTrainer(b.Batch, series(b.shards), [32]byte{})
	if err != nil {
		return err
	}
	return b.alone(t, tr, func(tr *trainer.Builtin) (*trainer.Builtin, error) { return tr, nil })
}

// alone runs one trainer to the budget. Before each step next may put another in its place.
func (b *bench) alone(t *Trial, tr *trainer.Builtin, next func(*trainer.Builtin) (*trainer.Builtin, error)) error {
	run := b.lockstep(1)
	for t.Folded < b.Tokens {
		var err error
		if tr, err = next(tr); err != nil {
			return err
		}
		r, err := tr.Step(context.Background(), run.Rate(t.Folded, 1, 0))
		if err != nil {
			return err
		}
		t.Steps++
		t.Folded += uint64(r.Tokens)
		if err = b.look(t.Folded, tr.Params); err != nil {
			return err
		}
	}
	t.Trained, t.VirtualSteps = t.Folded, float64(t.Steps)
	return b.judge(t, tr.Params())
}
