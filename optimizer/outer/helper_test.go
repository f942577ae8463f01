package outer

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/tensor"
	"atoll/tensor/codec"
	"github.com/zeebo/blake3"
	"pgregory.net/rapid"
)

// toyViews is a model small enough for thousands of folds: tensors shorter and longer
// than the lanes of a reduction, and an embedding.
func toyViews() []tensor.View {
	return tensor.NewSlab([]tensor.Spec{
		{Name: "model.embed_tokens.weight", Shape: []int{8, 4}},
		{Name: "a.weight", Shape: []int{20, 15}},
		{Name: "a.norm", Shape: []int{5}},
		{Name: "b.weight", Shape: []int{16}},
	}).Views
}

func toyFragment() Fragment { return NewPlan(toyViews(), 1)[0] }

// Plain are rules under which what a fold comes to can be told by hand, as package outertest has them.
func Plain(fragments int, budget uint64, createdMs int64) Params {
	p := Spec{
		Fragments: fragments, Codec: codec.Int4, Learners: 1, StepTokens: 1 << 10, Budget: budget, CreatedMs: createdMs, OwnText: true,
	}.Params()
	p.Eta, p.Mu, p.MaxShare, p.Quorum, p.MaxPace = 1, 0, 1, 1, MaxPaceLimit
	p.GraceMinMs, p.GraceMaxMs = 100, 30_000
	return p
}

func toyParams() Params {
	p := Plain(1, 1<<40, 0)
	p.Codec = codec.F32
	return p
}

// vector returns n values of about unit size, a function of the seed.
func vector(seed uint64, n int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}

// contribution makes a delta of the round that is valid in p, by the author of that number.
func contribution(t testing.TB, p Params, author byte, round uint32, v []float32) Contribution {
	t.Helper()
	payload, err := codec.Encode(p.Codec, v)
	if err != nil {
		t.Fatal(err)
	}
	d := Delta{
		Author: Author{author}, Round: round, Base: round - 1, Steps: 24, Tokens: 24 * 512,
		Codec: p.Codec, Size: len(payload),
	}
	d.ID = blake3.Sum256(binary.LittleEndian.AppendUint32([]byte{author}, round))
	return Contribution{Delta: d, Payload: payload}
}

// drawSet draws the deltas of a round by up to six authors, of unequal work and length.
func drawSet(t *rapid.T, tb testing.TB, p Params, f Fragment, round uint32) []Contribution {
	n := rapid.IntRange(0, 6).Draw(t, "deltas")
	set := make([]Contribution, n)
	for i := range set {
		v := vector(rapid.Uint64().Draw(t, "values"), f.Len)
		tensor.Scale(rapid.Float32Range(0, 100).Draw(t, "scale"), v)
		set[i] = contribution(tb, p, byte(i), round, v)
		d := &set[i].Delta
		d.Base = round - rapid.Uint32Range(1, round).Draw(t, "stale")
		d.Steps = rapid.Uint32Range(1, p.MaxSteps).Draw(t, "steps")
		d.Tokens = rapid.Uint64Range(1, uint64(d.Steps)*p.MaxTokensPerStep).Draw(t, "tokens")
	}
	return set
}

// drawParams draws the parameters on which the arithmetic of a fold depends.
func drawParams(t *rapid.T) Params {
	p := toyParams()
	p.Codec = rapid.SampledFrom([]codec.Kind{codec.F32, codec.Int4}).Draw(t, "codec")
	p.Mu = rapid.SampledFrom([]float64{0, 0.5, 0.9}).Draw(t, "mu")
	p.Eta = rapid.SampledFrom([]float64{0, 0.7, 1}).Draw(t, "eta")
	if rapid.Bool().Draw(t, "open") {
		p.MaxShare, p.Quorum = 0.5, 3
	}
	return p
}

// mustFold folds the next round of tip and fails on a refusal.
func mustFold(t testing.TB, p Params, f Fragment, tip *Tip, set ...Contribution) *Tip {
	t.Helper()
	next, r, err := Fold(p, f, tip, tip.Round+1, set)
	if err != nil || len(r.Refused) > 0 {
		t.Fatal(err, r.Refused)
	}
	return next
}

func idsOf(set []Contribution) []ID {
	var ids []ID
	for _, c := range set {
		ids = append(ids, c.Delta.ID)
	}
	slices.SortFunc(ids, CompareIDs)
	return ids
}

// norm32 is the Euclidean norm of v.
func norm32(v []float32) float64 {
	var l tensor.Lanes
	l.AddSquares(0, v)
	return math.Sqrt(l.Sum())
}

// changed are drafts that are own deltas with that fate now.
func changed(fate Fate, drafts ...Draft) (changes []Change) {
	for _, d := range drafts {
		changes = append(changes, Change{Own{Seq: d.Seq, Base: d.Base, Steps: d.Steps, Tokens: d.Tokens}, fate})
	}
	return changes
}

// adopt has a learner of one fragment adopt a tip.
func adopt(l *Learner, tip *Tip, changes ...[]Change) error {
	return adoptAt(l, 0, tip, slices.Concat(changes...))
}

func adoptAt(l *Learner, p int, tip *Tip, changes []Change) error {
	err := l.Adopt(Adopt{Fragment: p, Tip: tip, Changes: changes})
	return err
}

// stateOf tells what a learner of one fragment has pending and in flight, on which tip.
func stateOf(l *Learner) string {
	f := &l.frags[0]
	return fmt.Sprintf("%p %+v %d %d", &f.tip.Global[0], f.pending, f.base, l.InFlight(0))
}
