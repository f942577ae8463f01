package llama

import (
	"cmp"
	"iter"
	"math"
	"slices"

	"atoll/tensor"
)

// Sampling says how the next token is drawn from the logits.
type Sampling struct {
	Temperature float64 // divides the logits; 0 takes the most likely token
	TopK        int     // only the K most likely tokens; 0 means all
	TopP        float64 // only the most likely tokens that together reach P; 0 means all
	Seed        uint64  // of the random draws
}

// Sample continues prompt, which must hold a token, one token at a time for as
// long as the caller takes them. Each token sees at least the last Context/2
// tokens. The same arguments give the same tokens on the same machine.
func Sample(c Config, p *tensor.Slab, prompt []int32, o Sampling) iter.Seq[int32] {
	return func(yield func(int32) bool) {
		d := NewDecoder(c, p)
		text := append([]int32(nil), prompt[max(0, len(prompt)-c.Context):]...)
		logits := d.read(text)
		draws := streamOf(o.Seed, "sample")
		for i := uint64(0); ; i++ {
			next := o.pick(logits, draws.uniform(i))
			if !yield(next) {
				return
			}
			text = append(text, next)
			if d.Len() == c.Context {
				d.Reset()
				text = text[len(text)-(c.Context+1)/2:]
				logits = d.read(text)
			} else {
				logits = d.Next(next)
			}
		}
	}
}

// read reads several tokens and returns the logits after the last.
func (d *Decoder) read(tokens []int32) (logits []float32) {
	for _, token := range tokens {
		logits = d.Next(token)
	}
	return logits
}

// candidate is a token with its unnormalised probability.
type candidate struct {
	token  int32
	weight float64
}

// pick draws a token with a uniform number u from [0, 1).
func (o Sampling) pick(logits []float32, u float64) int32 {
	ranked := rank(logits)
	if o.Temperature <= 0 {
		return ranked[0].token
	}
	if o.TopK > 0 {
		ranked = ranked[:min(o.TopK, len(ranked))]
	}
	top, total := ranked[0].weight, 0.0
	for i := range ranked {
		ranked[i].weight = math.Exp((ranked[i].weight - top) / o.Temperature)
		total += ranked[i].weight
	}
	if o.TopP > 0 && o.TopP < 1 {
		total = min(total, reach(ranked, o.TopP*total))
	}
	return walk(ranked, u*total)
}

// rank lists the tokens with their logits, most likely first, ties by token.
func rank(logits []float32) []candidate {
	ranked := make([]candidate, len(logits))
	for i, v := range logits {
		ranked[i] = candidate{int32(i), float64(v)}
	}
	slices.SortFunc(ranked, func(a, b candidate) int {
		return cmp.Or(cmp.Compare(b.weight, a.weight), cmp.Compare(a.token, b.token))
	})
	return ranked
}

// reach is the weight of the shortest head of ranked that weighs at least
// enough.
func reach(ranked []candidate, enough float64) float64 {
	sum := 0.0
	for _, c := range ranked {
		if sum += c.weight; sum >= enough {
			break
		}
	}
	return sum
}

// walk returns the token at weight along the line of candidates.
func walk(ranked []candidate, weight float64) int32 {
	for _, c := range ranked {
		if weight -= c.weight; weight < 0 {
			return c.token
		}
	}
	return ranked[len(ranked)-1].token
}
