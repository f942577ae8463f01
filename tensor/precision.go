package tensor

import "fmt"

// Precision is the arithmetic of matrix products. Operands and results are float32 in memory either way.
type Precision uint8

const (
	// F32 multiplies in float32: [Gemm].
	F32 Precision = iota
	// BF16 rounds both operands to bfloat16, which keeps 8 bits of 24, and adds up in float32.
	BF16
)

// String is the name that flags and documents have.
func (p Precision) String() string {
	switch p {
	case F32:
		return "f32"
	case BF16:
		return "bf16"
	}
	return fmt.Sprintf("Precision(%d)", uint8(p))
}

// MarshalText writes the name.
func (p Precision) MarshalText() ([]byte, error) { return []byte(p.String()), nil }

// UnmarshalText reads a name.
func (p *Precision) UnmarshalText(text []byte) error {
	for _, known := range []Precision{F32, BF16} {
		if known.String() == string(text) {
			*p = known
			return nil
		}
	}
	return fmt.Errorf("tensor: precision %q: use f32 or bf16", text)
}

// Gemm is [Gemm] in this precision. In BF16 values that are denormal count as 0, among the operands, the sums and
// what C held before.
func (p Precision) Gemm(transA, transB bool, m, n, k int, a []float32, lda int, b []float32, ldb int, c []float32, ldc int, acc bool) {
	g := product{transA, transB, m, n, k, a, lda, b, ldb, c, ldc, acc}
	g.check()
	switch {
	case m == 0 || n == 0:
	case k == 0 && !acc:
		for i := range m {
			clear(c[i*ldc:][:n])
		}
	case k == 0:
	case p == BF16:
		use.gemmBF16(g)
	default:
		use.gemm(g)
	}
}

// FastBF16 tells whether products in BF16 use instructions for them, and if not, why. The plain loops do the same far
// slower than in float32: they are there to judge.
func FastBF16() (fast bool, why string) {
	if use.nameBF16 != plainName {
		return true, ""
	}
	return false, whyPlainBF16()
}

// KernelOf names the kernel that multiplies in a precision: [Kernel] for F32, "amx" or "go" for BF16.
func KernelOf(p Precision) string {
	if p == BF16 {
		return use.nameBF16
	}
	return use.name
}
