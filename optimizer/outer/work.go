package outer

import "math/bits"

// Work is an amount of training.
type Work struct {
	Steps, Tokens uint64
}

// Add adds an amount to w.
func (w *Work) Add(x Work) {
	w.Steps += x.Steps
	w.Tokens += x.Tokens
}

// Sub takes an amount off w, which has as much.
func (w *Work) Sub(x Work) {
	w.Steps -= x.Steps
	w.Tokens -= x.Tokens
}

// Min is the smaller of two amounts, in steps and in tokens.
func (w Work) Min(x Work) Work {
	return Work{Steps: min(w.Steps, x.Steps), Tokens: min(w.Tokens, x.Tokens)}
}

// declare is the part of pending work that one header may carry: at most maxSteps steps and
// maxTokens tokens a step.
func (w Work) declare(maxSteps uint32, maxTokens uint64) Work {
	steps := min(w.Steps, uint64(maxSteps))
	if steps == 0 {
		return Work{}
	}
	hi, lo := bits.Mul64(w.Tokens, steps)
	tokens, _ := bits.Div64(hi, lo, w.Steps) // fits: steps <= w.Steps
	return Work{Steps: steps, Tokens: min(tokens, steps*maxTokens)}
}
