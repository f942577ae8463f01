package llama

import (
	"math/rand/v2"
	"slices"
	"testing"
)

func take(m *Model, o Sampling, prompt []int32, n int) []int32 {
	p := rough(rand.New(rand.NewPCG(1, 1)), m.config)
	var out []int32
	for token := range m.Sample(p, prompt, o) {
		if out = append(out, token); len(out) == n {
			break
		}
	}
	return out
}

func TestSampleRepeats(t *testing.T) {
	m, prompt := NewModel(ragged, 1), []int32{1, 2, 3}
	o := Sampling{Temperature: 1, Seed: 1}
	first := take(m, o, prompt, 40) // beyond the context
	if !slices.Equal(first, take(m, o, prompt, 40)) {
		t.Error("one seed gives two texts")
	}
	o.Seed = 2
	if slices.Equal(first, take(m, o, prompt, 40)) {
		t.Error("two seeds give one text")
	}
}

func TestGreedy(t *testing.T) {
	m, prompt := NewModel(ragged, 1), []int32{5}
	got := take(m, Sampling{}, prompt, 20)
	if !slices.Equal(got, take(m, Sampling{Temperature: 2, TopK: 1, Seed: 9}, prompt, 20)) {
		t.Error("the best of one is not the best of all")
	}
	p := rough(rand.New(rand.NewPCG(1, 1)), ragged)
	if best := rank(m.Logits(p, prompt))[0].token; got[0] != best {
		t.Errorf("greedy token %d, want %d", got[0], best)
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
