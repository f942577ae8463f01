package outer_test

import (
	"slices"
	"testing"

	"atoll/optimizer/outer"
	"atoll/tensor"
)

// The tips before the first round are the tips of each fragment alone. Later
// changes of the parameters do not change them.
func TestPlanGenesis(t *testing.T) {
	views := []tensor.View{{Name: "a", Len: 3}, {Name: "b", Offset: 3, Len: 2}}
	plan, p := outer.NewPlan(views, 2), outer.Plain(2, 100, 1)
	params := []float32{1, 2, 3, 4, 5}
	tips := plan.Genesis(params, p)
	clear(params)
	for i, want := range [][]float32{{1, 2, 3}, {4, 5}} {
		if alone := outer.Genesis(plan[i], want, p); !slices.Equal(tips[i].Global, want) || tips[i].State != alone.State {
			t.Errorf("fragment %d begins at %v", i, tips[i].Global)
		}
	}
}
