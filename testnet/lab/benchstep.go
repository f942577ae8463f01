package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"

	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/optimizer"
	"atoll/tensor"
	"atoll/testnet/lab/bench"
)

const benchStepHelp = `
Times training steps on random bytes and reports the median. The default batch is that of the shared benchmark: 16 rows for tiny, 8 for small, 2 for base. OF PEAK compares the operations of a step with the peak of the same threads in the same precision, multiply-adds on registers alone. A step has 6 operations per token and parameter, and 6 x layers x context x hidden more per token for causal attention.

Each model and number of threads is measured in a process of its own, so MEMORY is that of one. --compare torch takes turns with a PyTorch program of the same model and batch.

    lab bench step --model tiny --threads 1 --seconds 8
    lab bench step --model all --threads 1,2 --json
    lab bench step --model small --optimizer muon
    lab bench step --model small --threads 1 --compare torch --torch torch_ref.py
    lab bench step --model base --precision bf16 --compare torch --torch torch2_ref.py --mode eager,compile`

// BenchStepCmd is `lab bench step`.
type BenchStepCmd struct {
	Model         []string `help:"Models, with commas between: tiny, small, base, JSON files of sizes, or all for the three with a name." default:"tiny"`
	Threads       []int    `help:"Threads to train with; several numbers with commas between. Default: one per core." placeholder:"N"`
	Seconds       float64  `help:"Seconds to measure." default:"8"`
	ProcessorTime bool     `help:"Count the processor time of one thread, for a machine that does other things as well."`
	Batch         int      `help:"Rows of text in one step. Default: the shared benchmark's." placeholder:"ROWS"`
	Optimizer     string   `help:"Inner optimizer: ${enum}. auto is that of runs, muon, and adamw with --compare torch, which has no other." enum:"auto,adamw,muon" default:"auto"`
	precisionFlag
	Compare string   `help:"torch takes turns with a PyTorch program." enum:"none,torch" default:"none"`
	Torch   string   `help:"The PyTorch program: torch_ref.py of the shared benchmark." placeholder:"FILE"`
	Mode    []string `help:"How that program runs PyTorch: eager, compile, or both, of which the faster counts. compile needs torch2_ref.py." enum:"eager,compile" default:"eager"`
	Python  string   `help:"Python that has PyTorch." default:"/usr/bin/python3"`
	Rounds  int      `help:"Turns of --compare." default:"5"`
	JSON    bool     `name:"json" help:"Answer with one JSON object, or one per line for several."`
}

// Help implements kong.HelpProvider.
func (*BenchStepCmd) Help() string { return benchStepHelp }

// maxRounds bounds a comparison.
const maxRounds = 1000

// Run times the steps.
func (c *BenchStepCmd) Run(ctx context.Context, out *console) error {
	return benchmark(ctx, out, c.JSON, c.Seconds, c.measure)
}

func (c *BenchStepCmd) measure(ctx context.Context, r *benchRun) error {
	runs, err := c.runs()
	switch {
	case err != nil:
		return err
	case c.Compare == compareTorch:
		return c.compare(ctx, r, runs)
	case len(runs) == 1:
		s, err := bench.Steps(ctx, r.meter, runs[0])
		if err != nil {
			return err
		}
		return r.steps([]bench.Step{s})
	}
	return r.stepsApart(ctx, runs, c.Seconds)
}

// runs is each model at each number of threads.
func (c *BenchStepCmd) runs() ([]bench.StepConfig, error) {
	if c.Batch < 0 {
		return nil, badUsage("--batch is %d; use 1 or more", c.Batch)
	}
	precision, err := c.precision()
	if err != nil {
		return nil, err
	}
	counts, err := threadCounts(c.Threads)
	if err != nil {
		return nil, err
	}
	if c.ProcessorTime && !slices.Equal(counts, []int{1}) {
		return nil, badUsage("--processor-time is of one thread: pass --threads 1")
	}
	var runs []bench.StepConfig
	for _, name := range modelNames(c.Model) {
		sizes, err := genesis.ModelConfig(name)
		if err != nil {
			return nil, err
		}
		for _, threads := range counts {
			runs = append(runs, bench.StepConfig{Name: name, Model: sizes, Batch: c.Batch, Threads: threads, Optimizer: c.optimizer(), Precision: precision, ProcessorTime: c.ProcessorTime})
		}
	}
	return runs, nil
}

// optimizer is that of runs, unless it is asked for.
func (c *BenchStepCmd) optimizer() string {
	switch {
	case c.Optimizer != "" && c.Optimizer != "auto":
		return c.Optimizer
	case c.Compare == compareTorch:
		return optimizer.NameAdamW
	}
	return optimizer.NameMuon
}

// compareTorch is the --compare that measures beside PyTorch.
const compareTorch = "torch"

// modelNames writes out what all stands for.
func modelNames(names []string) []string {
	var expanded []string
	for _, name := range names {
		if name == "all" {
			expanded = append(expanded, "tiny", "small", "base")
			continue
		}
		expanded = append(expanded, name)
	}
	return expanded
}

// stepsApart measures each run in a process of its own, one after the other.
func (r *benchRun) stepsApart(ctx context.Context, runs []bench.StepConfig, seconds float64) error {
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	var results []bench.Step
	for _, run := range runs {
		r.meter.Note(fmt.Sprintf("steps of %s, %s", run.Name, threadsText(run.Threads)))
		var s bench.Step
		if err := stepChild(own, run, seconds).Ask(ctx, &s); err != nil {
			return err
		}
		results = append(results, s)
	}
	return r.steps(results)
}

// stepChild is the command that measures one run.
func stepChild(program string, run bench.StepConfig, seconds float64) bench.Child {
	args := []string{
		program, "bench", "step", "--model", run.Name, "--threads", fmt.Sprint(run.Threads), "--batch", fmt.Sprint(run.Batch),
		"--seconds", fmt.Sprint(seconds), "--optimizer", run.Optimizer, "--precision", run.Precision.String(), "--compare", "none", "--json",
	}
	if run.ProcessorTime {
		args = append(args, "--processor-time")
	}
	return bench.Child{Name: "lab", Args: args}
}

func (r *benchRun) steps(results []bench.Step) error {
	header := []string{"MODEL", "PARAMS", "THREADS", "PRECISION", "KERNEL", "OPTIMIZER", "BATCH", "TOKENS/S", "MS/STEP", "OF PEAK", "MEMORY"}
	return show(r, "", header, results, func(s bench.Step) []string {
		return []string{
			s.Model, big(float64(s.Params)), fmt.Sprint(s.Threads), s.Precision.String(), s.Kernel, s.Optimizer, fmt.Sprintf("%d x %d", s.Batch, s.Context),
			fmt.Sprintf("%.0f", s.TokensPerS), fmt.Sprintf("%.1f", s.MsPerStep), share(s.FLOPsFraction), memoryText(s.RSSBytes),
		}
	})
}

func memoryText(bytes uint64) string {
	if bytes == 0 {
		return unknown
	}
	return status.Bytes(float64(bytes))
}

// compare alternates each run with the reference program.
func (c *BenchStepCmd) compare(ctx context.Context, r *benchRun, runs []bench.StepConfig) error {
	own, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find this program: %w", err)
	}
	if err := c.comparable(); err != nil {
		return err
	}
	var results []bench.Comparison
	for _, run := range runs {
		result, err := bench.Compare(ctx, r.meter, bench.CompareConfig{
			Model: run.Name, Threads: run.Threads, Rounds: c.Rounds, Seconds: c.Seconds,
			Torch: bench.Torch{Python: c.Python, Script: c.Torch, Modes: c.modes(run.Precision)},
			Ours:  stepChild(own, run, c.Seconds),
		})
		if err != nil {
			return errors.Join(r.comparisons(results), err) // minutes went into those before
		}
		results = append(results, result)
	}
	return r.comparisons(results)
}

// modes are the flags of the reference program. It rounds to bfloat16 what atoll does.
func (c *BenchStepCmd) modes(p tensor.Precision) (modes [][]string) {
	for _, name := range c.Mode {
		var flags []string
		if name == "compile" {
			flags = append(flags, "--compile")
		}
		if p == tensor.BF16 {
			flags = append(flags, "--bf16")
		}
		modes = append(modes, flags)
	}
	return modes
}

// comparable refuses what the reference program does not do.
func (c *BenchStepCmd) comparable() error {
	known := []string{"tiny", "small", "base"}
	for _, name := range modelNames(c.Model) {
		if !slices.Contains(known, name) {
			return badUsage("--model is %s; --compare torch knows tiny, small and base", name)
		}
	}
	switch {
	case c.Torch == "":
		return badUsage("--compare torch needs the program to compare with; pass --torch PATH/torch_ref.py")
	case c.optimizer() != optimizer.NameAdamW:
		return badUsage("--optimizer is %s; --compare torch has AdamW", c.Optimizer)
	case c.ProcessorTime:
		return badUsage("--processor-time is of atoll alone; leave it out with --compare torch")
	case c.Batch != 0:
		return badUsage("--batch is %d; --compare torch has the shared benchmark's batch, so leave it out", c.Batch)
	case c.Rounds < 1 || c.Rounds > maxRounds:
		return badUsage("--rounds is %d; use 1 to %d", c.Rounds, maxRounds)
	}
	return nil
}

// coreText says what OpenBLAS was told: with another type it may be half as fast.
func coreText(core string) string {
	if core == "" {
		return ""
	}
	return "; OPENBLAS_CORETYPE=" + core
}

func (r *benchRun) comparisons(results []bench.Comparison) error {
	if len(results) == 0 {
		return nil
	}
	title := "Tokens/s, medians; the ratio is the median of those within a round" + coreText(results[0].CoreType)
	header := []string{"MODEL", "THREADS", "PRECISION", "ROUNDS", "ATOLL", "PYTORCH", "RATIO", "MIN..MAX", "OF PEAK"}
	return show(r, title, header, results, func(c bench.Comparison) []string {
		return []string{
			c.Model, fmt.Sprint(c.Threads), c.Precision.String(), fmt.Sprint(c.Rounds), fmt.Sprintf("%.0f", c.TokensPerS), fmt.Sprintf("%.0f", c.TorchTokensPerS),
			fmt.Sprintf("%.2f", c.Ratio), fmt.Sprintf("%.2f..%.2f", c.RatioMin, c.RatioMax), share(c.FLOPsFraction),
		}
	})
}
