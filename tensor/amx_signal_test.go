//go:build amd64 && linux && !purego

package tensor

import (
	"io"
	"os"
	"runtime"
	"runtime/pprof"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// TestTilesSurviveSignals multiplies on several goroutines while the collector runs, a profiler counts, and the signal that
// preempts goroutines comes all the time. Every product must have the bits of the first. It takes ten minutes with
// ATOLL_LONG=1.
func TestTilesSurviveSignals(t *testing.T) {
	if amxRefused != "" {
		t.Skip(amxRefused)
	}
	const quick, long = 40, 10 * time.Minute // products of a goroutine, or for how long
	going := func(n int, _ time.Time) bool { return n < quick }
	if os.Getenv("ATOLL_LONG") != "" {
		going = func(_ int, start time.Time) bool { return time.Since(start) < long }
	}
	stop := disturb(t)
	defer stop()
	start := time.Now()
	var products atomic.Int64
	var all sync.WaitGroup
	for _, g := range []gemmCase{{m: 200, n: 100, k: 300}, {transB: true, m: 70, n: 333, k: 64}, {transA: true, acc: true, m: 96, n: 64, k: 1200}, {m: 500, n: 500, k: 500}} {
		all.Go(func() {
			a, b, c := g.operands(1)
			multiply := func() []float32 {
				out := slices.Clone(c.data)
				gemmAMX(product{g.transA, g.transB, g.m, g.n, g.k, a.data, a.ld, b.data, b.ld, out, c.ld, g.acc})
				return out
			}
			want := multiply()
			for n := 0; going(n, start); n++ {
				if products.Add(1); !slices.Equal(multiply(), want) {
					t.Errorf("product %d of %+v has other bits than the first", n, g)
					return
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d products", products.Load())
}

// disturb begins what interrupts goroutines, until the function it returns is called.
func disturb(t *testing.T) (stop func()) {
	if err := pprof.StartCPUProfile(io.Discard); err != nil {
		t.Logf("no profile beside: %v", err)
	}
	done := make(chan struct{})
	var all sync.WaitGroup
	for _, f := range []func(){runtime.GC, func() { _ = syscall.Kill(os.Getpid(), syscall.SIGURG) }} {
		all.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
					f()
					runtime.Gosched()
				}
			}
		})
	}
	return func() {
		close(done)
		all.Wait()
		pprof.StopCPUProfile()
	}
}
