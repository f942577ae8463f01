//go:build !purego

package tensor

import "github.com/klauspost/cpuid/v2"

// fastKernels returns the generated kernels that this CPU and operating system can
// run.
func fastKernels() []kernel {
	var list []kernel
	if !cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3) {
		return list
	}
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512DQ) {
		list = append(list, kernel{
			name: "avx512", gemm: func(p product) { gemmTiled(&tileAVX512, p) },
			dot: dotAVX512, axpy: axpyAVX512, scale: scaleAVX512, max: maxAVX512,
			mul: mulAVX512, addMul: addMulAVX512, softmaxGrad: softmaxGradAVX512, rotate: rotateAVX512,
			exp: expAVX512, expSum: expSumAVX512, swiglu: swigluAVX512, swigluGrad: swigluGradAVX512,
			adamw: adamwAVX512,
			peak:  &peakLoop{peakAVX512, 2 * peakSums * 16},
		})
	}
	return append(list, kernel{
		name: "avx2", gemm: func(p product) { gemmTiled(&tileAVX2, p) },
		dot: dotAVX2, axpy: axpyAVX2, scale: scaleAVX2, max: maxAVX2,
		mul: mulAVX2, addMul: addMulAVX2, softmaxGrad: softmaxGradAVX2, rotate: rotateAVX2,
		exp: expAVX2, expSum: expSumAVX2, swiglu: swigluAVX2, swigluGrad: swigluGradAVX2,
		adamw: adamwAVX2,
		peak:  &peakLoop{peakAVX2, 2 * peakSums * 8},
	})
}

// The tiles fill the vector registers with sums: 28 of 32 and 12 of 16.
var (
	tileAVX512 = tile{rows: 14, cols: 32, multiply: gemmTileAVX512, packColumns: packColumnsAVX512}
	tileAVX2   = tile{rows: 6, cols: 16, multiply: gemmTileAVX2, packColumns: packColumnsAVX2}
)

// peakSums is how many registers the generated peak loops add to in a round.
const peakSums = 12
