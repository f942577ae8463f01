package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"time"

	"atoll/tensor"
	"atoll/testnet/lab/bench"
)

const benchHelp = `
Every figure is a median after a warm-up. The spread beside it is the width of the middle half of the measurements, as a share of the median. Peaks are the best of many measurements.

    lab bench
    lab bench step --model tiny --threads 1 --seconds 8 --json`

// BenchCmd is `lab bench`.
type BenchCmd struct {
	Gemm  BenchGemmCmd  `cmd:"" help:"Matrix products, beside the peak of the cores."`
	Step  BenchStepCmd  `cmd:"" help:"Training steps: forward, backward, optimizer; also beside PyTorch's."`
	Codec BenchCodecCmd `cmd:"" help:"Encoding and decoding of deltas."`
	Fold  BenchFoldCmd  `cmd:"" help:"Folding deltas, adopting the result."`
	State BenchStateCmd `cmd:"" help:"Memory of training for each parameter."`
	Outer BenchOuterCmd `cmd:"" help:"Training with the outer loop and without, in turn."`
	Disk  BenchDiskCmd  `cmd:"" help:"Synced writes, and what keeping a delta costs."`
	Link  BenchLinkCmd  `cmd:"" help:"Requests between two nodes on this machine."`
	All   BenchAllCmd   `cmd:"" default:"withargs" help:"All of these except outer, for a short time each."`
}

// Help implements kong.HelpProvider.
func (*BenchCmd) Help() string { return benchHelp }

// benchRun is one call of `lab bench`: how things are measured, and where the answer goes.
type benchRun struct {
	out    *console
	json   bool
	meter  bench.Meter
	tables int // printed
}

// precisionFlag is the arithmetic that a measurement is of.
type precisionFlag struct {
	Precision tensor.Precision `help:"Arithmetic of matrix products: f32, or bf16 where the processor has AMX." default:"f32" placeholder:"f32"`
}

// precision refuses one for which this machine has no instructions.
func (f precisionFlag) precision() (tensor.Precision, error) {
	if f.Precision == tensor.BF16 {
		if fast, why := tensor.FastBF16(); !fast {
			return f.Precision, badUsage("--precision is bf16, and %s: use f32", why)
		}
	}
	return f.Precision, nil
}

// maxSeconds bounds a measurement to a day.
const maxSeconds = 86400

// errInterrupted says that the answer is not whole.
var errInterrupted = errors.New("interrupted: the figures above were measured before")

// benchmark calls measure with what it needs; seconds is for one thing that is measured.
func benchmark(ctx context.Context, out *console, json bool, seconds float64, measure func(context.Context, *benchRun) error) error {
	if !(seconds >= 0 && seconds <= maxSeconds) {
		return badUsage("--seconds is %v; use 0 to %d", seconds, maxSeconds)
	}
	stages := newStages(out, stagesEvery)
	defer stages.end()
	err := measure(ctx, &benchRun{out: out, json: json, meter: bench.Meter{For: duration(seconds), Note: stages.report}})
	if err != nil && ctx.Err() != nil {
		return errInterrupted
	}
	return err
}

func duration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }

// show prints results: as a line of JSON each, or under a title as the rows of a table.
func show[T any](r *benchRun, title string, header []string, results []T, row func(T) []string) error {
	if r.json {
		for _, x := range results {
			if err := r.out.json(x); err != nil {
				return err
			}
		}
		return nil
	}
	if r.tables++; r.tables > 1 {
		r.out.answer("")
	}
	if title != "" {
		r.out.answer("%s", title)
	}
	rows := [][]string{header}
	for _, x := range results {
		rows = append(rows, row(x))
	}
	return table(r.out.out, rows...)
}

// threadCounts checks a list of threads; 0 is one per core, and so is an empty list, after
// the counts that go before by default.
func threadCounts(list []int, before ...int) ([]int, error) {
	cores := runtime.GOMAXPROCS(0)
	if len(list) == 0 {
		for _, n := range before {
			if n < cores {
				list = append(list, n)
			}
		}
		return append(list, cores), nil
	}
	counts := make([]int, len(list))
	for i, n := range list {
		if err := checkCount("--threads", n, 0); err != nil {
			return nil, err
		}
		counts[i] = cmp.Or(n, cores)
	}
	return counts, nil
}

func threadsText(n int) string { return plural(n, "thread", "threads") }

// share writes a fraction as a percentage.
func share(x float64) string { return fmt.Sprintf("%.0f %%", 100*x) }

// stagesEvery is the time between two lines about what is measured; who waits for less
// needs none.
const stagesEvery = 2 * time.Second

// stages says on stderr what is measured, to those who have waited for a while.
type stages struct {
	out   *console
	every time.Duration
	timer *time.Timer

	mu   sync.Mutex
	what string
	last time.Time // of the last line, or the beginning
	over bool
}

func newStages(out *console, every time.Duration) *stages {
	s := &stages{out: out, every: every, last: time.Now()}
	s.timer = time.AfterFunc(every, func() { s.report("") })
	return s
}

// report says what is measured from now on; empty is what was before.
func (s *stages) report(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if what != "" {
		s.what = what
	}
	if s.over || s.what == "" || time.Since(s.last) < s.every {
		return
	}
	s.last = time.Now()
	s.out.say("measuring %s", s.what)
}

func (s *stages) end() {
	s.timer.Stop()
	s.mu.Lock()
	defer s.mu.Unlock()
	s.over = true
}
