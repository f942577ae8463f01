package trainer

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"atoll/optimizer/trainer/corpus"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// naiveBits scores one target at a time from the logits after its prefix.
func naiveBits(p *tensor.Slab, windows [][]byte) float64 {
	model := llama.NewModel(mini, 1)
	nats, targets := 0.0, 0
	for _, w := range windows {
		tokens := tokensOf([][]byte{w})
		for i := 1; i < len(tokens); i++ {
			nats += surprise(model.Logits(p, tokens[:i]), tokens[i])
			targets++
		}
	}
	return nats / float64(targets) / math.Ln2
}

// surprise is minus the logarithm of the target's share of exp(logits).
func surprise(logits []float32, target int32) float64 {
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l))
	}
	return math.Log(sum) - float64(logits[target])
}

// Progress goes up to the end.
func TestBitsPerByteTellsProgress(t *testing.T) {
	p := llama.NewParams(mini)
	windows := corpus.Windows(Noise(mini.Context).Train()[:200*mini.Context], mini.Context)
	last, calls := 0, 0
	ctx := WithProgress(t.Context(), func(done, all int) {
		if calls++; done <= last || all != len(windows) {
			t.Errorf("%d of %d after %d", done, all, last)
		}
		last = done
	})
	if _, err := BitsPerByte(ctx, mini, p, windows); err != nil || last != len(windows) || calls < 2 {
		t.Errorf("told of %d of %d windows in %d calls, %v", last, len(windows), calls, err)
	}
}

func TestBitsPerByteAgainstNaive(t *testing.T) {
	p := llama.NewParams(mini)
	llama.Init(mini, p, 3)
	tensor.Scale(8, p.Data) // away from uniform guesses
	for _, size := range []int{2, 17, 18, 40, 140*16 + 1, 140*16 + 9} {
		text := Noise(mini.Context).Train()[:size]
		windows := corpus.Windows(text, mini.Context)
		got, err := BitsPerByte(context.Background(), mini, p, windows)
		if want := naiveBits(p, windows); err != nil || math.Abs(got-want) > 1e-4 {
			t.Errorf("%d bytes: %v bits per byte, %v; want %v", size, got, err, want)
		}
	}
}

func TestBitsPerByteErrors(t *testing.T) {
	p := llama.NewParams(mini)
	llama.Init(mini, p, 3)
	nan := llama.NewParams(mini)
	nan.Data[len(nan.Data)-1] = float32(math.NaN())
	wide := mini
	wide.Hidden = 32
	for _, tc := range []struct {
		model   llama.Config
		params  *tensor.Slab
		windows []string
		want    string
	}{
		{mini, p, nil, "no text to score"},
		{mini, p, []string{"ab", "c"}, "window 1 has 1 tokens"},
		{mini, p, []string{strings.Repeat("a", 18)}, "window 0 has 18 tokens: use 2 to 17"},
		{wide, p, []string{"ab"}, "parameters for a model of"},
		{llama.Config{}, p, []string{"ab"}, "Vocab is 0"},
		{mini, nan, []string{"ab"}, "diverged"},
	} {
		var windows [][]byte
		for _, w := range tc.windows {
			windows = append(windows, []byte(w))
		}
		if _, err := BitsPerByte(context.Background(), tc.model, tc.params, windows); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("error %v, want %q", err, tc.want)
		}
	}
}

func TestBitsPerByteIsCancelled(t *testing.T) {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	_, err := BitsPerByte(ctx, mini, llama.NewParams(mini), [][]byte{[]byte("ab")})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("error %v", err)
	}
}

// TestBitsPerByteOf: tokens that stand for two bytes each have half the bits per byte.
func TestBitsPerByteOf(t *testing.T) {
	p := llama.NewParams(mini)
	llama.Init(mini, p, 1)
	windows := corpus.Windows(alphabet().HeldOut(), mini.Context)
	want, err := BitsPerByte(t.Context(), mini, p, windows)
	if err != nil {
		t.Fatal(err)
	}
	var tokens [][]int32
	targets := 0
	for _, w := range windows {
		tokens = append(tokens, tokensOf([][]byte{w}))
		targets += len(w) - 1
	}
	got, err := BitsPerByteOf(t.Context(), mini, p, tokens, int64(2*targets))
	if err != nil || math.Abs(2*got-want) > 1e-9 {
		t.Errorf("%v bits, %v; want half of %v", got, err, want)
	}
	if _, err := BitsPerByteOf(t.Context(), mini, p, tokens, 0); err == nil {
		t.Error("bits per byte of no bytes")
	}
}
