package shards

import (
	"context"

	"atoll/tensor/token"
)

// Sample is held-out text to measure with.
type Sample struct {
	Windows [][]int32 // of up to context+1 tokens: the first is context only, the others are targets
	Bytes   int64     // of text that the targets stand for; the end of a document is no text
}

// HeldOut reads the held-out shards and returns windows that are spread evenly over them and
// have targets for about so many bytes of text, or all windows where there is no more. Every
// token but the first of a shard is the target of one window at most.
func (d *Dir) HeldOut(ctx context.Context, t token.Tokenizer, text int64, length int) (Sample, error) {
	return d.Manifest.Sample(ctx, d.Fetch, t, text, length)
}

// Sample is HeldOut with shards from anywhere.
func (m *Manifest) Sample(ctx context.Context, fetch Fetch, t token.Tokenizer, text int64, length int) (Sample, error) {
	var all [][]int32
	for _, s := range m.HeldOut {
		b, err := fetch(ctx, s)
		if err != nil {
			return Sample{}, err
		}
		tokens, err := m.Decode(s, b)
		if err != nil {
			return Sample{}, err
		}
		for at := 0; at+1 < len(tokens); at += length {
			all = append(all, tokens[at:min(at+length+1, len(tokens))])
		}
	}
	tokens, bytes := Tokens(m.HeldOut)
	n := len(all)
	if text < bytes {
		targets := float64(text) * float64(tokens) / float64(bytes)
		n = min(max(int(targets)/length, 1), n)
	}
	sample := Sample{Windows: make([][]int32, n)}
	for i := range sample.Windows {
		w := all[(2*i+1)*len(all)/(2*n)]
		sample.Windows[i] = w
		sample.Bytes += token.TextSize(t, m.Tokenizer.End, w[0], w[1:])
	}
	return sample, nil
}
