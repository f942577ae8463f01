package main

import (
	"fmt"

	"github.com/mmcloughlin/avo/build"
	"github.com/mmcloughlin/avo/operand"
	"github.com/mmcloughlin/avo/reg"
)

// emitPeak emits loops that only multiply and add: what a core gives at most.
func emitPeak(c *build.Context) {
	for _, s := range []isa{avx512(c), avx2(c)} {
		emitPeakLoop(s)
	}
}

// peakSums is how many sums a peak loop keeps: more than the multiply-adds that two
// pipelines have under way (4 cycles each, 5 on some), and few enough for 16 registers.
const peakSums = 12

const peakSignature = "func(rounds int, x float32)"

func emitPeakLoop(s isa) {
	s.function("peak", peakSignature, fmt.Sprintf("adds x * x to %d registers of %d sums in each round.", peakSums, s.width))
	rounds, x := s.arg("rounds"), s.scalar("x")
	sums := make([]reg.VecVirtual, peakSums)
	for i := range sums {
		sums[i] = s.vec()
		s.zero(sums[i])
	}
	s.TESTQ(rounds, rounds)
	s.JLE(operand.LabelRef("done"))
	s.Label("loop")
	for _, sum := range sums {
		s.VFMADD231PS(x, x, sum)
	}
	s.DECQ(rounds)
	s.JNE(operand.LabelRef("loop"))
	s.Label("done")
	s.finish()
}
