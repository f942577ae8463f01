package genesis

import (
	"fmt"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// followsByText is J-9.
func followsByText(g Genesis) outer.Params {
	o := g.Outer
	up := func(x, y int) int { return (x + y - 1) / y }
	p := outer.Params{
		Fragments: o.Fragments, H: o.H, Codec: o.Codec, LearnersPerRound: o.LearnersPerRound, Budget: o.Budget, CreatedMs: o.CreatedMs, OwnText: o.OwnText,
		HMin: max(o.H/4, 1), Eta: 1, ClipFactor: 3, RefDecay: 0.9, MaxShare: 0.4, Quorum: 3,
		TokensPerStep: uint64(g.Batch) * uint64(g.Model.Context), MaxTokensPerStep: 64 * uint64(g.Batch) * uint64(g.Model.Context),
		WindowUnion: o.Window, WindowAccept: min(o.Window/2, 16), MinRoundMs: 20, GraceMinMs: 50, GraceMaxMs: max(2*o.SweepMs, 120_000),
	}
	if !o.NoMomentum && o.H > 8 && o.Codec != 5 {
		p.Mu, p.Eta = 0.6, 0.8
	}
	longest := 64
	if o.Codec == 5 {
		longest = 24
	}
	room, rotation := 42, up(o.Learners, o.LearnersPerRound)
	p.MaxPace = min(up(2*max(o.H, longest), o.H), 1024)
	if rotation > 1 {
		p.Eta *= float64(o.LearnersPerRound) / float64(o.Learners)
		p.MaxPace = max(p.MaxPace, 4)
	}
	if rotation > 10 {
		room = 4 * rotation
	}
	p.MaxSteps = uint32(min(max(room*o.H, 1024), 1<<20))
	return p
}

func specFollows(t *testing.T, s *spectest.Spec) {
	g := fixedGenesis()
	p := reflect.ValueOf(g.OuterParams())
	chosen := reflect.ValueOf(g.Outer)
	made := map[string]bool{}
	for _, row := range s.Table(t, "what follows") {
		made[row[0]] = true
		if f := p.FieldByName(row[0]); !f.IsValid() || fmt.Sprint(f.Interface()) != row[2] {
			t.Errorf("%s is %v, by the text %s", row[0], f, row[2])
		}
	}
	for i := range p.NumField() {
		if name := p.Type().Field(i).Name; !made[name] && !chosen.FieldByName(name).IsValid() {
			t.Errorf("the text does not say what makes %s", name)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		g := fixedGenesis()
		g.Batch, g.Outer = rapid.IntRange(1, MaxBatch).Draw(t, "batch"), outer.Spec{
			Fragments: 8, Codec: rapid.SampledFrom([]codec.Kind{codec.F32, codec.Int4, codec.Sparse, codec.Sparse8}).Draw(t, "codec"), H: rapid.IntRange(1, outer.MaxH).Draw(t, "h"),
			NoMomentum: rapid.Bool().Draw(t, "no momentum"), LearnersPerRound: rapid.IntRange(3, outer.MaxLearnersPerRound).Draw(t, "sampled learners"),
			Learners: rapid.IntRange(1, outer.MaxLearners).Draw(t, "learners"), Budget: 1, SweepMs: rapid.Int64Range(0, outer.MaxSweepMs).Draw(t, "sweep"),
			Window: rapid.Uint32Range(outer.LeastWindow, outer.MaxWindow).Draw(t, "window"), OwnText: rapid.Bool().Draw(t, "own"),
		}
		if err := g.Validate(); err != nil {
			t.Fatal(err)
		}
		if got, want := g.OuterParams(), followsByText(g); got != want {
			t.Fatalf("%+v, by the text %+v", got, want)
		}
	})
}

func specInner(t *testing.T, s *spectest.Spec) {
	o, rate := Inner{Optimizer: optimizer.NameMuon}.Optim(), Inner{}.Schedule()
	for _, row := range s.Table(t, "inner") {
		found := false
		for _, v := range []reflect.Value{reflect.ValueOf(o), reflect.ValueOf(o.AdamW), reflect.ValueOf(rate)} {
			if f := v.FieldByName(row[0]); f.IsValid() {
				found = fmt.Sprint(f.Interface()) == row[1] || row[1] == "1e-8" && f.Float() == 1e-8
			}
		}
		if !found {
			t.Errorf("%s is not %s", row[0], row[1])
		}
	}
}
