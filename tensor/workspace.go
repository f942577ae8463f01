package tensor

import "sync"

// Workspace is memory for what is done often and keeps nothing. Its content is undefined.
type Workspace struct {
	Wide  []float64
	Bytes []byte
}

var workspaces = sync.Pool{New: func() any { return new(Workspace) }}

// Borrow returns a workspace with room for so many values and bytes. Return it when done.
func Borrow(wide, bytes int) *Workspace {
	w := workspaces.Get().(*Workspace)
	w.Wide, w.Bytes = sized(w.Wide, wide), sized(w.Bytes, bytes)
	return w
}

// Return lends the workspace to others, so that it must not be used any more.
func (w *Workspace) Return() { workspaces.Put(w) }

// sized returns a slice of n values: s, if it has room for them.
func sized[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

var sums = sync.Pool{New: func() any { return new(Workspace) }}

// BorrowSums returns a workspace with room for so many values and no bytes. It is apart from those of Borrow, so that small ones for
// each core do not take the place of large ones. Give it to ReturnSums when done.
func BorrowSums(wide int) *Workspace {
	w := sums.Get().(*Workspace)
	w.Wide = sized(w.Wide, wide)
	return w
}

// ReturnSums lends a workspace of BorrowSums to others, so that it must not be used any more.
func ReturnSums(w *Workspace) { sums.Put(w) }
