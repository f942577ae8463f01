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
	nats, err := meanNats(ctx, c, p, windows)
	return nats / math.Ln2, err
}

// BitsPerByteOf is the same for windows of tokens whose targets stand for so many bytes of
// text together: nats per token over bytes per token, so that models of different
// tokenizers can be compared.
func BitsPerByteOf(ctx context.Context, c llama.Config, p *tensor.Slab, windows [][]int32, text int64) (float64, error) {
	if text < 1 {
		return 0, fmt.Errorf("evaluate: the targets stand for %d bytes of text", text)
	}
	nats, err := meanNats(ctx, c, p, windows)
	targets := 0
	for _, w := range windows {
		targets += len(w) - 1
	}
	return nats / math.Ln2 * float64(targets) / float64(text), err
}

// evalRows is how many windows are scored at once.
func evalRows(c llama.Config) int { return max(1, evalTokens/c.Context) }

// EvaluationBytes is the memory that an evaluation takes, with the parameters that it is of.
func (c Config) EvaluationBytes() int64 {
	return 4*int64(c.Model.Params()) + c.Model.WorkspaceBytes(evalRows(c.Model))
}

// meanNats is the mean loss over the targets of windows.
func meanNats[T byte | int32](ctx context.Context, c llama.Config, p *tensor.Slab, windows [][]T) (float64, error) {
	if err := checkEvaluation(c, p, windows); err != nil {
		return 0, fmt.Errorf("evaluate: %w", err)
	}
	rows, all, told := evalRows(c), len(windows), progressOf(ctx)
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
		told(all-len(windows), all)
	}
	mean := nats / float64(targets)
	if !finite(mean) {
		return 0, fmt.Errorf("evaluate: a loss of %v: %w", mean, ErrDiverged)
	}
	return mean, nil
}

func checkEvaluation[T byte | int32](c llama.Config, p *tensor.Slab, windows [][]T) error {
	if err := checkModel(c); err != nil {
		return err
	}
	if n := c.Params(); len(p.Data) != n {
		return fmt.Errorf("%d parameters for a model of %d", len(p.Data), n)
	}
	if len(windows) == 0 {
		return fmt.Errorf("there is no text to score: pass at least 2 tokens")
	}
	for i, w := range windows {
		if len(w) < 2 || len(w) > c.Context+1 {
			return fmt.Errorf("window %d has %d tokens: use 2 to %d, the context and one more", i, len(w), c.Context+1)
		}
	}
	return nil
}

// alike returns how many of the first windows, at most limit, have the length
// of the first.
func alike[T byte | int32](windows [][]T, limit int) int {
	n := 1
	for n < min(limit, len(windows)) && len(windows[n]) == len(windows[0]) {
		n++
	}
	return n
}

func tokensOf[T byte | int32](windows [][]T) []int32 {
	var tokens []int32
	for _, w := range windows {
		for _, id := range w {
			tokens = append(tokens, int32(id))
		}
	}
	return tokens
}
