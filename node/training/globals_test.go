package training

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
	"atoll/tensor"
)

// Global parameters come back the same from tips and from a file, wherever the fragments cut the tensors.
func TestGlobals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		specs := make([]tensor.Spec, rapid.IntRange(1, 6).Draw(t, "tensors"))
		for i := range specs {
			specs[i] = tensor.Spec{Name: string(rune('a' + i)), Shape: []int{rapid.IntRange(1, 5).Draw(t, "rows"), rapid.IntRange(1, 9).Draw(t, "columns")}}
		}
		slab := tensor.NewSlab(specs)
		for i := range slab.Data {
			slab.Data[i] = rapid.Float32().Draw(t, "value")
		}
		plan := outer.NewPlan(slab.Views, rapid.IntRange(1, len(specs)).Draw(t, "fragments"))
		held := &globals{plan: plan, tips: plan.Genesis(slab.Data, outertest.Plain(1, 1, 0))}
		var file memoryFile
		if err := held.write(&file); err != nil {
			t.Fatal(err)
		}
		for _, a := range []*globals{held, {plan: plan, file: &file}} {
			values := make([]float32, len(slab.Data))
			if err := a.fill(values); err != nil || !slices.Equal(values, slab.Data) {
				t.Fatalf("%v, %v; want %v", values, err, slab.Data)
			}
			if err := a.close(); err != nil {
				t.Fatal(err)
			}
		}
		if file.bytes != nil {
			t.Error("the file is still open")
		}
	})
}

// memoryFile is a scrap in memory.
type memoryFile struct{ bytes []byte }

func (f *memoryFile) Write(b []byte) (int, error) {
	f.bytes = append(f.bytes, b...)
	return len(b), nil
}

func (f *memoryFile) ReadAt(b []byte, at int64) (int, error) { return copy(b, f.bytes[at:]), nil }

func (f *memoryFile) Close() error {
	f.bytes = nil
	return nil
}
