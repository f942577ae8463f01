package outer

import (
	"slices"
	"testing"

	"atoll/tensor"

	"pgregory.net/rapid"
)

// Every value is in one fragment, pieces are whole rows, and fragments are about equal where rows
// allow it.
func TestRowPlanCoversEverything(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var specs []tensor.Spec
		for i := range rapid.IntRange(1, 12).Draw(t, "tensors") {
			spec := tensor.Spec{Name: string(rune('a' + i))}
			for range rapid.IntRange(0, 3).Draw(t, "dimensions") {
				spec.Shape = append(spec.Shape, rapid.IntRange(1, 40).Draw(t, "size"))
			}
			specs = append(specs, spec)
		}
		var list []tensor.View
		all, widest := 0, 0
		for _, v := range tensor.Layout(specs) {
			list = append(list, v)
			all += v.Len
			row := v.Len
			if len(v.Shape) > 0 {
				row /= v.Shape[0]
			}
			widest = max(widest, row)
		}
		fragments := rapid.IntRange(1, 6).Draw(t, "fragments")
		plan := NewRowPlan(list, fragments)
		var pieces []Tensor
		for _, f := range plan {
			sum := 0
			for _, p := range f.Tensors {
				sum += p.Len
			}
			if sum != f.Len || f.Len > 2*max((all+fragments-1)/fragments, widest) {
				t.Fatalf("a fragment of %d values, %d in its tensors; all are %d in %d, the widest row has %d", f.Len, sum, all, fragments, widest)
			}
			pieces = append(pieces, f.Tensors...)
		}
		slices.SortFunc(pieces, func(a, b Tensor) int { return a.Offset - b.Offset })
		at := 0
		for _, p := range pieces {
			i := slices.IndexFunc(list, func(m tensor.View) bool { return m.Name == p.Name })
			m := list[i]
			row := m.Len
			if len(m.Shape) > 0 {
				row /= m.Shape[0]
			}
			if p.Offset != at || p.Len%row != 0 || p.Len == 0 {
				t.Fatalf("%+v of %+v begins at %d", p, m, at)
			}
			at += p.Len
		}
		if at != all {
			t.Fatalf("%d of %d values are in the plan", at, all)
		}
	})
}

// The embedding of Qwen 0.5B is larger than what a fragment has, and is cut.
func TestRowPlanCutsAnEmbedding(t *testing.T) {
	list := []tensor.View{{Name: "embed", Shape: []int{151_936, 896}, Len: 151_936 * 896}}
	offset := list[0].Len
	for i := range 24 {
		list = append(list, tensor.View{Name: string(rune('a' + i)), Shape: []int{4864, 896}, Offset: offset, Len: 4864 * 896})
		offset += 4864 * 896
	}
	plan := NewRowPlan(list, 24)
	least, most := plan[0].Len, plan[0].Len
	for _, f := range plan {
		least, most = min(least, f.Len), max(most, f.Len)
	}
	if float64(most) > 1.2*float64(offset)/24 || float64(least) < 0.8*float64(offset)/24 {
		t.Errorf("fragments of %d to %d values, evenly %d", least, most, offset/24)
	}
}
