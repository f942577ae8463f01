//go:build !race

package llama

import (
	"math"
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
	const tries, steps, limit = 5, 10, 16 << 10
	var least uint64 = math.MaxUint64 // a processor that joins in makes its buffers once
	for range tries {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range steps {
			m.LossGrad(p, grad, tokens)
		}
		runtime.ReadMemStats(&after)
		least = min(least, (after.TotalAlloc-before.TotalAlloc)/steps)
	}
	if least > limit {
		t.Errorf("a step allocates %d bytes", least)
	}
}
