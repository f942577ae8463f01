package sweep

import (
	"context"
	"slices"

	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// barrier is a run of DiLoCo: learners that wait for each other after H steps and
// make one outer step of the whole model.
type barrier struct {
	*bench
	params   outer.Params
	fragment outer.Fragment
	tip      *outer.Tip
	learners []*trainer.Builtin
}

// noClip is a norm reference that clips nothing.
const noClip = 1e6

// diloco runs the baseline.
func (b *bench) diloco(t *Trial) error {
	r := &barrier{bench: b}
	var err error
	if r.params, err = b.read().params(1, b.Tokens); err != nil {
		return err
	}
	r.params.MaxShare = 1
	r.fragment = outer.NewPlan(tensor.Layout(b.specs()), 1)[0]
	anchor := make([]float32, r.fragment.Len)
	r.fragment.Gather(b.initial(), anchor)
	r.tip = outer.Genesis(r.fragment, anchor, r.params)
	for _, s := range b.shards {
		tr, err := b.newTrainer(b.Batch, s.text, s.author)
		if err != nil {
			return err
		}
		r.learners = append(r.learners, tr)
	}
	for r.tip.Tokens < b.Tokens {
		if err := r.round(t); err != nil {
			return err
		}
	}
	t.Folded, t.Trained, t.VirtualSteps = r.tip.Tokens, r.tip.Tokens, float64(t.Steps)
	t.Rounds, t.Deltas = int(r.tip.Round), int(r.tip.Round)*b.M
	t.PayloadPerToken = ringBytes(b.M, r.fragment.Len) * float64(r.tip.Round) / float64(t.Folded)
	return b.judge(t, r.anchor())
}

// round takes H steps, or what is left of the budget, and the outer step.
func (r *barrier) round(t *Trial) error {
	each := r.M * r.stepTokens(r.model)
	steps := min(r.H, (int(r.Tokens-r.tip.Tokens)+each-1)/each)
	schedule := r.schedule()
	for i := range steps {
		done := float64(r.tip.Tokens+uint64(i*each)) / float64(r.Tokens)
		for _, l := range r.learners {
			if _, err := l.Step(context.Background(), schedule.At(done)); err != nil {
				return err
			}
		}
	}
	t.Steps += steps
	set := make([]outer.Contribution, len(r.learners))
	for i := range r.learners {
		var err error
		if set[i], err = r.contribution(i, steps); err != nil {
			return err
		}
	}
	tip, _, err := outer.Fold(r.params, r.fragment, r.tip, r.tip.Round+1, set)
	if err != nil {
		return err
	}
	r.tip = tip
	for _, l := range r.learners {
		r.fragment.Scatter(tip.Anchor, l.Params())
	}
	return r.look(tip.Tokens, r.anchor)
}

// contribution is what learner i made since the anchor.
func (r *barrier) contribution(i, steps int) (outer.Contribution, error) {
	u := make([]float32, r.fragment.Len)
	r.fragment.Gather(r.learners[i].Params(), u)
	for k, a := range r.tip.Anchor {
		u[k] -= a
	}
	payload, err := codec.Encode(r.params.Codec, u)
	if err != nil {
		return outer.Contribution{}, err
	}
	author := outer.Author(r.shards[i].author)
	return outer.Contribution{Payload: payload, Delta: outer.Delta{
		ID: outer.ID(author), Author: author, Round: r.tip.Round + 1, Base: r.tip.Round, Steps: uint32(steps),
		Tokens: uint64(steps * r.stepTokens(r.model)), Precision: outer.PrecisionF32, Codec: r.params.Codec, Size: len(payload),
	}}, nil
}

// anchor is the whole model in the order of the trainer.
func (r *barrier) anchor() []float32 {
	params := slices.Clone(r.learners[0].Params())
	r.fragment.Scatter(r.tip.Anchor, params)
	return params
}
