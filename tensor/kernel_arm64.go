//go:build !purego

package tensor

// fastKernels returns the generated kernel: every arm64 CPU has NEON.
func fastKernels() []kernel {
	return []kernel{{
		name: "neon", gemm: func(p product) { gemmTiled(&tileNEON, p) },
		dot: dotNEON, axpy: axpyNEON, scale: scaleNEON, max: maxNEON,
		mul: mulNEON, addMul: addMulNEON, softmaxGrad: softmaxGradNEON, rotate: rotateNEON,
		exp: expNEON, expSum: expSumNEON, swiglu: swigluNEON, swigluGrad: swigluGradNEON,
		adamw: adamwNEON,
	}}
}

// tileNEON fills 24 of 32 vector registers with sums.
var tileNEON = tile{rows: 6, cols: 16, byRows: true, multiply: gemmTileNEON, packColumns: packColumnsNEON}
