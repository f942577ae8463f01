package tensor

// MultiplyAdds is that of F32.
func MultiplyAdds(rounds int) (flops float64) { return F32.MultiplyAdds(rounds) }

// MultiplyAdds runs rounds of independent multiply-adds on the calling goroutine and
// returns how many floating-point operations they were. Timed, it tells the most that the
// multipliers of one core give, to read the rate of Gemm beside. The generated kernels
// touch nothing but registers; the plain one multiplies matrices that stay in the first
// cache. It cannot be interrupted: let a call take milliseconds.
func (p Precision) MultiplyAdds(rounds int) (flops float64) {
	peak := use.peak
	if p == BF16 {
		peak = use.peakBF16
	}
	if peak == nil {
		return p.smallProducts(rounds)
	}
	peak.run(rounds, 1) // sums of 1 stay ordinary numbers however long they run
	return float64(rounds) * peak.flops
}

// peakLoop is a loop that adds x * x to registers.
type peakLoop struct {
	run   func(rounds int, x float32)
	flops float64 // floating-point operations of a round
}

// smallSide and smallDepth make a product that one thread computes, of operands that take
// 36 KiB.
const (
	smallSide  = 32
	smallDepth = 128
)

// smallProducts is MultiplyAdds for kernels without a loop of its own.
func (p Precision) smallProducts(rounds int) (flops float64) {
	var (
		a [smallSide * smallDepth]float32
		b [smallDepth * smallSide]float32
		c [smallSide * smallSide]float32
	)
	for range rounds {
		p.Gemm(false, false, smallSide, smallSide, smallDepth, a[:], smallDepth, b[:], smallSide, c[:], smallSide, false)
	}
	return float64(rounds) * 2 * smallSide * smallSide * smallDepth
}
