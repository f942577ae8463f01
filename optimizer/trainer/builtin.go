package trainer

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"

	"atoll/optimizer"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// ErrDiverged is wrapped by the error of a step whose loss or gradient is not
// finite.
var ErrDiverged = errors.New("training diverged")

// Builtin trains on this machine's CPUs. With the same config, corpus, start
// and number of threads its steps have the same bits.
type Builtin struct {
	config Config
	data   Source
	model  *llama.Model
	params *tensor.Slab
	grads  *tensor.Slab
	inner  inner
	tokens []int32 // [Batch, Context+1]
}

var _ Trainer = (*Builtin)(nil)

// New allocates a trainer with the initial parameters of the config's seed. It
// sets the number of threads of the process. data may be nil until Tune brings it.
// The error names the config's field, or says how much text is missing.
func New(cfg Config, data Source) (*Builtin, error) {
	if err := cfg.fits(data); err != nil {
		return nil, err
	}
	tensor.SetThreads(cfg.Threads)
	params := llama.NewParams(cfg.Model)
	llama.Init(cfg.Model, params, cfg.Seed)
	model := llama.NewModel(cfg.Model, cfg.rows())
	model.Precision = cfg.Precision
	return &Builtin{
		config: cfg,
		data:   data,
		model:  model,
		params: params,
		grads:  params.Like(),
		inner:  cfg.Optim.newInner(params.Views, cfg.Precision),
		tokens: make([]int32, cfg.tokens()),
	}, nil
}

// fits returns an error if a field is out of range, or data, unless it is nil, has too little text.
func (c Config) fits(data Source) error {
	if err := c.Validate(); err != nil || data == nil {
		return err
	}
	return data.Fits(c.Model.Context)
}

// Tune gives a trainer that has taken no step another batch, precision and text.
func (b *Builtin) Tune(cfg Config, data Source) error {
	if b.Steps() > 0 {
		return fmt.Errorf("tune a trainer: it has taken %d steps; make a new one", b.Steps())
	}
	tuned := b.config
	tuned.Batch, tuned.MicroBatch, tuned.Precision = cfg.Batch, cfg.MicroBatch, cfg.Precision
	if data == nil {
		return errors.New("tune a trainer: there is no text")
	}
	if err := tuned.fits(data); err != nil {
		return err
	}
	b.config, b.data = tuned, data
	b.model = llama.NewModel(tuned.Model, tuned.rows())
	b.model.Precision = tuned.Precision
	b.inner = tuned.Optim.newInner(b.params.Views, tuned.Precision)
	b.tokens = make([]int32, tuned.tokens())
	return nil
}

// Params returns the parameters in the order of Slab.
func (b *Builtin) Params() []float32 { return b.params.Data }

// Flush implements Trainer: Params are what is stepped.
func (b *Builtin) Flush([]optimizer.Span) error { return nil }

// Load implements Trainer.
func (b *Builtin) Load([]optimizer.Span) {}

// Restart implements Trainer: a trainer in this process is never lost.
func (b *Builtin) Restart(context.Context) error { return nil }

// Slab returns the parameters with their names.
func (b *Builtin) Slab() *tensor.Slab { return b.params }

// Steps returns how many steps the state has seen.
func (b *Builtin) Steps() int64 { return b.inner.steps() }

// Step takes one optimizer step on the batch that seed, author and Steps draw.
// Cancelling ctx ends it between two layers, and changes nothing.
func (b *Builtin) Step(ctx context.Context, lr float64) (StepResult, error) {
	res, err := b.Gradient(ctx, nil)
	if err != nil {
		return StepResult{}, err
	}
	if !finite(res.Loss) {
		return StepResult{}, b.diverged(fmt.Sprintf("loss %v", res.Loss), lr)
	}
	return res, b.Update(lr)
}

// Gradient is the first half of a Step: it leaves the mean gradient over the next
// batch in Grads and changes nothing else. Unless ready is nil, it is told how much
// of that is final, from the end of Grads to its start: everything at lo and beyond.
// At last lo is 0. It is called on this goroutine and holds up the step.
func (b *Builtin) Gradient(ctx context.Context, ready func(lo int)) (StepResult, error) {
	rows, width := b.config.rows(), b.config.Model.Context+1
	if err := b.data.Batch(ctx, b.config.Seed, b.config.Author, b.Steps(), b.config.Batch, width-1, b.tokens); err != nil {
		return StepResult{}, fmt.Errorf("train step %d: %w: %w", b.Steps()+1, ErrNoBatch, err)
	}
	loss, passes := 0.0, b.config.Batch/rows
	b.model.Cut = func() bool { return ctx.Err() != nil }
	for i := range passes {
		b.model.Fresh = i == 0
		if i == passes-1 {
			b.model.Graded = b.finish(passes, ready)
		}
		loss += b.model.LossGrad(b.params, b.grads, b.tokens[i*rows*width:(i+1)*rows*width])
		b.model.Graded = nil
		if err := ctx.Err(); err != nil {
			return StepResult{}, fmt.Errorf("train step %d: %w", b.Steps()+1, err)
		}
	}
	return StepResult{Tokens: b.config.Batch * b.config.Model.Context, Loss: loss / float64(passes)}, nil
}

// finish makes means of the sums over passes as they become final.
func (b *Builtin) finish(passes int, ready func(lo int)) func(lo int) {
	end := len(b.grads.Data)
	return func(lo int) {
		if passes > 1 {
			tensor.Scale(1/float32(passes), b.grads.Data[lo:end])
		}
		end = lo
		if ready != nil {
			ready(lo)
		}
	}
}

// Grads returns the gradients, always the same slice, in the order of Params. Between
// Gradient and Update the caller may change them in place.
func (b *Builtin) Grads() []float32 { return b.grads.Data }

// Update is the second half of a Step: it takes the optimizer's step along what is in Grads, clipped.
// After an error nothing has changed.
func (b *Builtin) Update(lr float64) error {
	norm, factor := optimizer.ClipScale(b.grads.Data, b.config.Optim.Clip)
	if !finite(norm) {
		return b.diverged(fmt.Sprintf("gradient norm %v", norm), lr)
	}
	b.inner.step(b.params.Data, b.grads.Data, lr, factor)
	return nil
}

func (b *Builtin) diverged(how string, lr float64) error {
	return fmt.Errorf("train step %d: %s: %w: restore earlier parameters or lower the learning rate of %v", b.Steps()+1, how, ErrDiverged, lr)
}

// SaveState implements Trainer: nothing is copied before it is read.
func (b *Builtin) SaveState() (io.Reader, error) { return b.inner.reader(), nil }

// LoadState implements Trainer. It refuses the state of another optimizer.
func (b *Builtin) LoadState(r io.Reader) error {
	if err := b.inner.load(r); err != nil {
		return fmt.Errorf("load trainer state: %w", err)
	}
	return nil
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }
