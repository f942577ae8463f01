package sweep

import (
	"fmt"
	"reflect"
	"slices"
	"testing"

	"atoll/optimizer/outer"
	"atoll/tensor"
)

// Matrices are in so many pieces, gains in one, and fragments have the values that they have without
// pieces.
func TestPlanInPieces(t *testing.T) {
	whole := planInPieces(t, 0)
	if want := outer.NewPlan(tensor.Layout(models["micro"].Specs()), len(whole)); !reflect.DeepEqual(whole, want) {
		t.Errorf("without pieces the plan is %v, want %v", whole, want)
	}
	for _, pieces := range []int{1, 4, 16} {
		cut := planInPieces(t, pieces)
		for p, f := range cut {
			at := 0
			for _, tensor := range whole[p].Tensors {
				parts, matrix := 1, tensor.Len > models["micro"].Hidden
				if matrix {
					parts = pieces
				}
				for i := range parts {
					if got := f.Tensors[at+i]; got.Name != tensor.Name || got.Offset != tensor.Offset+i*tensor.Len/parts || got.Len != tensor.Len/parts {
						t.Errorf("piece %d of %d of %v is %v", i, parts, tensor, got)
					}
				}
				at += parts
			}
			if at != len(f.Tensors) || f.Len != whole[p].Len {
				t.Errorf("%d pieces of %d values in fragment %d, want %d of %d", len(f.Tensors), f.Len, p, at, whole[p].Len)
			}
		}
	}
}

// planInPieces is a plan of micro, whose matrices have multiples of 16 rows.
func planInPieces(t *testing.T, pieces int) outer.Plan {
	t.Helper()
	s := micro(fmt.Sprintf("pieces=%d", pieces))
	b, err := microLab().bench(s, 1)
	if err != nil {
		t.Fatal(err)
	}
	return task{b}.Plan(s.P)
}

// A whole run comes to other bits in pieces, whose norms and distances are their own.
func TestRunInPieces(t *testing.T) {
	set := []string{"clip=1e6", "tokens=1280"}
	whole := play(t, micro(append(set, "pieces=1")...), 1)
	for _, pieces := range []string{"4", "16"} {
		cut := play(t, micro(append(slices.Clone(set), "pieces="+pieces)...), 1)
		if cut.ValBPB == whole.ValBPB && slices.Equal(cut.Curve, whole.Curve) {
			t.Errorf("in %s pieces: %v bits per byte, in one the same", pieces, cut.ValBPB)
		}
	}
}
