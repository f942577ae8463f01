package bench

import (
	"context"
	"slices"
	"time"

	"atoll/tensor"
)

// Peak is the most that a machine gives: what rates are read beside.
type Peak struct {
	Bench       string           `json:"bench"` // "peak"
	Threads     int              `json:"threads"`
	Kernel      string           `json:"kernel"`
	Precision   tensor.Precision `json:"precision"`
	GFLOPPerS   float64          `json:"gflop_per_s"`
	CopyGBPerS  float64          `json:"copy_gb_per_s,omitempty"` // read and written, by one copy per thread
	CopyMiBEach int              `json:"copy_mib,omitempty"`      // of one thread
}

const (
	// peakFor is how long a peak must last, and peakMost how long it is looked for. On a
	// busy machine all threads run at once in some of that time.
	peakFor, peakMost = 250 * time.Millisecond, 2 * time.Second
	// peakPart is the time between two looks: several times what it takes to wake threads,
	// and less than a scheduler's turn.
	peakPart = 2 * time.Millisecond
	// peakShares is into how many shares per thread a part is cut, so that a thread that
	// wakes late does less instead of holding up the others.
	peakShares = 4
	// copyMiB is beyond the caches of most processors, for one thread.
	copyMiB = 32
)

// MeasurePeak finds the peak of so many threads in a precision, which it leaves set. It is not below the
// peak of one thread: where other work never lets all of them run at once, one still
// shows.
func MeasurePeak(ctx context.Context, threads int, precision tensor.Precision) (p Peak, err error) {
	tensor.SetThreads(threads)
	p = Peak{Bench: "peak", Threads: tensor.Threads(), Kernel: tensor.KernelOf(precision), Precision: precision}
	rounds, best := peakRounds(precision), 0.0
	for _, n := range slices.Compact([]int{1, p.Threads}) {
		tensor.SetThreads(n)
		shares := peakShares
		if n == 1 {
			shares = 1 // nobody has to wake
		}
		rate, err := bestOf(ctx, func() float64 {
			return overThreads(func(int) float64 { return precision.MultiplyAdds(rounds) }, shares)
		})
		if err != nil {
			return p, err
		}
		best = max(best, rate)
	}
	p.GFLOPPerS = best / 1e9
	return p, nil
}

// MeasureCopy adds the rate of copying to a peak.
func (p *Peak) MeasureCopy(ctx context.Context) error {
	tensor.SetThreads(p.Threads)
	const values = copyMiB << 20 / 4
	from, to := buffers(p.Threads, values), buffers(p.Threads, values)
	best, err := bestOf(ctx, func() float64 {
		return overThreads(func(i int) float64 { return 2 * 4 * float64(copy(to[i], from[i])) }, 1)
	})
	p.CopyGBPerS, p.CopyMiBEach = best/1e9, copyMiB
	return err
}

// buffers allocates and touches.
func buffers(n, values int) [][]float32 {
	b := make([][]float32, n)
	for i := range b {
		b[i] = make([]float32, values)
		for j := range b[i] {
			b[i][j] = 1
		}
	}
	return b
}

// peakRounds is how many rounds of multiply-adds make a share.
func peakRounds(precision tensor.Precision) int {
	rounds := 16
	for {
		start := time.Now()
		precision.MultiplyAdds(rounds)
		if time.Since(start) >= peakPart/peakShares {
			return rounds
		}
		rounds *= 2
	}
}

// overThreads does shares of work per thread and returns what they did together.
func overThreads(work func(i int) float64, shares int) float64 {
	done := make([]float64, shares*tensor.Threads())
	tensor.Parallel(len(done), func(i int) { done[i] = work(i) })
	sum := 0.0
	for _, d := range done {
		sum += d
	}
	return sum
}

// better is by how much a rate must rise to count as a new peak.
const better = 1.01

// bestOf returns the highest rate at which work was done, once that has stood for a while.
// One part goes before.
func bestOf(ctx context.Context, work func() float64) (perSecond float64, err error) {
	work()
	start := time.Now()
	for found := start; time.Since(found) < peakFor && time.Since(start) < peakMost; {
		if err := ctx.Err(); err != nil {
			return 0, err
		}
		began := time.Now()
		did := work()
		rate := did / max(time.Since(began), 1).Seconds()
		if rate > better*perSecond {
			found = time.Now()
		}
		perSecond = max(perSecond, rate)
	}
	return perSecond, nil
}
