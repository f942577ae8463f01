package trainer

import (
	"cmp"
	"context"
	"os"
	"strconv"
	"testing"

	"atoll/optimizer"
	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// TestBF16LearnsAsWell trains tiny on the prose that ships with Go in either precision, with either optimizer, and compares
// bits per byte of what was held out, of which chance makes half a per cent. It takes an hour; ATOLL_QUALITY_TOKENS and ATOLL_QUALITY_SEEDS make it shorter.
func TestBF16LearnsAsWell(t *testing.T) {
	if os.Getenv("ATOLL_LONG") == "" {
		t.Skip("it trains for an hour: set ATOLL_LONG=1")
	}
	if fast, why := tensor.FastBF16(); !fast {
		t.Skip(why)
	}
	text, err := corpus.Open(corpus.Prose)
	if err != nil {
		t.Skipf("there is no prose here: %v", err)
	}
	tokens := number(t, "ATOLL_QUALITY_TOKENS", 3e6)
	const worse = 0.003 // of the mean over seeds
	for _, optim := range []string{optimizer.NameMuon, optimizer.NameAdamW} {
		var sums [2]float64
		for seed := range uint64(number(t, "ATOLL_QUALITY_SEEDS", 3)) {
			var bits [2]float64
			for _, p := range []tensor.Precision{tensor.BF16, tensor.F32} {
				bits[p] = trained(t, text, optim, p, seed+1, tokens)
				sums[p] += bits[p]
			}
			off := bits[tensor.BF16]/bits[tensor.F32] - 1
			t.Logf("%s, seed %d, %.0f tokens: f32 %.4f, bf16 %.4f bits per byte, %+.2f %%", optim, seed+1, tokens, bits[tensor.F32], bits[tensor.BF16], 100*off)
		}
		off := sums[tensor.BF16]/sums[tensor.F32] - 1
		t.Logf("%s, all seeds: %+.2f %%", optim, 100*off)
		if off > worse {
			t.Errorf("%s: bf16 is worse by more than %v", optim, worse)
		}
	}
}

// number is a variable of the environment, or what it is without.
func number(t *testing.T, name string, usual float64) float64 {
	x, err := strconv.ParseFloat(cmp.Or(os.Getenv(name), strconv.FormatFloat(usual, 'g', -1, 64)), 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return x
}

// trained is how many bits per byte a learner of tiny needs after so many tokens.
func trained(t *testing.T, text *corpus.Corpus, optim string, p tensor.Precision, seed uint64, tokens float64) float64 {
	const batch, rate = 8, 4e-3
	cfg := Config{Model: llama.Tiny, Batch: batch, Optim: DefaultOptim(), Seed: seed, Threads: 1, Precision: p}
	if cfg.Optim.Name = optim; optim == optimizer.NameMuon {
		cfg.Optim.Momentum = DefaultMomentum
	}
	b, err := New(cfg, text)
	if err != nil {
		t.Fatal(err)
	}
	schedule := optimizer.Schedule{Peak: rate, FinalFraction: 0.1, WarmupFraction: 0.03}
	steps := int(tokens) / (batch * llama.Tiny.Context)
	for i := range steps {
		if _, err := b.Step(context.Background(), schedule.At(float64(i)/float64(steps))); err != nil {
			t.Fatal(err)
		}
	}
	bits, err := BitsPerByte(context.Background(), llama.Tiny, b.Slab(), corpus.Windows(text.HeldOut(), llama.Tiny.Context))
	if err != nil {
		t.Fatal(err)
	}
	return bits
}
