package trainer

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"testing"

	"atoll/optimizer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// TestBF16LearnsAsWell trains tiny on 3 M tokens and small on 1 M of the prose that ships with Go, in either precision. It compares
// bits per byte of held-out text. Chance moves one run by a per cent, so three seeds may differ by more than is asked about: ATOLL_QUALITY_SEEDS
// takes more of them. It takes hours, so each model, optimizer and seed is a test of its own that can run elsewhere, and
// ATOLL_QUALITY_TOKENS, a share of these tokens, makes it shorter. ATOLL_QUALITY_THREADS changes no bit.
func TestBF16LearnsAsWell(t *testing.T) {
	if os.Getenv("ATOLL_LONG") == "" {
		t.Skip("it trains for hours: set ATOLL_LONG=1")
	}
	if fast, why := tensor.FastBF16(); !fast {
		t.Skip(why)
	}
	text, err := corpus.Open(corpus.Prose)
	if err != nil {
		t.Skipf("there is no prose here: %v", err)
	}
	share, threads := number(t, "ATOLL_QUALITY_TOKENS", 1), int(number(t, "ATOLL_QUALITY_THREADS", 1))
	seeds := uint64(number(t, "ATOLL_QUALITY_SEEDS", 3))
	for _, q := range []quality{
		{"tiny", llama.Tiny, optimizer.NameMuon, 8, 4e-3, 3e6},
		{"tiny", llama.Tiny, optimizer.NameAdamW, 8, 4e-3, 3e6},
		{"small", llama.Small, optimizer.NameMuon, 8, 4e-3, 1e6},
	} {
		t.Run(q.name+"/"+q.optim, func(t *testing.T) { q.compare(t, text, share*q.tokens, seeds, threads) })
	}
}

// quality is what TestBF16LearnsAsWell trains.
type quality struct {
	name   string
	model  llama.Config
	optim  string
	batch  int // rows
	rate   float64
	tokens float64
}

// compare trains seeds in both precisions. -run may leave out some; they are compared where nothing is left out.
func (q quality) compare(t *testing.T, text *corpus.Corpus, tokens float64, seeds uint64, threads int) {
	const worse = 0.003 // of the mean over seeds
	var bits [2][]float64
	for seed := range seeds {
		for _, p := range []tensor.Precision{tensor.BF16, tensor.F32} {
			t.Run(fmt.Sprintf("%d/%v", seed+1, p), func(t *testing.T) {
				b := q.trained(t, text, p, seed+1, tokens, threads)
				bits[p] = append(bits[p], b)
				t.Logf("%s, %s, seed %d, %.0f tokens, %v: %.4f bits per byte", q.name, q.optim, seed+1, tokens, p, b)
			})
		}
	}
	f32, bf16 := sum(bits[tensor.F32]), sum(bits[tensor.BF16])
	if len(bits[tensor.F32]) != len(bits[tensor.BF16]) || f32 == 0 {
		return
	}
	t.Logf("%s, %s, bf16 beside f32 over %d seeds: %+.2f %%, standard error %.2f", q.name, q.optim, seeds, 100*(bf16/f32-1), 100*standardError(bits))
	if bf16/f32-1 > worse {
		t.Errorf("%s, %s: bf16 is worse by more than %v", q.name, q.optim, worse)
	}
}

// standardError is that of the mean of a seed's bf16 over its f32.
func standardError(bits [2][]float64) float64 {
	n, mean, squares := float64(len(bits[0])), sum(bits[tensor.BF16])/sum(bits[tensor.F32]), 0.0
	for i, b := range bits[tensor.BF16] {
		d := b/bits[tensor.F32][i] - mean
		squares += d * d
	}
	return math.Sqrt(squares / max(1, n-1) / n)
}

func sum(list []float64) (total float64) {
	for _, x := range list {
		total += x
	}
	return total
}

// number is a variable of the environment, or what it is without.
func number(t *testing.T, name string, usual float64) float64 {
	x, err := strconv.ParseFloat(cmp.Or(os.Getenv(name), strconv.FormatFloat(usual, 'g', -1, 64)), 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return x
}

// trained is how many bits per byte a learner needs after so many tokens.
func (q quality) trained(t *testing.T, text *corpus.Corpus, p tensor.Precision, seed uint64, tokens float64, threads int) float64 {
	cfg := Config{Model: q.model, Batch: q.batch, Optim: DefaultOptim(), Seed: seed, Threads: threads, Precision: p}
	if cfg.Optim.Name = q.optim; q.optim == optimizer.NameMuon {
		cfg.Optim.Momentum = DefaultMomentum
	}
	b, err := New(cfg, text)
	if err != nil {
		t.Fatal(err)
	}
	schedule := optimizer.Schedule{Peak: q.rate, FinalFraction: 0.1, WarmupFraction: 0.03}
	steps := int(tokens) / (q.batch * q.model.Context)
	for i := range steps {
		if _, err := b.Step(context.Background(), schedule.At(float64(i)/float64(steps))); err != nil {
			t.Fatal(err)
		}
	}
	bits, err := BitsPerByte(context.Background(), q.model, b.Slab(), corpus.Windows(text.HeldOut(), q.model.Context))
	if err != nil {
		t.Fatal(err)
	}
	return bits
}
