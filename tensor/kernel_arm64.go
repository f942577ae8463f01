//go:build !purego

package tensor

// fastKernels returns the generated kernel: every arm64 CPU has NEON.
func fastKernels() []kernel {
	return []kernel{{
		name: "neon", gemm: func(p product) { gemmTiled(&tileNEON, p) },
		gemmBF16: gemmBF16Plain, nameBF16: plainName,
		dot: dotNEON, axpy: axpyNEON, scale: scaleNEON, max: maxNEON,
		mul: mulNEON, addMul: addMulNEON, softmaxGrad: softmaxGradNEON, rotate: rotateNEON,
		exp: expNEON, expSum: expSumNEON, swiglu: swigluNEON, swigluGrad: swigluGradNEON,
		adamw: adamwNEON, adamwBF16: adamwBF16Go,
		squares: squaresNEON, distances: distancesNEON,
		axpyWide: axpyWideNEON, scaleWide: scaleWideNEON, difference: differenceNEON,
		moveNarrow: moveNarrowNEON, decayNarrow: decayNarrowNEON, narrow: narrowNEON,
		maxBits: maxBitsGo, pack4: pack4Go, unpack4: unpack4Go,
		anyZero4: anyZero4Go, addCodes4: addCodes4Go, squareCodes4: squareCodes4Go,
		laneTops: laneTopsGo, reach: reachGo,
		peak: &peakLoop{peakNEON, 2 * peakSums * 4},
	}}
}

// tileNEON fills 24 of 32 vector registers with sums.
var tileNEON = tile{rows: 6, cols: 16, byRows: true, multiply: gemmTileNEON, packColumns: packColumnsNEON}

// peakSums is how many registers the generated peak loop adds to in a round.
const peakSums = 24

func whyPlainBF16() string { return "there is no kernel for it on arm64" }
