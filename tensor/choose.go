package tensor

import (
	"fmt"
	"strings"
)

// kernelVariable names the environment variable that forces a kernel, to test or to
// measure the slower ones.
const kernelVariable = "ATOLL_KERNEL"

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
