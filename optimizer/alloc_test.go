//go:build !race

package optimizer

import (
	"math"
	"math/rand/v2"
	"runtime"
	"runtime/debug"
	"testing"

	"atoll/tensor"
)

// TestStepsAllocateNothing: at most what loops hand to other threads, no memory
// of the size of a matrix. Under the race detector sync.Pool forgets on purpose,
// so that the test would mean nothing.
func TestStepsAllocateNothing(t *testing.T) {
	const rows, cols = 40, 1700
	blocks := []Block{{Span: Span{0, 900}, Decay: true}, {Span: Span{900, rows * cols}, Rows: rows}, {Span: Span{900 + rows*cols, 60}}}
	n := 960 + rows*cols
	rng := rand.New(rand.NewPCG(1, 1))
	params, grads := normals(rng, n), normals(rng, n)
	muon, work, adam := NewMuonState(blocks, tensor.F32), NewWorkspace(blocks), NewAdamState(n, tensor.F32)
	for name, step := range map[string]func(){
		"muon":  func() { usualMuon.Step(params, grads, blocks, muon, work, 1e-3) },
		"adamw": func() { usual.Step(params, grads, []Span{{0, 900 + rows*cols}}, adam, 1e-3) },
	} {
		step()
		if got := allocatedBy(step); got > 4<<10 {
			t.Errorf("a step of %s allocates %d bytes", name, got)
		}
	}
}

// allocatedBy is the least number of bytes that a call allocates, in the mean
// over a few: a processor that joins in makes its buffers once.
func allocatedBy(f func()) uint64 {
	defer debug.SetGCPercent(debug.SetGCPercent(-1)) // a collection empties pools
	const tries, calls = 3, 3
	var least uint64 = math.MaxUint64
	for range tries {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range calls {
			f()
		}
		runtime.ReadMemStats(&after)
		least = min(least, (after.TotalAlloc-before.TotalAlloc)/calls)
	}
	return least
}

// TestMuonBytes holds the estimates to what is allocated.
func TestMuonBytes(t *testing.T) {
	blocks := []Block{{Span: Span{0, 90_000}, Decay: true}, {Span: Span{90_000, 60_000}, Rows: 600}, {Span: Span{150_000, 50_000}, Rows: 200}}
	var state *MuonState
	var work *Workspace
	for name, c := range map[string]struct {
		made func()
		want int64
	}{
		"state":     {func() { state = NewMuonState(blocks, tensor.F32) }, MuonStateBytes(blocks, tensor.F32)},
		"workspace": {func() { work = NewWorkspace(blocks) }, WorkspaceBytes(blocks)},
	} {
		got := int64(allocatedBy(c.made))
		if got < c.want || got > c.want+c.want/20 {
			t.Errorf("%s: allocated %d bytes, estimated %d", name, got, c.want)
		}
	}
	if !state.Fits(blocks) || len(work.gram) != 200*200 {
		t.Errorf("moments of %d and %d, squares of %d", state.M.Len(), state.V.Len(), len(work.gram))
	}
}
