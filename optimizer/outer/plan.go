package outer

import (
	"fmt"
	"slices"
	"strings"

	"atoll/tensor"
)

// Tensor is one tensor of a fragment: Len values at Offset of the parameter slab.
type Tensor struct {
	Name        string
	Offset, Len int
}

// Fragment is a group of tensors that makes rounds together. Its vectors hold the
// tensors one after another, in the order of Tensors.
type Fragment struct {
	Tensors []Tensor // by Offset
	Len     int      // values in all
}

// Plan is the fragments of a model. Each tensor is in exactly one.
type Plan []Fragment

// NewPlan spreads tensors over fragments of about equal size: largest tensor first into
// the smallest fragment so far, ties by name and by the lower fragment. It depends on names and
// sizes alone, not on the order of views.
func NewPlan(views []tensor.View, fragments int) Plan {
	sorted := slices.Clone(views)
	slices.SortFunc(sorted, func(a, b tensor.View) int {
		if a.Len != b.Len {
			return b.Len - a.Len
		}
		return strings.Compare(a.Name, b.Name)
	})
	tensors := make([]Tensor, len(sorted))
	for i, v := range sorted {
		tensors[i] = Tensor{Name: v.Name, Offset: v.Offset, Len: v.Len}
	}
	return spread(tensors, fragments)
}

// spread puts one tensor after the other into the smallest fragment so far.
func spread(tensors []Tensor, fragments int) Plan {
	plan := make(Plan, fragments)
	for _, t := range tensors {
		f := plan.smallest()
		f.Tensors = append(f.Tensors, t)
		f.Len += t.Len
	}
	for _, f := range plan {
		slices.SortFunc(f.Tensors, func(a, b Tensor) int { return a.Offset - b.Offset })
	}
	return plan
}

// piecesInShare is how many of the largest pieces a fragment's even share of values has: with fewer
// fragments would differ by a third of it.
const piecesInShare = 4

// NewRowPlan is NewPlan with pieces: a tensor with more than a quarter of a fragment's even share of values is cut between rows, into the
// fewest pieces of nearly equal rows that have no more than that, or one row. A piece is a tensor of its
// own to the outer step: its norms and distances are the piece's. No loss shows by that, also in 16 pieces
// of 256 values (testnet/lab/RESULTS.md, "Tensors in pieces"). It depends on names, shapes and order alone.
func NewRowPlan(list []tensor.View, fragments int) Plan {
	all := 0
	for _, m := range list {
		all += m.Len
	}
	share := max(1, (all+piecesInShare*fragments-1)/(piecesInShare*fragments))
	var pieces []Tensor
	for _, m := range list {
		pieces = append(pieces, Pieces(m, share)...)
	}
	slices.SortStableFunc(pieces, func(a, b Tensor) int { return b.Len - a.Len })
	return spread(pieces, fragments)
}

// Pieces cuts a tensor between rows into the fewest pieces of at most so many values, or one row.
func Pieces(m tensor.View, most int) (pieces []Tensor) {
	rows := 1
	if len(m.Shape) > 0 {
		rows = max(1, m.Shape[0])
	}
	width := m.Len / rows
	together := max(1, most/width) // rows of a piece, at most
	n := (rows + together - 1) / together
	for i := range n {
		from, to := i*rows/n, (i+1)*rows/n
		pieces = append(pieces, Tensor{Name: m.Name, Offset: m.Offset + from*width, Len: (to - from) * width})
	}
	return pieces
}

// Mean weighs a number of each fragment by its parameters: a step's tokens are in a
// delta of every fragment and count once.
func (plan Plan) Mean(of func(p int) uint64) float64 {
	var sum, params float64
	for p, f := range plan {
		sum += float64(float64(f.Len) * float64(of(p))) // rounded, lest some machines fuse it
		params += float64(f.Len)
	}
	return sum / params
}

func (plan Plan) smallest() *Fragment {
	best := &plan[0]
	for i := range plan {
		if plan[i].Len < best.Len {
			best = &plan[i]
		}
	}
	return best
}

// CheckPlan tells whether a plan suits the parameters: as many fragments, none empty.
func (p Params) CheckPlan(plan Plan) error {
	if len(plan) != p.Fragments {
		return fmt.Errorf("outer: Fragments is %d; the plan has %d", p.Fragments, len(plan))
	}
	for i, f := range plan {
		if f.Len == 0 {
			return fmt.Errorf("outer: Fragments is %d; the model can be cut into %d only, so use that many or fewer", len(plan), i)
		}
	}
	return nil
}

// Gather copies the fragment's values from the parameter slab to dst [Len].
func (f Fragment) Gather(slab, dst []float32) {
	for _, t := range f.Tensors {
		copy(dst[:t.Len], slab[t.Offset:t.Offset+t.Len])
		dst = dst[t.Len:]
	}
}

// Scatter copies src [Len] to the fragment's places in the parameter slab.
func (f Fragment) Scatter(src, slab []float32) {
	for _, t := range f.Tensors {
		copy(slab[t.Offset:t.Offset+t.Len], src[:t.Len])
		src = src[t.Len:]
	}
}
