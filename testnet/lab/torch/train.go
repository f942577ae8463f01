package torch

import (
	"context"
	"fmt"

	"atoll/optimizer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// plan is which training to compare.
type plan struct {
	model  llama.Config
	batch  int // rows of a step
	tokens int // of all steps together, rounded down to whole steps
	rate   float64
	seed   uint64
}

// Bounds of a plan, so that an exchange is held in memory without care.
const (
	maxBatch  = 1 << 10
	maxTokens = 1 << 30
)

// schedule is the recipe's: 3 % of warm-up, then half a cosine down to a tenth.
func (p plan) schedule() optimizer.Schedule {
	return optimizer.Schedule{Peak: p.rate, FinalFraction: 0.1, WarmupFraction: 0.03}
}

// steps is how many whole steps the tokens make.
func (p plan) steps() int { return p.tokens / (p.batch * p.model.Context) }

func (p plan) validate() error {
	switch {
	case p.batch < 1 || p.batch > maxBatch:
		return fmt.Errorf("--batch is %d: use 1 to %d rows", p.batch, maxBatch)
	case p.tokens > maxTokens || p.steps() < 1:
		return fmt.Errorf("--tokens is %d: use at least the %d of one step, and at most %d", p.tokens, p.batch*p.model.Context, maxTokens)
	}
	return p.schedule().Validate()
}

// newExchange draws everything that a plan leaves to chance.
func newExchange(p plan, text *corpus.Corpus) (*exchange, error) {
	if err := p.validate(); err != nil {
		return nil, err
	}
	if err := text.Fits(p.model.Context); err != nil {
		return nil, err
	}
	optim := trainer.DefaultOptim()
	e := &exchange{
		recipe:  recipe{Model: p.model, Batch: p.batch, AdamW: optim.AdamW, Clip: optim.Clip},
		params:  llama.NewParams(p.model),
		heldOut: text.HeldOut(),
	}
	llama.Init(p.model, e.params, p.seed)
	tokens := make([]int32, e.stepTokens())
	for step := range p.steps() {
		e.rates = append(e.rates, p.schedule().At(float64(step)/float64(p.steps())))
		if err := text.Batch(context.Background(), p.seed, [32]byte{}, int64(step), p.batch, p.model.Context, tokens); err != nil {
			return nil, err
		}
		for _, token := range tokens {
			e.batches = append(e.batches, byte(token))
		}
	}
	return e, nil
}

// stepTokens is how many tokens the file has for a step, targets of the last inputs included.
func (e *exchange) stepTokens() int { return e.Batch * (e.Model.Context + 1) }

// replay is a trainer's source that hands out the batches of an exchange.
type replay struct{ *exchange }

var _ trainer.Source = replay{}

// Fits accepts the context that the batches were cut for.
func (r replay) Fits(context int) error {
	if context != r.Model.Context {
		return fmt.Errorf("the batches have rows of %d tokens, not %d", r.Model.Context, context)
	}
	return nil
}

// Batch returns the batch of a step, for any author.
func (r replay) Batch(_ context.Context, _ uint64, _ [32]byte, step int64, _, _ int, dst []int32) error {
	for i, token := range r.batches[int(step)*len(dst):][:len(dst)] {
		dst[i] = int32(token)
	}
	return nil
}

// train goes through an exchange with atoll's trainer, and tells each step's loss in nats per
// token. It returns bits per byte of the held-out text.
func train(ctx context.Context, e *exchange, threads int, tell func(step int, loss float64)) (float64, error) {
	t, err := trainer.New(trainer.Config{
		Model: e.Model, Batch: e.Batch, Threads: threads,
		Optim: trainer.OptimConfig{Name: optimizer.NameAdamW, AdamW: e.AdamW, Clip: e.Clip},
	}, replay{e})
	if err != nil {
		return 0, err
	}
	copy(t.Params(), e.params.Data)
	for step, rate := range e.rates {
		res, err := t.Step(ctx, rate)
		if err != nil {
			return 0, err
		}
		tell(step, res.Loss)
	}
	return score(ctx, e, t.Slab())
}

// score is the bits per byte of parameters on the held-out text.
func score(ctx context.Context, e *exchange, params *tensor.Slab) (float64, error) {
	return trainer.BitsPerByte(ctx, e.Model, params, corpus.Windows(e.heldOut, e.Model.Context))
}
