package tensor

import "testing"

// Whatever it was lent for before, a workspace has the lengths that were asked for, and no memory that
// another one has.
func TestBorrow(t *testing.T) {
	for _, n := range []int{0, 7, 1000, 3} {
		a, b := Borrow(n, 2*n), Borrow(n, 2*n)
		if len(a.Wide) != n || len(a.Bytes) != 2*n {
			t.Fatalf("%d values and %d bytes, want %d and %d", len(a.Wide), len(a.Bytes), n, 2*n)
		}
		for i := range n {
			a.Wide[i], b.Wide[i] = 1, 2
		}
		for _, x := range a.Wide {
			if x != 1 {
				t.Fatal("two workspaces share memory")
			}
		}
		a.Return()
		b.Return()
	}
}
