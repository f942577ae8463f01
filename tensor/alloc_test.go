//go:build !race

// With the race detector sync.Pool drops what it is given now and then.

package tensor

import (
	"fmt"
	"runtime"
	"testing"
)

// TestGemmAllocatesNothing counts over many products, since a garbage collection
// may empty the pools of buffers.
func TestGemmAllocatesNothing(t *testing.T) {
	const large = 140 // enough for threads, and quick in an emulator
	for _, k := range fastKernels() {
		for _, n := range []int{64, large} {
			t.Run(fmt.Sprintf("%s/%d", k.name, n), func(t *testing.T) {
				defer swap(k)()
				defer threads(2)()
				a, b, c := make([]float32, n*n), make([]float32, n*n), make([]float32, n*n)
				multiply := func() {
					Gemm(true, true, n, n, n, a, n, b, n, c, n, false)
					if k.nameBF16 != plainName {
						BF16.Gemm(true, true, n, n, n, a, n, b, n, c, n, false)
					}
				}
				const warm, runs = 50, 200
				allocations(warm, multiply)
				if got := allocations(runs, multiply); got > runs/2 {
					t.Errorf("%d products of %d x %d x %d allocated %d times", runs, n, n, n, got)
				}
			})
		}
	}
}

// allocations counts the allocations of the process during runs calls of f.
func allocations(runs int, f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range runs {
		f()
	}
	runtime.ReadMemStats(&after)
	return after.Mallocs - before.Mallocs
}
