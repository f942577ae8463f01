package tensor

//go:generate go run ./gen

import "os"

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

// use is the kernel in use. It is chosen once, before main.
var use = mustChoose(os.Getenv(kernelVariable))

// Kernel names the kernel in use: "avx512", "avx2", "neon" or "go".
func Kernel() string { return use.name }
