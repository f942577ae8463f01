package outer_test

import (
	"fmt"

	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// Two nodes that fold the same deltas hold the same bits, whatever the order in which
// the deltas came.
func ExampleFold() {
	params := outer.Spec{Fragments: 1, Codec: codec.F32, Learners: 2, StepTokens: 25, Budget: 1_000}.Params()
	slab := tensor.NewSlab([]tensor.Spec{{Name: "w", Shape: []int{4}}})
	plan := outer.NewPlan(slab.Views, params.Fragments)
	tip := outer.Genesis(plan[0], slab.Data, params)

	delta := func(author byte, progress ...float32) outer.Contribution {
		payload, err := codec.Encode(params.Codec, progress)
		if err != nil {
			panic(err)
		}
		d := outer.Delta{
			ID: outer.ID{author}, Author: outer.Author{author}, Round: 1, Steps: 4, Tokens: 100,
			Codec: params.Codec, Size: len(payload),
		}
		return outer.Contribution{Delta: d, Payload: payload}
	}
	a, b := delta(1, 1, 0, 0, 0), delta(2, 0, 1, 0, 0)

	here, _, err := outer.Fold(params, plan[0], tip, 1, []outer.Contribution{a, b})
	there, _, _ := outer.Fold(params, plan[0], tip, 1, []outer.Contribution{b, a})
	fmt.Println(here.Round, here.Tokens, here.State == there.State, err)
	// Output: 1 200 true <nil>
}
