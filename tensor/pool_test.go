package tensor

import (
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"
)

// TestParallelCallsEachIndexOnce runs loops of any length on pools of any size.
func TestParallelCallsEachIndexOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p := NewPool(rapid.IntRange(1, 5).Draw(t, "threads"))
		defer p.Close()
		for range rapid.IntRange(1, 4).Draw(t, "loops") {
			n := rapid.IntRange(0, 40).Draw(t, "n")
			checkOnce(t, p, n)
		}
	})
}

// fataler is what testing.T and rapid.T share here.
type fataler interface{ Fatalf(string, ...any) }

// checkOnce runs a loop and fails unless each index was seen once. The counts are not
// atomic, so that the race detector sees whether Parallel orders them.
func checkOnce(t fataler, p *Pool, n int) {
	counts := make([]int, n)
	p.Parallel(n, func(i int) { counts[i]++ })
	for i, c := range counts {
		if c != 1 {
			t.Fatalf("index %d of %d was called %d times", i, n, c)
		}
	}
}

// TestParallelNests runs loops inside loops, as a product inside a loop over heads.
func TestParallelNests(t *testing.T) {
	p := NewPool(3)
	defer p.Close()
	var calls atomic.Int64
	p.Parallel(7, func(int) {
		p.Parallel(5, func(int) {
			p.Parallel(3, func(int) { calls.Add(1) })
		})
	})
	if got := calls.Load(); got != 7*5*3 {
		t.Errorf("nested loops made %d calls, want %d", got, 7*5*3)
	}
}

// TestParallelFromManyCallers shares one pool, as several nodes in one process do,
// while its size changes.
func TestParallelFromManyCallers(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var callers sync.WaitGroup
	for caller := range 6 {
		callers.Go(func() {
			for i := range 200 {
				checkOnce(t, p, 1+i%9)
				if i%50 == 0 {
					p.SetThreads(1 + caller%4)
				}
			}
		})
	}
	callers.Wait()
}

// TestParallelUsesItsThreads has two calls wait for each other: alone neither would
// return.
func TestParallelUsesItsThreads(t *testing.T) {
	p := NewPool(2)
	defer p.Close()
	var meeting sync.WaitGroup
	meeting.Add(2)
	p.Parallel(2, func(int) {
		meeting.Done()
		meeting.Wait()
	})
}

func TestPoolStartsWorkersOnce(t *testing.T) {
	p := NewPool(4)
	for range 100 {
		p.Parallel(8, func(int) {})
	}
	if p.workers != 3 {
		t.Errorf("a pool of 4 threads started %d workers, want 3", p.workers)
	}
	p.Close()
}

func TestSetThreads(t *testing.T) {
	p := NewPool(0)
	for _, c := range []struct{ set, want int }{
		{1, 1}, {3, 3}, {0, runtime.GOMAXPROCS(0)}, {-1, runtime.GOMAXPROCS(0)}, {MaxThreads + 1, MaxThreads},
	} {
		p.SetThreads(c.set)
		if got := p.Threads(); got != c.want {
			t.Errorf("after SetThreads(%d) a pool has %d threads, want %d", c.set, got, c.want)
		}
	}
	defer threads(2)()
	if Threads() != 2 {
		t.Errorf("after SetThreads(2) the package has %d threads", Threads())
	}
}
