package main

import (
	"context"
	"fmt"

	"atoll/tensor"
	"atoll/tensor/llama"
	"atoll/testnet/lab/bench"
)

const benchGemmHelp = `
Times matrix products M x K times K x N and compares them with the peak of the same threads, multiply-adds on registers alone. The last sizes are those of training tiny. In form NT the second operand is transposed, in TN the first.

--compare openblas takes turns with OpenBLAS (package libopenblas0 of Debian and Ubuntu), which a Python program calls. RATIO is the median over the rounds; BEST compares the best of all rounds. --compare torch takes turns with PyTorch instead, on the products of tiny, small and base. In bf16 its operands and results are bf16 in memory, where those of atoll are f32. If OPENBLAS_CORETYPE is not set and this processor has AVX-512, it becomes SKYLAKEX; the title names it.

    lab bench gemm
    lab bench gemm --threads 1,2,4 --json
    lab bench gemm --compare openblas --seconds 2
    lab bench gemm --precision bf16 --compare torch --python venv/bin/python`

// BenchGemmCmd is `lab bench gemm`.
type BenchGemmCmd struct {
	Threads []int   `help:"Threads to multiply with; several numbers with commas between. Default: 1, and one per core." placeholder:"N"`
	Seconds float64 `help:"Seconds to measure each product." default:"0.3"`
	precisionFlag
	Compare string `help:"openblas takes turns with that library, torch with PyTorch." enum:"none,openblas,torch" default:"none"`
	Library string `help:"OpenBLAS, or another library with cblas_sgemm." default:"libopenblas.so.0"`
	Python  string `help:"Python that calls the library." default:"python3"`
	Rounds  int    `help:"Turns of --compare." default:"5"`
	linesFlag
}

// Help implements kong.HelpProvider.
func (*BenchGemmCmd) Help() string { return benchGemmHelp }

// Run times the products.
func (c *BenchGemmCmd) Run(ctx context.Context, out *console) error {
	return benchmark(ctx, out, c.JSON, c.Seconds, c.measure)
}

func (c *BenchGemmCmd) measure(ctx context.Context, r *benchRun) error {
	counts, err := threadCounts(c.Threads, 1)
	if err != nil {
		return err
	}
	precision, err := c.precision()
	if err != nil {
		return err
	}
	compares := c.Compare == "openblas" || c.Compare == bench.TorchLibrary
	switch {
	case compares && (c.Rounds < 1 || c.Rounds > maxRounds):
		return badUsage("--rounds is %d; use 1 to %d", c.Rounds, maxRounds)
	case c.Compare == "openblas" && precision != tensor.F32:
		return badUsage("--precision is %v; --compare openblas multiplies in f32, so use --compare torch", precision)
	}
	for _, threads := range counts {
		if compares {
			err = r.compareGemms(ctx, c.library(precision), threads)
		} else {
			err = r.gemms(ctx, threads, precision)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// library is what to compare with.
func (c *BenchGemmCmd) library(precision tensor.Precision) bench.BLAS {
	b := bench.BLAS{Python: c.Python, Library: c.Library, Precision: precision, Rounds: c.Rounds}
	if c.Compare == bench.TorchLibrary {
		b.Library = bench.TorchLibrary
	}
	return b
}

// compareGemms measures and shows the products of so many threads in turn with a library.
func (r *benchRun) compareGemms(ctx context.Context, b bench.BLAS, threads int) error {
	products := bench.Products
	if b.Library == bench.TorchLibrary {
		products = bench.ModelProducts(llama.Tiny, llama.Small, llama.Base)
	}
	results, err := bench.CompareGemms(ctx, r.meter, b, threads, products)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("Matrix products in %v, %s, GFLOP/s, medians of %s%s", b.Precision, threadsText(threads), plural(b.Rounds, "round", "rounds"), coreText(results[0].CoreType))
	header := []string{"M x K x N", "FORM", "ATOLL", "LIBRARY", "RATIO", "MIN..MAX", "BEST"}
	return show(r, title, header, results, func(c bench.GemmComparison) []string {
		return []string{
			fmt.Sprintf("%d x %d x %d", c.M, c.K, c.N), c.Form, fmt.Sprintf("%.1f", c.GFLOPPerS), fmt.Sprintf("%.1f", c.BLAS),
			fmt.Sprintf("%.2f", c.Ratio), fmt.Sprintf("%.2f..%.2f", c.RatioMin, c.RatioMax), fmt.Sprintf("%.2f", c.RatioBest),
		}
	})
}

// gemms measures and shows the products of so many threads.
func (r *benchRun) gemms(ctx context.Context, threads int, precision tensor.Precision) error {
	r.meter.Note("peak, " + threadsText(threads))
	peak, err := bench.MeasurePeak(ctx, threads, precision)
	if err == nil {
		err = peak.MeasureCopy(ctx)
	}
	if err != nil {
		return err
	}
	if r.json {
		if err := r.out.json(peak); err != nil {
			return err
		}
	}
	results, err := bench.Gemms(ctx, r.meter, peak, bench.Products)
	if err != nil {
		return err
	}
	title := fmt.Sprintf("Matrix products in %v, %s, %s: peak %.0f GFLOP/s, copy %.1f GB/s",
		precision, peak.Kernel, threadsText(peak.Threads), peak.GFLOPPerS, peak.CopyGBPerS)
	return show(r, title, []string{"M x K x N", "FORM", "GFLOP/S", "OF PEAK", "SPREAD", "BEST"}, results, func(g bench.Gemm) []string {
		shape := fmt.Sprintf("%d x %d x %d", g.M, g.K, g.N)
		return []string{shape, g.Form, fmt.Sprintf("%.1f", g.GFLOPPerS), share(g.OfPeak), share(g.Spread), fmt.Sprintf("%.1f", g.Best)}
	})
}
