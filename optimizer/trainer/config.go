package trainer

import (
	"fmt"

	"atoll/optimizer"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// Config is what a built-in trainer needs to know. Parameters and batches
// follow from it alone.
type Config struct {
	Model      llama.Config
	Batch      int         // rows per step
	MicroBatch int         // rows at once, which memory bounds; divides Batch; 0 = Batch
	Optim      OptimConfig // the inner optimizer
	Seed       uint64      // the run's, for the first parameters and the batches
	Author     [32]byte    // the learner, whose batches differ from all others'
	Threads    int         // of the whole process; 0 = one per core

	// Precision is the arithmetic of matrix products: forward, backward and in Muon. Parameters, gradients and
	// all that is summed over many values are float32 in either. Moments are kept in it too, if they follow gradients fast enough:
	// see optimizer.MayBeNarrow.
	Precision tensor.Precision
}

// OptimConfig is the inner optimizer without its learning rate, which each step
// is given.
type OptimConfig struct {
	Name     string          // optimizer.NameAdamW, which "" means too, or optimizer.NameMuon
	AdamW    optimizer.AdamW // with Muon: of what it leaves, and the weight decay of both
	Momentum float64         // Muon's
	Clip     float64         // largest Euclidean norm of a step's gradient
}

// DefaultMomentum is Muon's usual one.
const DefaultMomentum = 0.95

// DefaultOptim is the recipe that language models of this kind are commonly
// trained with.
func DefaultOptim() OptimConfig {
	return OptimConfig{
		Name:  optimizer.NameAdamW,
		AdamW: optimizer.AdamW{Beta1: 0.9, Beta2: 0.95, Eps: 1e-8, WeightDecay: 0.1},
		Clip:  1,
	}
}

// validate returns an error that names the first field out of range.
func (c OptimConfig) validate() error {
	if !(c.Clip > 0) {
		return fmt.Errorf("trainer Optim.Clip is %v: use a norm above 0", c.Clip)
	}
	var err error
	switch c.Name {
	case "", optimizer.NameAdamW:
		err = c.AdamW.Validate()
	case optimizer.NameMuon:
		err = c.muon().Validate()
	default:
		return fmt.Errorf("trainer Optim.Name is %q: use %q or %q", c.Name, optimizer.NameAdamW, optimizer.NameMuon)
	}
	if err != nil {
		return fmt.Errorf("trainer Optim: %w", err)
	}
	return nil
}

// Limits on a Config. Within them every size in bytes fits an int64.
const (
	// MaxParams is the largest model of one process: its parameters, gradients
	// and moments are 1 TiB, more than machines of today hold.
	MaxParams = 1 << 36
	// MaxMicroTokens is the most tokens of one forward pass; far fewer already
	// use a machine fully.
	MaxMicroTokens = 1 << 20
	// MaxBatch is the most rows of one step.
	MaxBatch = 1 << 20
)

// vocabBytes is the smallest vocabulary that has a token for each byte.
const vocabBytes = 256

// Validate returns an error that names the first field out of range.
func (c Config) Validate() error {
	if err := checkModel(c.Model); err != nil {
		return fmt.Errorf("trainer: %w", err)
	}
	micro := c.rows()
	switch {
	case c.Batch < 1 || c.Batch > MaxBatch:
		return fmt.Errorf("trainer Batch is %d: use 1 to %d rows", c.Batch, MaxBatch)
	case micro < 1 || c.Batch%micro != 0:
		return fmt.Errorf("trainer MicroBatch is %d: use a divisor of Batch %d, or 0 for all of it", c.MicroBatch, c.Batch)
	case micro > MaxMicroTokens/c.Model.Context:
		return fmt.Errorf("trainer MicroBatch is %d rows of %d tokens: use at most %d tokens at once", micro, c.Model.Context, MaxMicroTokens)
	case c.Threads < 0:
		return fmt.Errorf("trainer Threads is %d: use 1 or more, or 0 for one per core", c.Threads)
	}
	return c.Optim.validate()
}

// checkModel accepts the models whose tokens can be bytes and which one process
// can hold.
func checkModel(c llama.Config) error {
	if err := c.Validate(); err != nil {
		return err
	}
	if c.Vocab < vocabBytes {
		return fmt.Errorf("model Vocab is %d: bytes as tokens need at least %d", c.Vocab, vocabBytes)
	}
	if n := c.Params(); n > MaxParams {
		return fmt.Errorf("model of %d parameters: one process can train at most %d", n, int64(MaxParams))
	}
	return nil
}

// rows is the number of rows of one forward pass.
func (c Config) rows() int {
	if c.MicroBatch == 0 {
		return c.Batch
	}
	return c.MicroBatch
}

// MemoryBytes is the memory that New allocates for a valid config with the
// present number of threads. It is for parameters and gradients of 4 bytes each,
// the inner optimizer, the activations of a micro-batch and the tokens of a
// batch. The corpus comes on top.
func (c Config) MemoryBytes() int64 {
	n := 8*int64(c.Model.Params()) + c.momentBytes() + c.Model.WorkspaceBytes(c.rows()) + 4*int64(c.tokens())
	if c.Optim.Name == optimizer.NameMuon {
		n += optimizer.WorkspaceBytes(c.blocks())
	}
	return n
}

// StateBytes is what SaveState encodes, up to a few bytes: two moments of 4 bytes
// for each parameter. For parameters in hidden matrices Muon keeps one moment
// only.
func (c Config) StateBytes() int64 { return c.momentBytesIn(tensor.F32) }

// momentBytes is the memory of the inner optimizer's state.
func (c Config) momentBytes() int64 { return c.momentBytesIn(c.Optim.momentsIn(c.Precision)) }

func (c Config) momentBytesIn(p tensor.Precision) int64 {
	if c.Optim.Name == optimizer.NameMuon {
		return optimizer.MuonStateBytes(c.blocks(), p)
	}
	return optimizer.AdamStateBytes(c.Model.Params(), p)
}

func (c Config) blocks() []optimizer.Block { return blocks(tensor.Layout(c.Model.Specs())) }

// tokens is how many tokens a batch has, each row's last target included.
func (c Config) tokens() int { return c.Batch * (c.Model.Context + 1) }
