package bench

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"time"

	"atoll/tensor"
	"atoll/testnet/lab/python"
)

// GemmComparison is a matrix product of atoll beside the product of a BLAS library, measured in turn.
type GemmComparison struct {
	Bench     string           `json:"bench"` // "gemm-compare"
	With      string           `json:"with"`  // the library
	Form      string           `json:"form"`
	M         int              `json:"m"`
	K         int              `json:"k"`
	N         int              `json:"n"`
	Threads   int              `json:"threads"`
	Precision tensor.Precision `json:"precision"`
	Rounds    int              `json:"rounds"`
	CoreType  string           `json:"openblas_coretype,omitempty"` // see python.CoreType
	GFLOPPerS float64          `json:"gflop_per_s"`                 // median of the rounds
	BLAS      float64          `json:"blas_gflop_per_s"`            // likewise
	Ratio     float64          `json:"ratio"`                       // median of the ratios within rounds
	RatioMin  float64          `json:"ratio_min"`
	RatioMax  float64          `json:"ratio_max"`
	RatioBest float64          `json:"ratio_best"` // of the best of all rounds: what other work on the machine hides
}

// TorchLibrary stands for PyTorch, whose products are those of oneDNN or MKL.
const TorchLibrary = "torch"

// BLAS is a library to compare with, which a Python program calls.
type BLAS struct {
	Python    string           // interpreter
	Library   string           // OpenBLAS, another with cblas_sgemm, or TorchLibrary
	Precision tensor.Precision // BF16 is for TorchLibrary
	Rounds    int
}

//go:embed blas.py
var blasScript string

// blasTime is what the program answers.
type blasTime struct {
	Seconds float64 `json:"seconds"`
	Best    float64 `json:"best"`
}

// blasProcess is the program under way.
type blasProcess struct {
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Scanner
	stderr bytes.Buffer
	name   string
}

// start runs the program. The caller must end it.
func (b BLAS) start(ctx context.Context, threads int) (*blasProcess, error) {
	p := &blasProcess{cmd: exec.CommandContext(ctx, b.Python, "-c", blasScript, b.Library, fmt.Sprint(threads), b.Precision.String()), name: b.Library}
	p.cmd.Env, p.cmd.WaitDelay, p.cmd.Stderr = python.Env(threads), python.PipeWait, &p.stderr
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.out = bufio.NewScanner(stdout)
	if err := p.cmd.Start(); err != nil {
		return nil, Child{Name: b.Library, Args: []string{b.Python}}.explain(err, "")
	}
	return p, nil
}

// end lets the program end and waits for it.
func (p *blasProcess) end() error {
	p.in.Close()
	return p.cmd.Wait()
}

// ask has it measure one product.
func (p *blasProcess) ask(q Product, seconds float64) (t blasTime, err error) {
	err = json.NewEncoder(p.in).Encode(map[string]any{"form": q.Form, "m": q.M, "k": q.K, "n": q.N, "seconds": seconds})
	if err != nil || !p.out.Scan() {
		err = p.end()
		return t, fmt.Errorf("%s: its program ended without an answer (%v): %s", p.name, err, python.LastLine(p.stderr.String()))
	}
	err = json.Unmarshal(p.out.Bytes(), &t)
	if err == nil && (t.Seconds <= 0 || t.Best <= 0) {
		err = fmt.Errorf("it answers %q, which has no times above 0", p.out.Text())
	}
	if err != nil {
		return t, fmt.Errorf("%s: %w", p.name, err)
	}
	return t, nil
}

// CompareGemms measures products at a number of threads, which it leaves set, in turn with the library.
// Each product takes m.For twice, spread over the rounds.
func CompareGemms(ctx context.Context, m Meter, b BLAS, threads int, products []Product) ([]GemmComparison, error) {
	tensor.SetThreads(threads)
	p, err := b.start(ctx, threads)
	if err != nil {
		return nil, fmt.Errorf("compare products: %w", err)
	}
	defer p.end()
	part := Meter{For: m.For / time.Duration(b.Rounds)}
	var results []GemmComparison
	for _, q := range products {
		m.report(fmt.Sprintf("product %v, %s, in turn with %s", q, on(threads), b.Library))
		c, err := b.compare(ctx, part, p, q)
		if err != nil {
			return nil, fmt.Errorf("compare products: %w", err)
		}
		c.Threads = threads
		results = append(results, c)
	}
	return results, nil
}

func (b BLAS) compare(ctx context.Context, part Meter, p *blasProcess, q Product) (GemmComparison, error) {
	multiply := q.multiply(b.Precision)
	var ours, theirs Sample
	var rates, blas, ratios []float64
	best, blasBest := 0.0, 0.0
	for i := range b.Rounds {
		err := inTurn(i, func() (err error) {
			ours, err = part.repeat(ctx, multiply)
			return err
		}, func() error {
			t, err := p.ask(q, part.For.Seconds())
			theirs = Sample{Median: t.Seconds, Min: t.Best}
			return err
		})
		if err != nil {
			return GemmComparison{}, err
		}
		giga := q.FLOPs() / 1e9
		rates, blas = append(rates, giga/ours.Median), append(blas, giga/theirs.Median)
		ratios = append(ratios, theirs.Median/ours.Median)
		best, blasBest = max(best, giga/ours.Min), max(blasBest, giga/theirs.Min)
	}
	ratio := Summarize(ratios)
	return GemmComparison{
		Bench: "gemm-compare", With: b.Library, Form: q.Form, M: q.M, K: q.K, N: q.N, Precision: b.Precision, Rounds: b.Rounds, CoreType: python.CoreType(),
		GFLOPPerS: Summarize(rates).Median, BLAS: Summarize(blas).Median,
		Ratio: ratio.Median, RatioMin: ratio.Min, RatioMax: ratio.Max, RatioBest: best / blasBest,
	}, nil
}
