package sweep

import (
	"bytes"
	"math"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// exact is an aggregation in f32, whose steps nothing clips, and whose deltas nobody judges, as each learner has a text of its own.
func exact(set ...string) Setting {
	return micro(slices.Concat(constant, []string{"arm=aggregated", "codec=f32", "clip=1e6", "eta=1", "mu=0", "p=1", "shards=split"}, set)...)
}

// Folding one delta behind a barrier is what DiLoCo of one does.
func TestAggregatedAloneIsDiLoCo(t *testing.T) {
	a := play(t, exact("m=1"), 1)
	b := play(t, exact("m=1", "arm=diloco"), 1)
	if math.Abs(a.ValBPB-b.ValBPB) > 1e-4 || a.Folded != b.Folded {
		t.Errorf("aggregated comes to %v bits, diloco to %v", a.ValBPB, b.ValBPB)
	}
}

// Deltas merged in groups, also in groups of groups, come to about what all of them do.
func TestGroupsAreAsGoodAsAll(t *testing.T) {
	all := play(t, exact("m=8", "batch=1"), 1)
	for _, groups := range []string{"4", "2:2"} {
		if got := play(t, exact("m=8", "batch=1", "groups="+groups), 1); math.Abs(got.ValBPB-all.ValBPB) > 0.02*all.ValBPB || got.PayloadPerToken == all.PayloadPerToken {
			t.Errorf("groups of %s come to %v bits, all to %v", groups, got.ValBPB, all.ValBPB)
		}
	}
}

// Learners that take turns leave nothing unpublished, and their number decides the deltas of a round.
func TestTurnsFoldEverything(t *testing.T) {
	got := play(t, micro("arm=aggregated", "m=6", "batch=1", "answerers=3", "eta=0.4"), 1)
	if got.Folded != got.Trained || got.Folded < got.Tokens || got.Deltas > 3*got.Rounds || got.Rounds == 0 {
		t.Errorf("%+v", got)
	}
	if got.ValBPB > 6 {
		t.Errorf("%v bits per byte of 8", got.ValBPB)
	}
}

// A minority of liars is found out, in all deltas and in groups of four; so are aggregators.
func TestLiarsOfAnAggregation(t *testing.T) {
	const robust = "arm=aggregated m=16 batch=1 tokens=10240"
	honest := play(t, micro(strings.Fields(robust)...), 1)
	for _, c := range []string{"liars=2", "groups=4 liars=2", "groups=4 liargroups=1"} {
		got := play(t, micro(strings.Fields(robust+" "+c)...), 1)
		if got.ValBPB > 1.1*honest.ValBPB {
			t.Errorf("%s: %v bits; without liars %v", c, got.ValBPB, honest.ValBPB)
		}
	}
	ruined := play(t, micro(strings.Fields(robust+" liars=9")...), 1)
	if ruined.ValBPB < 1.1*honest.ValBPB {
		t.Errorf("with more than half of all lying it comes to %v bits, without liars to %v: lies do nothing", ruined.ValBPB, honest.ValBPB)
	}
}

// someGroup is a group of deltas, and what its aggregators know.
func someGroup(t *rapid.T) (p outer.Params, f outer.Fragment, ref []float32, set []outer.Contribution) {
	kind := rapid.SampledFrom(codec.Kinds()).Draw(t, "codec")
	p = outer.Spec{Fragments: 1, StepTokens: 1 << 10, Budget: 1 << 40}.Params()
	p.Codec = kind
	slab := tensor.NewSlab([]tensor.Spec{{Name: "a", Shape: []int{20, 10}}, {Name: "b", Shape: []int{33}}})
	f = outer.NewPlan(tensor.Layout([]tensor.Spec{{Name: "a", Shape: []int{20, 10}}, {Name: "b", Shape: []int{33}}}), 1)[0]
	ref = []float32{1, 2}
	for i := range rapid.IntRange(1, 9).Draw(t, "members") {
		v := make([]float32, len(slab.Data))
		for j := range v {
			v[j] = rapid.Float32Range(-3, 3).Draw(t, "value")
		}
		payload, err := codec.Encode(kind, v)
		if err != nil {
			t.Fatal(err)
		}
		steps := rapid.Uint32Range(1, 100).Draw(t, "steps")
		set = append(set, contribution(payload, outer.Delta{
			Author: nameOf(0, i), Round: 7, Base: rapid.Uint32Range(0, 6).Draw(t, "base"), Steps: steps, Tokens: uint64(steps) * 64,
		}))
	}
	return p, f, ref, set
}

// Two aggregators make the same bytes of one set, in whichever order they have it, and the weight of these is that of all.
func TestTwoAggregatorsMakeTheSameBytes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, f, ref, set := someGroup(t)
		out := rapid.SampledFrom(codec.Kinds()).Draw(t, "merged codec")
		other := rapid.Permutation(set).Draw(t, "order")
		a, errA := mergeGroup(p, f, ref, []outer.Reputation{}, 7, set, out)
		b, errB := mergeGroup(p, f, slices.Clone(ref), []outer.Reputation{}, 7, other, out)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if !bytes.Equal(a.payload, b.payload) || a.delta != b.delta || !slices.Equal(a.ref, b.ref) || !slices.Equal(a.records, b.records) {
			t.Fatalf("one set has two merged deltas: %+v, %+v", a.delta, b.delta)
		}
		if err := codec.Check(a.payload, f.Len); err != nil {
			t.Fatal(err)
		}
		tokens, steps := 0.0, 0.0
		for _, c := range set {
			tokens, steps = tokens+float64(c.Delta.Tokens), steps+float64(c.Delta.Steps)
		}
		if float64(a.delta.Tokens) != tokens || float64(a.delta.Steps) != steps {
			t.Fatalf("%d tokens in %d steps, want %v in %v", a.delta.Tokens, a.delta.Steps, tokens, steps)
		}
	})
}

// Another set has other bytes: a delta left out is seen.
func TestALeftOutDeltaIsSeen(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		p, f, ref, set := someGroup(t)
		if len(set) < 2 {
			t.Skip("there is none to leave out")
		}
		a, errA := mergeGroup(p, f, ref, []outer.Reputation{}, 7, set, codec.F32)
		b, errB := mergeGroup(p, f, ref, []outer.Reputation{}, 7, set[1:], codec.F32)
		if errA != nil || errB != nil {
			t.Fatal(errA, errB)
		}
		if a.delta == b.delta {
			t.Fatal("the header says the same of both")
		}
	})
}

func TestLieIsTheOppositeTenTimesOver(t *testing.T) {
	payload, err := codec.Encode(codec.F32, []float32{1, -0.5, 0})
	if err != nil {
		t.Fatal(err)
	}
	got := make([]float32, 3)
	if payload, err = lieOf(payload, 3); err == nil {
		err = codec.Decode(payload, 3, got)
	}
	if err != nil || !slices.Equal(got, []float32{-10, 5, 0}) {
		t.Errorf("%v, %v", got, err)
	}
}
