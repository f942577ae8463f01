package bench

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// Fold is what it costs to close a round of one fragment.
type Fold struct {
	Bench      string  `json:"bench"` // "fold"
	Deltas     int     `json:"deltas"`
	Params     int     `json:"params"` // of the fragment
	Codec      string  `json:"codec"`
	MsPerFold  float64 `json:"ms_per_fold"` // payloads are there, encoded
	FoldSpread float64 `json:"fold_spread"`
	MsDecode   float64 `json:"ms_decode"`        // each payload once, and nothing else
	OverDecode float64 `json:"fold_over_decode"` // median of the ratios of neighbours
	OverSpread float64 `json:"fold_over_decode_spread"`
}

// Adopt is what it costs a learner to move a fragment to a tip that folded its own delta.
type Adopt struct {
	Bench      string  `json:"bench"` // "adopt"
	Params     int     `json:"params"`
	MsPerAdopt float64 `json:"ms_per_adopt"`
	PerS       float64 `json:"gparam_per_s"`
	Spread     float64 `json:"spread"`
}

// FoldSizes are the numbers of deltas that are folded.
var FoldSizes = []int{1, 4, 8, 16}

// foldTensors square matrices of foldSide make a fragment of a million values.
const (
	foldTensors = 16
	foldSide    = 256
)

// foldRig is a run of one fragment, and the deltas of its first round.
type foldRig struct {
	params outer.Params
	plan   outer.Plan
	tip    *outer.Tip
	set    []outer.Contribution
}

func newFoldRig(deltas int) (*foldRig, error) {
	specs := make([]tensor.Spec, foldTensors)
	for i := range specs {
		specs[i] = tensor.Spec{Name: fmt.Sprint("t", i), Shape: []int{foldSide, foldSide}}
	}
	rng := rand.New(rand.NewPCG(1, 1))
	r := &foldRig{params: outer.Spec{Fragments: 1, Learners: 16, StepTokens: 1 << 10, Budget: 1 << 40}.Params(), plan: outer.NewPlan(tensor.Layout(specs), 1)}
	f := r.plan[0]
	r.tip = outer.Genesis(f, normal(rng, f.Len, 1), r.params)
	for i := range deltas {
		payload, err := codec.Encode(r.params.Codec, normal(rng, f.Len, progress))
		if err != nil {
			return nil, err
		}
		r.set = append(r.set, contribution(r.params, 0, r.tip, i, payload, 24, 24*512))
	}
	return r, nil
}

// contribution is a delta of some author to the round of a fragment after a tip.
func contribution(p outer.Params, fragment int, prev *outer.Tip, author int, payload []byte, steps uint32, tokens uint64) outer.Contribution {
	name := outer.Author(wire.Sum(binary.LittleEndian.AppendUint64(nil, uint64(author))))
	id := outer.ID(wire.Sum(binary.LittleEndian.AppendUint32(name[:], prev.Round)))
	return outer.Contribution{Payload: payload, Delta: outer.Delta{
		ID: id, Author: name, Fragment: fragment, Round: prev.Round + 1, Base: prev.Round, Steps: steps, Tokens: tokens,
		Codec: p.Codec, Size: len(payload),
	}}
}

// Folds measures the fold of some numbers of deltas.
func Folds(ctx context.Context, m Meter, sizes []int) ([]Fold, error) {
	var results []Fold
	for _, n := range sizes {
		m.report(fmt.Sprintf("fold, number of deltas: %d", n))
		r, err := newFoldRig(n)
		if err != nil {
			return nil, fmt.Errorf("fold: %w", err)
		}
		fold, decode, ratio, err := m.alternate(ctx, r.fold, r.decode())
		if err != nil {
			return nil, fmt.Errorf("fold: %w", err)
		}
		results = append(results, Fold{
			Bench: "fold", Deltas: n, Params: r.plan[0].Len, Codec: r.params.Codec.String(),
			MsPerFold: 1000 * fold.Median, FoldSpread: fold.Spread,
			MsDecode: 1000 * decode.Median, OverDecode: ratio.Median, OverSpread: ratio.Spread,
		})
	}
	return results, nil
}

func (r *foldRig) fold() error {
	_, _, err := r.next()
	return err
}

// next folds the round, and makes sure that all of it was folded.
func (r *foldRig) next() (*outer.Tip, outer.Result, error) {
	tip, result, err := outer.Fold(r.params, r.plan[0], r.tip, r.tip.Round+1, r.set)
	if err == nil && len(result.Refused) > 0 {
		err = result.Refused[0].Err
	}
	return tip, result, err
}

// decode decodes each payload once.
func (r *foldRig) decode() func() error {
	values := make([]float32, r.plan[0].Len)
	return func() error {
		for _, c := range r.set {
			if err := codec.Decode(c.Payload, len(values), values); err != nil {
				return err
			}
		}
		return nil
	}
}

// Adoptions measures how a learner that contributed moves to the next tip. It goes there
// and back: either way the global parameters' difference and one payload are added to its parameters.
func Adoptions(ctx context.Context, m Meter) (Adopt, error) {
	m.report("adopt")
	r, err := newFoldRig(1)
	if err != nil {
		return Adopt{}, fmt.Errorf("adopt: %w", err)
	}
	next, _, err := r.next()
	if err != nil {
		return Adopt{}, fmt.Errorf("adopt: %w", err)
	}
	learner, err := r.learner()
	if err != nil {
		return Adopt{}, fmt.Errorf("adopt: %w", err)
	}
	s, err := m.repeat(ctx, func() error {
		if err := learner.Adopt(adoption(next, outer.Folded)); err != nil {
			return err
		}
		return learner.Adopt(adoption(r.tip, outer.Unfolded))
	})
	n := r.plan[0].Len
	return Adopt{
		Bench: "adopt", Params: n, MsPerAdopt: 1000 * s.Median / 2,
		PerS: float64(n) / 1e9 / (s.Median / 2), Spread: s.Spread,
	}, err
}

// learner returns one at the rig's tip with an own delta in flight.
func (r *foldRig) learner() (*outer.Learner, error) {
	read := func(uint64) ([]byte, error) { return r.set[0].Payload, nil }
	l := outer.NewLearner(r.params, r.plan, make([]float32, r.plan[0].Len), []*outer.Tip{r.tip}, read)
	return l, l.Restore(0, []uint64{1}, nil)
}

// adoption is what a tip does to the own delta of that learner.
func adoption(tip *outer.Tip, fate outer.Fate) outer.Adopt {
	own := outer.Own{Seq: 1, Steps: 24, Tokens: 24 * 512}
	return outer.Adopt{Tip: tip, Changes: []outer.Change{{Own: own, Fate: fate}}}
}
