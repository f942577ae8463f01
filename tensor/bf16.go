package tensor

import "math"

// pairsDepth is how many products of bfloat16 one instruction adds to a sum.
const pairsDepth = 32

// roundBF16 returns the value of bfloat16 that is nearest to x, of two the even one. A denormal x becomes 0.
func roundBF16(x float32) float32 {
	bits := math.Float32bits(x)
	switch {
	case x != x:
		return x
	case bits&0x7f800000 == 0:
		return math.Float32frombits(bits & (1 << 31))
	}
	return ofBitsBF16(bitsBF16(x))
}

// NarrowBF16 sets dst to the nearest values of bfloat16, of two the even one, as their 16 bits. Values must be numbers.
func NarrowBF16(dst []uint16, x []float32) {
	checkLength("NarrowBF16", len(dst), len(x))
	for i, v := range x {
		dst[i] = bitsBF16(v)
	}
}

// WidenBF16 sets dst to values of bfloat16, which are exact in float32.
func WidenBF16(dst []float32, x []uint16) {
	checkLength("WidenBF16", len(dst), len(x))
	for i, v := range x {
		dst[i] = ofBitsBF16(v)
	}
}

func ofBitsBF16(bits uint16) float32 { return math.Float32frombits(uint32(bits) << 16) }

func bitsBF16(x float32) uint16 {
	bits := math.Float32bits(x)
	return uint16((bits + 0x7fff + bits>>16&1) >> 16)
}

// dotPairs is one element of what the instruction TDPBF16PS does (Intel, Architecture Instruction Set Extensions): it adds
// pairsDepth products to c. Products in even and odd places have a sum each, which begins with 0. Each step is
// rounded once, to the nearest, and a denormal result becomes 0. Operands are not denormal.
func dotPairs(c float32, a, b []float32) float32 {
	even, odd := float32(0), float32(0)
	for i := 0; i < pairsDepth; i += 2 {
		even = narrowed(float64(a[i])*float64(b[i]) + float64(even))
		odd = narrowed(float64(a[i+1])*float64(b[i+1]) + float64(odd))
	}
	sum := narrowed(float64(even) + float64(odd))
	return narrowed(float64(flushed(c)) + float64(sum))
}

const (
	leastNormal = 0x1p-126
	// leastRounded is where rounding to 24 bits reaches leastNormal.
	leastRounded = leastNormal - 0x1p-151
)

// narrowed rounds a sum of two float32, or of one and a product of two bfloat16: those have at most 24 bits, so that
// rounding to float64 before does no harm (S. Figueroa, When is double rounding innocuous?, 1995).
func narrowed(x float64) float32 {
	if x > -leastRounded && x < leastRounded {
		return float32(x) * 0 // keeps the sign
	}
	return float32(x)
}

// flushed is x, or 0 if it is denormal.
func flushed(x float32) float32 {
	if x > -leastNormal && x < leastNormal {
		return x * 0
	}
	return x
}

// gemmBF16Plain judges the others: it does for each element of C what they do, in the same order.
func gemmBF16Plain(p product) {
	depth := ceilDiv(p.k, pairsDepth) * pairsDepth
	a := roundedRows(p.a, p.lda, p.transA, p.m, p.k, depth)
	b := roundedRows(p.b, p.ldb, !p.transB, p.n, p.k, depth)
	Parallel(p.m, func(i int) {
		row := p.c[i*p.ldc:][:p.n]
		for j := range row {
			sum := float32(0)
			if p.acc {
				sum = row[j]
			}
			for k := 0; k < depth; k += pairsDepth {
				sum = dotPairs(sum, a[i*depth+k:][:pairsDepth], b[j*depth+k:][:pairsDepth])
			}
			row[j] = sum
		}
	})
}

// roundedRows returns the rows of x, or its columns if columns is set, rounded and each followed by zeros up to depth.
func roundedRows(x []float32, ld int, columns bool, rows, k, depth int) []float32 {
	out := make([]float32, rows*depth)
	row, step := ld, 1
	if columns {
		row, step = 1, ld
	}
	for i := range rows {
		for p := range k {
			out[i*depth+p] = roundBF16(x[i*row+p*step])
		}
	}
	return out
}
