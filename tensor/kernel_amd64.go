//go:build !purego

package tensor

import "github.com/klauspost/cpuid/v2"

// fastKernels returns the generated kernels that this CPU and operating system can
// run.
func fastKernels() []kernel {
	var list []kernel
	if !cpuid.CPU.Supports(cpuid.AVX2, cpuid.FMA3, cpuid.BMI1, cpuid.BMI2) {
		return list
	}
	if cpuid.CPU.Supports(cpuid.AVX512F, cpuid.AVX512DQ, cpuid.AVX512BW, cpuid.AVX512VL) {
		k := kernel{
			name: "avx512", gemm: func(p product) { gemmTiled(&tileAVX512, p) },
			gemmBF16: gemmBF16Plain, nameBF16: plainName,
			dot: dotAVX512, axpy: axpyAVX512, scale: scaleAVX512, max: maxAVX512,
			mul: mulAVX512, addMul: addMulAVX512, softmaxGrad: softmaxGradAVX512, rotate: rotateAVX512,
			exp: expAVX512, expSum: expSumAVX512, swiglu: swigluAVX512, swigluGrad: swigluGradAVX512,
			adamw: adamwAVX512, adamwBF16: adamwBF16AVX512,
			squares: squaresAVX512, distances: distancesAVX512,
			axpyWide: axpyWideAVX512, scaleWide: scaleWideAVX512, difference: differenceAVX512,
			moveNarrow: moveNarrowAVX512, decayNarrow: decayNarrowAVX512, narrow: narrowAVX512,
			maxBits: maxBitsAVX512, pack4: pack4AVX512, unpack4: unpack4AVX512,
			anyZero4: anyZero4AVX512, addCodes4: addCodes4AVX512, squareCodes4: squareCodes4AVX512,
			laneTops: laneTopsAVX512, reach: reachAVX512,
			huff: &huffBMI2,
			peak: &peakLoop{peakAVX512, 2 * peakSums * 16},
		}
		if amxRefused == "" {
			k.gemmBF16, k.nameBF16, k.peakBF16 = gemmAMX, "amx", &peakTiles
		}
		list = append(list, k)
	}
	return append(list, kernel{
		name: "avx2", gemm: func(p product) { gemmTiled(&tileAVX2, p) },
		gemmBF16: gemmBF16Plain, nameBF16: plainName,
		dot: dotAVX2, axpy: axpyAVX2, scale: scaleAVX2, max: maxAVX2,
		mul: mulAVX2, addMul: addMulAVX2, softmaxGrad: softmaxGradAVX2, rotate: rotateAVX2,
		exp: expAVX2, expSum: expSumAVX2, swiglu: swigluAVX2, swigluGrad: swigluGradAVX2,
		adamw: adamwAVX2, adamwBF16: adamwBF16Go, // no processor without AVX-512 multiplies fast in bfloat16
		squares: squaresAVX2, distances: distancesAVX2,
		axpyWide: axpyWideAVX2, scaleWide: scaleWideAVX2, difference: differenceAVX2,
		moveNarrow: moveNarrowAVX2, decayNarrow: decayNarrowAVX2, narrow: narrowAVX2,
		maxBits: maxBitsAVX2, pack4: pack4AVX2, unpack4: unpack4AVX2,
		anyZero4: anyZero4AVX2, addCodes4: addCodes4AVX2, squareCodes4: squareCodes4AVX2,
		laneTops: laneTopsAVX2, reach: reachAVX2,
		huff: &huffBMI2,
		peak: &peakLoop{peakAVX2, 2 * peakSums * 8},
	})
}

// The tiles fill the vector registers with sums: 28 of 32 and 12 of 16.
var (
	tileAVX512 = tile{rows: 14, cols: 32, asksAhead: true, multiply: gemmTileAVX512, packColumns: packColumnsAVX512}
	tileAVX2   = tile{rows: 6, cols: 16, multiply: gemmTileAVX2, packColumns: packColumnsAVX2}
)

var huffBMI2 = huffLoops{encode: huffEncodeBMI2, decode: huffDecodeBMI2}

// peakTiles does four products of 16 x 32 x 16 in a round.
var peakTiles = peakLoop{func(rounds int, _ float32) { peakAMX(rounds) }, 4 * 2 * 16 * 32 * 16}

// peakSums is how many registers the generated peak loops add to in a round.
const peakSums = 12
