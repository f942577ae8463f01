package trainer

import (
	"context"
	"fmt"
	"math"

	"atoll/tensor"
	"atoll/tensor/llama"
)

// evalTokens is about how many tokens are scored at once: enough to keep a
// machine busy, few enough to notice soon that nobody wants the result.
const evalTokens = 512

// BitsPerByte returns the mean number of bits that the model needs for each
// target byte of windows, as corpus.Windows makes them. The first byte of a
// window is context only, the others are targets. Windows shorter than the
// context are scored as they are; each byte counts the same.
func BitsPerByte(ctx context.Context, c llama.Config, p *tensor.Slab, windows [][]byte) (float64, error) {
	if err := checkEvaluation(c, p, windows); err != nil {
		return 0, fmt.Errorf("evaluate: %w", err)
	}
	rows := max(1, evalTokens/c.Context)
	nats, targets := 0.0, 0
	var model *llama.Model
	for len(windows) > 0 {
		n := alike(windows, rows)
		if context := len(windows[0]) - 1; model == nil || model.Config().Context != context {
			c.Context = context
			model = llama.NewModel(c, n)
			model.Cut = func() bool { return ctx.Err() != nil }
		}
		nats += model.Loss(p, tokensOf(windows[:n])) * float64(n*c.Context)
		if err := ctx.Err(); err != nil {
			return 0, fmt.Errorf("evaluate: %w", err)
		}
		targets += n * c.Context
		windows = windows[n:]
	}
	bits := nats / float64(targets) / math.Ln2
	if !finite(bits) {
		return 0, fmt.Errorf("evaluate: %v bits per byte: %w", bits, ErrDiverged)
	}
	return bits, nil
}

func checkEvaluation(c llama.Config, p *tensor.Slab, windows [][]byte) error {
	if err := checkModel(c); err != nil {
		return err
	}
	if n := c.Params(); len(p.Data) != n {
		return fmt.Errorf("%d parameters for a model of %d", len(p.Data), n)
	}
	if len(windows) == 0 {
		return fmt.Errorf("there is no text to score: pass at least 2 bytes")
	}
	for i, w := range windows {
		if len(w) < 2 || len(w) > c.Context+1 {
			return fmt.Errorf("window %d has %d bytes: use 2 to %d, the context and one more", i, len(w), c.Context+1)
		}
	}
	return nil
}

// alike returns how many of the first windows, at most limit, have the length
// of the first.
func alike(windows [][]byte, limit int) int {
	n := 1
	for n < min(limit, len(windows)) && len(windows[n]) == len(windows[0]) {
		n++
	}
	return n
}

func tokensOf(windows [][]byte) []int32 {
	var tokens []int32
	for _, w := range windows {
		for _, b := range w {
			tokens = append(tokens, int32(b))
		}
	}
	return tokens
}
