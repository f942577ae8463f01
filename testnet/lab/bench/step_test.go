package bench

import (
	"testing"

	"atoll/tensor/llama"
)

// The work of a token, by hand from the sizes.
func TestFLOPsPerToken(t *testing.T) {
	for _, c := range []struct {
		name                              string
		vocab, hidden, layers, inter, ctx int
		params, want                      float64
	}{
		{"tiny", 256, 128, 4, 344, 128, 824_448, 5_339_904},
		{"small", 256, 384, 6, 1024, 256, 10_720_128, 67_859_712},
		{"base", 4096, 768, 12, 2048, 256, 88_099_584, 542_753_280},
	} {
		// A layer has four matrices of attention, three of the feed-forward part, two norms;
		// around them are the embedding, which is also the head, and a norm.
		layer := 4*c.hidden*c.hidden + 3*c.hidden*c.inter + 2*c.hidden
		if params := float64(c.vocab*c.hidden + c.layers*layer + c.hidden); params != c.params {
			t.Errorf("%s: %v parameters, want %v", c.name, params, c.params)
		}
		if attention := float64(6 * c.layers * c.ctx * c.hidden); 6*c.params+attention != c.want {
			t.Errorf("%s: %v, want %v", c.name, 6*c.params+attention, c.want)
		}
		sizes, _ := llama.Named(c.name)
		if got := FLOPsPerToken(sizes); got != c.want {
			t.Errorf("%s: %v operations a token, want %v", c.name, got, c.want)
		}
	}
}

func TestSharedBatch(t *testing.T) {
	for name, want := range map[string]int{"tiny": 16, "small": 8, "base": 2} {
		if sizes, _ := llama.Named(name); SharedBatch(sizes) != want {
			t.Errorf("%s: %d rows, want %d", name, SharedBatch(sizes), want)
		}
	}
}

// mini trains in no time.
func mini() llama.Config {
	c := llama.Tiny
	c.Hidden, c.Layers, c.Heads, c.KVHeads, c.Intermediate, c.Context = 8, 1, 2, 2, 16, 8
	return c
}

func TestSteps(t *testing.T) {
	s, err := Steps(t.Context(), Meter{}, StepConfig{Name: "mini", Model: mini(), Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	// At the median, as far as the numbers are exact.
	fraction := FLOPsPerToken(mini()) * s.TokensPerS / (s.PeakGFLOPPerS * 1e9)
	if s.Batch != 2 || s.Threads != 1 || s.Steps < leastParts || s.TokensPerS <= 0 || s.FLOPsFraction != fraction {
		t.Errorf("%+v, want the fraction %v", s, fraction)
	}
}
