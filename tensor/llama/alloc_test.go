//go:build !race

package llama

import (
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"
)

// TestStepAllocatesLittle: what loops hand to other threads, but no buffers. Under the
// race detector sync.Pool forgets on purpose, so that the test would mean nothing.
func TestStepAllocatesLittle(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties pools
	p, grad, m := NewParams(ragged), NewParams(ragged), NewModel(ragged, 1)
	tokens := randomTokens(rand.New(rand.NewPCG(9, 9)), ragged, 1)
	m.LossGrad(p, grad, tokens)
	const steps, limit = 10, 16 << 10
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range steps {
		m.LossGrad(p, grad, tokens)
	}
	runtime.ReadMemStats(&after)
	if n := (after.TotalAlloc - before.TotalAlloc) / steps; n > limit {
		t.Errorf("a step allocates %d bytes", n)
	}
}
