package bench

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"atoll/node/hardware"
	"atoll/optimizer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// Step is the speed of training steps: forward, backward, clipping, the inner optimizer.
type Step struct {
	Bench         string           `json:"bench"` // "step"
	Model         string           `json:"model"`
	Threads       int              `json:"threads"`
	Params        int              `json:"params"`
	Batch         int              `json:"batch"` // rows
	Context       int              `json:"context"`
	Kernel        string           `json:"kernel"`
	Precision     tensor.Precision `json:"precision"`
	Optimizer     string           `json:"optimizer"`
	Steps         int              `json:"steps"`        // timed
	TokensPerS    float64          `json:"tokens_per_s"` // at the median
	MsPerStep     float64          `json:"ms_per_step"`  // median
	FLOPsFraction float64          `json:"flops_fraction"`
	PeakGFLOPPerS float64          `json:"peak_gflop_per_s"`    // of these threads, in this precision
	RSSBytes      uint64           `json:"rss_bytes,omitempty"` // the most that the process has occupied
}

// StepConfig is which step to measure.
type StepConfig struct {
	Name      string // of the model
	Model     llama.Config
	Batch     int    // rows; 0 = the shared benchmark's
	Threads   int    // 0 = one per core
	Optimizer string // "" = AdamW
	Precision tensor.Precision

	// ProcessorTime counts what the processors work for this process, not the time that passes: for one thread on a
	// machine that does other things as well.
	ProcessorTime bool
}

// FLOPsPerToken is the work of a training step for each token. It is 6 for every
// parameter, 4 of them for the gradients, and 6 L T D for the scores and values of
// causal attention, which sees half of the context on average. Work that an
// implementation does twice does not count.
func FLOPsPerToken(c llama.Config) float64 {
	return 6*float64(c.Params()) + 6*float64(c.Layers)*float64(c.Context)*float64(c.Hidden)
}

// SharedBatch is the batch of the shared benchmark.
func SharedBatch(c llama.Config) int {
	switch c {
	case llama.Tiny:
		return 16
	case llama.Small:
		return 8
	}
	return 2
}

// Steps measures training steps on random bytes. The memory is the memory of the whole
// process. Give each measurement a process of its own where that matters.
func Steps(ctx context.Context, m Meter, c StepConfig) (Step, error) {
	if c.Batch == 0 {
		c.Batch = SharedBatch(c.Model)
	}
	peak, err := MeasurePeak(ctx, c.Threads, c.Precision)
	if err != nil {
		return Step{}, fmt.Errorf("step: %w", err)
	}
	m.report(fmt.Sprintf("steps of %s, %s", c.Name, on(peak.Threads)))
	cfg := trainer.Config{Model: c.Model, Batch: c.Batch, Threads: c.Threads, Optim: trainer.DefaultOptim(), Precision: c.Precision}
	cfg.Optim.Name, cfg.Optim.Momentum = cmp.Or(c.Optimizer, optimizer.NameAdamW), trainer.DefaultMomentum
	now := time.Now
	if c.ProcessorTime {
		now = hardware.ProcessorTime
	}
	speed, err := trainer.Measure(ctx, cfg, leastParts, m.For, now)
	if err != nil {
		return Step{}, err
	}
	return Step{
		Bench: "step", Model: c.Name, Threads: tensor.Threads(), Params: c.Model.Params(),
		Batch: c.Batch, Context: c.Model.Context, Kernel: tensor.KernelOf(c.Precision), Precision: c.Precision, Optimizer: cfg.Optim.Name,
		Steps: speed.Steps, TokensPerS: speed.TokensPerSecond, MsPerStep: speed.Step.Seconds() * 1000,
		FLOPsFraction: FLOPsPerToken(c.Model) * speed.TokensPerSecond / (peak.GFLOPPerS * 1e9),
		PeakGFLOPPerS: peak.GFLOPPerS, RSSBytes: hardware.PeakRSSBytes(),
	}, nil
}
