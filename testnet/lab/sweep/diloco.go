package sweep

import (
	"context"
	"slices"

	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
	"atoll/tensor/codec"
	"atoll/testnet/baseline/lockstep"
)

// barrier is a run of DiLoCo: learners that wait for each other after H steps and
// make one outer step of the whole model.
type barrier struct {
	*bench
	run      lockstep.Run
	codec    codec.Kind     // what progress is rounded by on its way
	fragment outer.Fragment // all parameters, in the order in which atoll encodes them
	outer    *lockstep.Outer
	learners []*trainer.Builtin
	progress [][]float32 // of each learner, in the order of the fragment
}

// diloco runs the baseline.
func (b *bench) diloco(t *Trial) error {
	r := &barrier{bench: b, run: b.lockstep(b.H), fragment: outer.NewPlan(tensor.Layout(b.specs()), 1)[0]}
	var err error
	if r.codec, err = codec.Parse(b.Codec); err != nil {
		return err
	}
	global := make([]float32, r.fragment.Len)
	r.fragment.Gather(b.initial(), global)
	r.outer = lockstep.NewOuter(b.Eta, b.Mu, global)
	for _, s := range b.shards {
		tr, err := b.newTrainer(b.Batch, s.text, s.author)
		if err != nil {
			return err
		}
		r.learners, r.progress = append(r.learners, tr), append(r.progress, make([]float32, r.fragment.Len))
	}
	for t.Folded < b.Tokens {
		if err := r.round(t); err != nil {
			return err
		}
	}
	t.Trained, t.VirtualSteps, t.Deltas = t.Folded, float64(t.Steps), t.Rounds*b.M
	t.PayloadPerToken = lockstep.RingBytes(b.M, r.fragment.Len) * float64(t.Rounds) / float64(t.Folded)
	return b.judge(t, r.global())
}

// round takes H steps, or what is left of the budget, and the outer step.
func (r *barrier) round(t *Trial) error {
	steps := r.run.Steps(t.Folded, r.M)
	for i := range steps {
		rate := r.run.Rate(t.Folded, r.M, i)
		for _, l := range r.learners {
			if _, err := l.Step(context.Background(), rate); err != nil {
				return err
			}
		}
	}
	for i := range r.learners {
		if err := r.travel(i); err != nil {
			return err
		}
	}
	if err := r.outer.Step(r.mean); err != nil {
		return err
	}
	t.Folded += r.run.Tokens(t.Folded, r.M)
	t.Steps, t.Rounds = t.Steps+int(steps), t.Rounds+1
	for _, l := range r.learners {
		r.fragment.Scatter(r.outer.Global, l.Params())
	}
	return r.look(t.Folded, r.global)
}

// travel sets the progress of learner i to what others decode of it.
func (r *barrier) travel(i int) error {
	u := r.progress[i]
	r.fragment.Gather(r.learners[i].Params(), u)
	r.outer.Progress(u, u)
	payload, err := codec.Encode(r.codec, u)
	if err != nil {
		return err
	}
	return codec.Decode(payload, len(u), u)
}

// mean is the mean progress of all learners from a value on.
func (r *barrier) mean(at int, u []float64) {
	clear(u)
	for _, p := range r.progress {
		tensor.AxpyWide(1/float64(len(r.progress)), p[at:at+len(u)], u)
	}
}

// global is the whole model in the order of the trainer.
func (r *barrier) global() []float32 {
	params := slices.Clone(r.learners[0].Params())
	r.fragment.Scatter(r.outer.Global, params)
	return params
}
