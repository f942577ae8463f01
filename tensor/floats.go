package tensor

import "unsafe"

// Floats allocates n values of 0, as make does, and asks for large pages behind them where
// the system has them. A pass over parameters or activations, or down a column of them,
// meets new small pages so often that looking them up takes a good share of its time.
func Floats(n int) []float32 { return inLargePages[float32](n) }

// Halves is Floats for n values of 16 bits, which bfloat16 has.
func Halves(n int) []uint16 { return inLargePages[uint16](n) }

func inLargePages[T float32 | uint16](n int) []T {
	x := make([]T, n)
	if inner := wholePages(x, largePage); len(inner) > 0 {
		adviseLarge(inner)
	}
	return x
}

// wholePages returns the pages of a size, a power of two in bytes, that belong to x alone.
func wholePages[T float32 | uint16](x []T, size uintptr) []byte {
	if len(x) == 0 {
		return nil
	}
	bytes := unsafe.Slice((*byte)(unsafe.Pointer(&x[0])), len(x)*int(unsafe.Sizeof(x[0])))
	begin := uintptr(unsafe.Pointer(&bytes[0]))
	skip := -begin & (size - 1)
	if skip >= uintptr(len(bytes)) {
		return nil
	}
	rest := bytes[skip:]
	return rest[:uintptr(len(rest))&^(size-1)]
}

// Bytes is the memory of x, in the order of this machine.
func Bytes(x []float32) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(x))), 4*len(x))
}
