package llama

import (
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/tensor"
)

func roughRagged() *tensor.Slab {
	return rough(rand.New(rand.NewPCG(1, 1)), ragged)
}

func take(o Sampling, prompt []int32, n int) (out []int32) {
	for token := range Sample(ragged, roughRagged(), prompt, o) {
		if out = append(out, token); len(out) == n {
			break
		}
	}
	return out
}

func TestSampleRepeats(t *testing.T) {
	prompt := []int32{1, 2, 3}
	o := Sampling{Temperature: 1, Seed: 1}
	first := take(o, prompt, 60) // beyond the context
	if !slices.Equal(first, take(o, prompt, 60)) {
		t.Error("one seed gives two texts")
	}
	o.Seed = 2
	if slices.Equal(first, take(o, prompt, 60)) {
		t.Error("two seeds give one text")
	}
}

func TestGreedy(t *testing.T) {
	prompt := []int32{5}
	got := take(Sampling{}, prompt, ragged.Context)
	if !slices.Equal(got, take(Sampling{Temperature: 2, TopK: 1, Seed: 9}, prompt, ragged.Context)) {
		t.Error("the best of one is not the best of all")
	}
	p, m := roughRagged(), NewModel(ragged, 1)
	for i, token := range got {
		text := append(slices.Clone(prompt), got[:i]...)
		if best := rank(m.Logits(p, text))[0].token; token != best {
			t.Errorf("greedy token %d is %d, want %d", i, token, best)
		}
	}
}

// TestSampleLongPrompt: of a prompt beyond the context the end is read.
func TestSampleLongPrompt(t *testing.T) {
	long := randomTokens(rand.New(rand.NewPCG(2, 2)), ragged, 3)
	if !slices.Equal(take(Sampling{}, long, 20), take(Sampling{}, long[len(long)-ragged.Context:], 20)) {
		t.Error("what lies before the context changes the text")
	}
}

// TestDecoderAgreesWithModel: a row at a time gives what a window gives.
func TestDecoderAgreesWithModel(t *testing.T) {
	p, m := roughRagged(), NewModel(ragged, 1)
	d := NewDecoder(ragged, p)
	for range 2 {
		tokens := randomTokens(rand.New(rand.NewPCG(3, 3)), ragged, 1)[:ragged.Context]
		for i, token := range tokens {
			if off := distance(d.Next(token), m.Logits(p, tokens[:i+1])); off > 1e-5 {
				t.Errorf("logits after %d tokens are off by %.1e", i+1, off)
			}
		}
		if d.Len() != ragged.Context {
			t.Errorf("read %d tokens, want %d", d.Len(), ragged.Context)
		}
		d.Reset()
	}
}

func TestPick(t *testing.T) {
	logits := []float32{0, 2, 1, 2} // e^2 = 7.39, e = 2.72: of 18.5 in all
	for _, test := range []struct {
		o    Sampling
		u    float64
		want int32
	}{
		{Sampling{}, 0.99, 1},
		{Sampling{Temperature: 1}, 0, 1},
		{Sampling{Temperature: 1}, 0.41, 3},
		{Sampling{Temperature: 1}, 0.81, 2},
		{Sampling{Temperature: 1}, 0.999, 0},
		{Sampling{Temperature: 1, TopK: 2}, 0.999, 3},
		{Sampling{Temperature: 1, TopK: 9}, 0.999, 0},
		{Sampling{Temperature: 1, TopP: 0.5}, 0.999, 3},
		{Sampling{Temperature: 1, TopP: 0.3}, 0.999, 1},
		{Sampling{Temperature: 0.01}, 0.999, 3},
		{Sampling{Temperature: 100}, 0.99, 0},
	} {
		if got := test.o.pick(logits, test.u); got != test.want {
			t.Errorf("%+v at %v picks %d, want %d", test.o, test.u, got, test.want)
		}
	}
}
