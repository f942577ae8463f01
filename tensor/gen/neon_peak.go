package main

import "fmt"

// neonPeakSums is more than the multiply-adds that four pipelines have under way, 4 cycles
// each.
const neonPeakSums = 24

func emitNEONPeak(s *neon) {
	s.function("peakNEON", peakSignature, 0, fmt.Sprintf("adds x * x to %d registers of %d sums in each round.", neonPeakSums, quad))
	rounds, x := s.arg("rounds"), s.scalar("x")
	sums := s.vecs(neonPeakSums)
	for _, sum := range sums {
		s.zero(sum)
	}
	s.op("CMP", "$0, %s", rounds)
	s.op("BLE", "done")
	s.label("loop")
	for _, sum := range sums {
		s.multiplyAdd(sum, x, x, 0)
	}
	s.op("SUB", "$1, %s", rounds)
	s.op("CBNZ", "%s, loop", rounds)
	s.label("done")
	s.finish()
}
