package outer

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"atoll/tensor"
	"pgregory.net/rapid"
)

func TestPlanPutsTheLargestIntoTheSmallest(t *testing.T) {
	plan := NewPlan(toyViews(), 2)
	got := [][]string{}
	for _, f := range plan {
		names := []string{}
		for _, tensor := range f.Tensors {
			names = append(names, tensor.Name)
		}
		got = append(got, names)
	}
	want := [][]string{{"a.weight"}, {"model.embed_tokens.weight", "a.norm", "b.weight"}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestPlanTiesGoByName(t *testing.T) {
	views := tensor.NewSlab([]tensor.Spec{{Name: "b", Shape: []int{3}}, {Name: "a", Shape: []int{3}}}).Views
	plan := NewPlan(views, 2)
	if plan[0].Tensors[0].Name != "a" || plan[1].Tensors[0].Name != "b" {
		t.Errorf("got %v", plan)
	}
}

func TestCheckPlan(t *testing.T) {
	p := toyParams()
	for fragments, valid := range map[int]bool{1: true, 4: true, 5: false} {
		p.Fragments = fragments
		if err := p.CheckPlan(NewPlan(toyViews(), fragments)); (err == nil) != valid {
			t.Errorf("%d fragments of 4 tensors: %v", fragments, err)
		}
	}
	if p.CheckPlan(NewPlan(toyViews(), 2)) == nil {
		t.Error("a plan with another number of fragments passes")
	}
}

// Every value of a model is in exactly one fragment, whatever the order of the views.
func TestPlanPartitionsTheSlab(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		sizes := rapid.SliceOfN(rapid.IntRange(1, 40), 1, 12).Draw(t, "sizes")
		specs := make([]tensor.Spec, len(sizes))
		for i, n := range sizes {
			specs[i] = tensor.Spec{Name: fmt.Sprint("t", i), Shape: []int{n}}
		}
		slab := tensor.NewSlab(specs)
		for i := range slab.Data {
			slab.Data[i] = float32(i + 1)
		}
		fragments := rapid.IntRange(1, len(sizes)).Draw(t, "fragments")
		plan := NewPlan(slab.Views, fragments)
		if shuffled := rapid.Permutation(slab.Views).Draw(t, "order"); !reflect.DeepEqual(plan, NewPlan(shuffled, fragments)) {
			t.Fatal("the plan depends on the order of the views")
		}
		back := make([]float32, len(slab.Data))
		total, largest, smallest := 0, 0, len(slab.Data)
		for _, f := range plan {
			v := make([]float32, f.Len)
			f.Gather(slab.Data, v)
			f.Scatter(v, back)
			total += f.Len
			largest, smallest = max(largest, f.Len), min(smallest, f.Len)
		}
		if total != len(back) || !slices.Equal(back, slab.Data) {
			t.Fatalf("fragments of %d values in all give back %v", total, back)
		}
		if largest-smallest > slices.Max(sizes) {
			t.Fatalf("fragments of %d to %d values with tensors of at most %d", smallest, largest, slices.Max(sizes))
		}
	})
}
