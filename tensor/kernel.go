package tensor

//go:generate go run ./gen

import (
	"fmt"
	"os"
	"strings"
)

// kernelVariable names the environment variable that forces a kernel, to test or to
// measure the slower ones.
const kernelVariable = "ATOLL_KERNEL"

// kernel is one implementation of every operation. The operations are described
// where the package exports them.
type kernel struct {
	name string
	gemm func(product)

	gemmBF16 func(product)
	nameBF16 string // of gemmBF16

	dot         func(x, y []float32) float64
	axpy        func(alpha float32, x, y []float32)
	scale       func(alpha float32, x []float32)
	max         func(x []float32) float32
	mul         func(dst []float32, alpha float32, x, y []float32)
	addMul      func(dst []float32, alpha float32, x, y []float32)
	softmaxGrad func(d, p []float32, delta, alpha float32)
	rotate      func(x, cos, sin []float32)
	exp         func(dst, x []float32)
	expSum      func(dst, x []float32, shift float32) float32
	swiglu      func(dst, gate, up []float32)
	swigluGrad  func(dGate, dUp, act, dOut, gate, up []float32)
	adamw       func(p, g, m, v []float32, coef *[7]float32)
	adamwBF16   func(p, g []float32, m, v []uint16, coef *[7]float32)

	// The operands of these are full blocks; see wide.go.
	squares     func(sum *[lanes]float64, x []float32)
	distances   func(sum *[lanes]float64, alpha float64, x []float32, y []float64)
	axpyWide    func(alpha float64, x []float32, sum []float64)
	scaleWide   func(alpha float64, x []float64)
	difference  func(dst []float64, x, y []float32)
	moveNarrow  func(dst, x []float32, eta float64, u []float64)
	decayNarrow func(dst []float32, mu float64, x []float32, u []float64)
	narrow      func(dst []float32, x []float64)

	maxBits func(x *Block) uint32
	pack4   func(codes *Codes4, x *Block, inv float32)
	unpack4 func(x *Block, codes *Codes4, scale float32) (zero bool)

	// The operands of these are whole blocks, one or more; see quant.go.
	anyZero4     func(codes []byte) (zero bool)
	squareCodes4 func(sum *[lanes]float64, codes []byte, scales []float32) (zero bool)
	addCodes4    func(sum []float64, alpha float64, codes []byte, scales []float32) (zero bool)

	laneTops func(tops *[TopLanes]uint32, x *TopBlock)
	reach    func(set *TopSet, x *TopBlock, least uint32)

	huff *huffLoops // nil where there are none; see HasHuff
	peak *peakLoop  // nil where there is none; see MultiplyAdds

	peakBF16 *peakLoop // likewise
}

// plainName is the name of the plain loops.
const plainName = "go"

// plain is the judge of the other kernels.
var plain = kernel{
	name: plainName, gemm: gemmPlain, gemmBF16: gemmBF16Plain, nameBF16: plainName,
	dot: dotGo, axpy: axpyGo, scale: scaleGo, max: maxGo,
	mul: mulGo, addMul: addMulGo, softmaxGrad: softmaxGradGo, rotate: rotateGo,
	exp: expGo, expSum: expSumGo, swiglu: swigluGo, swigluGrad: swigluGradGo,
	adamw: adamwGo, adamwBF16: adamwBF16Go,
	squares: squaresGo, distances: distancesGo,
	axpyWide: axpyWideGo, scaleWide: scaleWideGo, difference: differenceGo,
	moveNarrow: moveNarrowGo, decayNarrow: decayNarrowGo, narrow: narrowGo,
	maxBits: maxBitsGo, pack4: pack4Go, unpack4: unpack4Go,
	anyZero4: anyZero4Go, addCodes4: addCodes4Go, squareCodes4: squareCodes4Go,
	laneTops: laneTopsGo, reach: reachGo,
}

// use is the kernel in use. It is chosen once, before main.
var use = mustChoose(os.Getenv(kernelVariable))

// Kernel names the kernel in use: "avx512", "avx2", "neon" or "go".
func Kernel() string { return use.name }

// available lists the kernels that this build and CPU have, the fastest first.
func available() []kernel { return append(fastKernels(), plain) }

// choose returns the kernel of a name, or the fastest for the empty one.
func choose(name string, from []kernel) (kernel, error) {
	names := make([]string, len(from))
	for i, k := range from {
		if name == "" || k.name == name {
			return k, nil
		}
		names[i] = k.name
	}
	return kernel{}, fmt.Errorf("tensor: %s=%s: this build on this CPU has only the kernels %s: choose one of them, or unset the variable",
		kernelVariable, name, strings.Join(names, ", "))
}

// mustChoose panics on a name that choose does not know, instead of running
// another kernel than was asked for.
func mustChoose(name string) kernel {
	k, err := choose(name, available())
	if err != nil {
		panic(err)
	}
	return k
}
