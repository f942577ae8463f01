package tensor

import (
	"testing"
	"unsafe"

	"pgregory.net/rapid"
)

// TestWholePages checks that advice covers whole pages of the slice's own memory, and all of them.
func TestWholePages(t *testing.T) {
	const size = 1 << 12
	memory := make([]float32, 8*size)
	rapid.Check(t, func(t *rapid.T) {
		from := rapid.IntRange(0, len(memory)).Draw(t, "from")
		x := memory[from:rapid.IntRange(from, len(memory)).Draw(t, "to")]
		pages := wholePages(x, size)
		if len(pages) == 0 {
			if 4*len(x) >= 2*size {
				t.Fatalf("no page of %d within %d bytes", size, 4*len(x))
			}
			return
		}
		begin, end := uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&x[0]))+4*uintptr(len(x))
		first, last := uintptr(unsafe.Pointer(&pages[0])), uintptr(unsafe.Pointer(&pages[0]))+uintptr(len(pages))
		if first%size != 0 || last%size != 0 || first < begin || last > end {
			t.Fatalf("[%#x, %#x) are not whole pages of [%#x, %#x)", first, last, begin, end)
		}
		if first-begin >= size || end-last >= size {
			t.Fatalf("[%#x, %#x) leave out a page of [%#x, %#x)", first, last, begin, end)
		}
	})
}

// TestFloats writes all values, below a page and beyond several.
func TestFloats(t *testing.T) {
	for _, n := range []int{0, 1, 1000, largePage/4 - 1, largePage + 5} {
		x := Floats(n)
		if len(x) != n {
			t.Fatalf("Floats(%d) has %d values", n, len(x))
		}
		for i, v := range x {
			if v != 0 {
				t.Fatalf("Floats(%d) has %v at %d", n, v, i)
			}
			x[i] = 1
		}
	}
}
