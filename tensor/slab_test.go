package tensor

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// TestSlabViewsTile checks that views of any specs cover the slab in order, without
// gap or overlap, and are found by name.
func TestSlabViewsTile(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var specs []Spec
		for i, shape := range rapid.SliceOfN(rapid.SliceOfN(rapid.IntRange(0, 5), 0, 3), 0, 8).Draw(t, "shapes") {
			specs = append(specs, Spec{Name: string(rune('a' + i)), Shape: shape})
		}
		s := NewSlab(specs)
		offset := 0
		for i, v := range s.Views {
			found, ok := s.View(specs[i].Name)
			if !ok || found.Offset != v.Offset || v.Name != specs[i].Name {
				t.Fatalf("View(%q) = %v, %v, want %v", specs[i].Name, found, ok, v)
			}
			if v.Offset != offset || v.Len != elements(specs[i]) || len(s.Of(v)) != v.Len {
				t.Fatalf("view %v of %v begins not at %d or has a wrong length", v, specs[i], offset)
			}
			offset += v.Len
		}
		if len(s.Data) != offset || len(s.Like().Data) != offset {
			t.Fatalf("slab holds %d values and one like it %d, want %d", len(s.Data), len(s.Like().Data), offset)
		}
	})
}

func TestSlabMemory(t *testing.T) {
	s := NewSlab([]Spec{{"scalar", nil}, {"matrix", []int{2, 3}}})
	matrix, _ := s.View("matrix")
	values := s.Of(matrix)
	values[0] = 7
	if s.Data[1] != 7 {
		t.Error("writing to a view does not write to the slab")
	}
	if _, grown := s.View("vector"); grown {
		t.Error("a view that is not there was found")
	}
	if cap(values) != 6 {
		t.Errorf("appending to a view could overwrite what follows: capacity %d, want 6", cap(values))
	}
	other := s.Like()
	if other.Of(matrix)[0] != 0 {
		t.Error("a slab like another shares its values")
	}
}

func TestSlabRefusesBadSpecs(t *testing.T) {
	for want, specs := range map[string][]Spec{
		`two tensors are named "w"`:                {{"w", nil}, {"w", []int{2}}},
		`tensor "w" has the negative dimension -1`: {{"w", []int{2, -1}}},
	} {
		t.Run(want, func(t *testing.T) {
			defer func() {
				if got, _ := recover().(string); !strings.Contains(got, want) {
					t.Errorf("NewSlab panicked with %q, want it to say %q", got, want)
				}
			}()
			NewSlab(specs)
		})
	}
}
