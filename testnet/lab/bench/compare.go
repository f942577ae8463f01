package bench

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"atoll/tensor"
	"atoll/tensor/llama"
	"atoll/testnet/lab/python"
)

// Comparison is atoll's training steps beside PyTorch's, measured in turn so that whatever
// else the machine does meets both.
type Comparison struct {
	Bench           string           `json:"bench"` // "compare"
	With            string           `json:"with"`  // "torch"
	Model           string           `json:"model"`
	Threads         int              `json:"threads"`
	Precision       tensor.Precision `json:"precision"` // of atoll
	Params          int              `json:"params"`
	Rounds          int              `json:"rounds"`
	CoreType        string           `json:"openblas_coretype,omitempty"` // see python.CoreType
	TokensPerS      float64          `json:"tokens_per_s"`                // median of the rounds
	TorchTokensPerS float64          `json:"torch_tokens_per_s"`          // likewise
	Ratio           float64          `json:"ratio"`                       // median of the ratios within rounds
	RatioMin        float64          `json:"ratio_min"`
	RatioMax        float64          `json:"ratio_max"`
	Ratios          []float64        `json:"ratios"`
	FLOPsFraction   float64          `json:"flops_fraction"` // atoll's, median
	RSSBytes        uint64           `json:"rss_bytes,omitempty"`
}

// Torch is how to run the reference program.
type Torch struct {
	Python string // interpreter
	Script string // torch_ref.py

	// Modes are the flags that the program is run with, one run for each; of several the fastest counts. nil = no flags.
	Modes [][]string
}

// torchConfigs are the names that the reference program has for models.
var torchConfigs = map[string]string{"tiny": "A", "small": "B", "base": "C"}

// torchStep is what the reference program answers.
type torchStep struct {
	Config     string  `json:"config"`
	Threads    int     `json:"threads"`
	Params     int     `json:"params"`
	TokensPerS float64 `json:"tokens_per_s"`
}

// Check names what is missing before anything is measured, as far as that shows.
func (t Torch) Check() error {
	if err := python.Installed(t.Python); err != nil {
		return fmt.Errorf("compare with torch: %w", err)
	}
	if info, err := os.Stat(t.Script); errors.Is(err, fs.ErrNotExist) || err == nil && info.IsDir() {
		return fmt.Errorf("compare with torch: %s is no file: pass the path of torch_ref.py with --torch", t.Script)
	}
	return nil
}

// child is the command that measures a model.
func (t Torch) child(mode []string, model string, threads int, seconds float64) Child {
	args := []string{t.Python, t.Script, "speed", "--config", torchConfigs[model],
		"--threads", fmt.Sprint(threads), "--seconds", fmt.Sprint(seconds)}
	return Child{"torch", append(args, mode...)}
}

// ask runs the reference program once in each mode and returns the fastest.
func (t Torch) ask(ctx context.Context, model string, threads int, seconds float64) (best torchStep, err error) {
	modes := t.Modes
	if len(modes) == 0 {
		modes = [][]string{nil}
	}
	for _, mode := range modes {
		s, err := t.askIn(ctx, mode, model, threads, seconds)
		if err != nil {
			return s, err
		}
		if s.TokensPerS > best.TokensPerS {
			best = s
		}
	}
	return best, nil
}

// askIn runs the reference program once.
func (t Torch) askIn(ctx context.Context, mode []string, model string, threads int, seconds float64) (torchStep, error) {
	var s torchStep
	err := t.child(mode, model, threads, seconds).Ask(ctx, &s)
	switch {
	case err != nil && strings.Contains(err.Error(), python.NoTorch):
		return s, fmt.Errorf("compare with torch: %s has no PyTorch: %s", t.Python, python.TorchRemedy)
	case err != nil:
		return s, fmt.Errorf("compare with %w", err)
	case s.TokensPerS <= 0:
		return s, fmt.Errorf("compare with torch: %s tells no tokens_per_s above 0", t.Script)
	}
	return s, nil
}

// CompareConfig is what to compare.
type CompareConfig struct {
	Model   string // tiny, small or base
	Threads int
	Rounds  int
	Seconds float64 // of one measurement
	Torch   Torch
	Ours    Child // measures atoll's steps in a process of its own, and answers with a Step
}

// Compare measures both in turn.
func Compare(ctx context.Context, m Meter, c CompareConfig) (Comparison, error) {
	sizes, known := llama.Named(c.Model)
	if !known {
		return Comparison{}, fmt.Errorf("compare: model %q: the reference program knows tiny, small and base", c.Model)
	}
	if err := c.Torch.Check(); err != nil {
		return Comparison{}, err
	}
	var r rounds
	for i := range c.Rounds {
		ours, torch, err := c.round(ctx, m, i)
		if err != nil {
			return Comparison{}, err
		}
		if torch.Params != sizes.Params() || ours.Params != sizes.Params() {
			return Comparison{}, fmt.Errorf("compare: %s has %d parameters, atoll's step trains %d and torch's %d: the programs do not fit together",
				c.Model, sizes.Params(), ours.Params, torch.Params)
		}
		r.add(ours, torch)
	}
	return r.sum(c), nil
}

// round measures both once, torch first in even rounds.
func (c CompareConfig) round(ctx context.Context, m Meter, i int) (ours Step, torch torchStep, err error) {
	what := fmt.Sprintf("%s, %s, round %d of %d", c.Model, on(c.Threads), i+1, c.Rounds)
	err = inTurn(i, func() (err error) {
		m.report("torch: " + what)
		torch, err = c.Torch.ask(ctx, c.Model, c.Threads, c.Seconds)
		return err
	}, func() error {
		m.report("atoll: " + what)
		return c.Ours.Ask(ctx, &ours)
	})
	return ours, torch, err
}

// rounds is what was measured so far.
type rounds struct {
	ours, torch, ratios, fractions []float64
	rss                            uint64
	precision                      tensor.Precision
}

func (r *rounds) add(ours Step, torch torchStep) {
	r.ours = append(r.ours, ours.TokensPerS)
	r.torch = append(r.torch, torch.TokensPerS)
	r.ratios = append(r.ratios, ours.TokensPerS/torch.TokensPerS)
	r.fractions = append(r.fractions, ours.FLOPsFraction)
	r.rss, r.precision = max(r.rss, ours.RSSBytes), ours.Precision
}

func (r *rounds) sum(c CompareConfig) Comparison {
	sizes, _ := llama.Named(c.Model)
	ratio := Summarize(r.ratios)
	return Comparison{
		Bench: "compare", With: "torch", Model: c.Model, Threads: c.Threads, Precision: r.precision, Params: sizes.Params(), Rounds: c.Rounds,
		CoreType: python.CoreType(), TokensPerS: Summarize(r.ours).Median, TorchTokensPerS: Summarize(r.torch).Median,
		Ratio: ratio.Median, RatioMin: ratio.Min, RatioMax: ratio.Max, Ratios: r.ratios,
		FLOPsFraction: Summarize(r.fractions).Median, RSSBytes: r.rss,
	}
}
