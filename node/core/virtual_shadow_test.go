package core_test

import (
	"math"
	"slices"

	"atoll/optimizer/outer"
)

// shadow keeps by other means what a learner's theta must be for one fragment:
// theta = A + sum(s q of own deltas not folded) + U, where U is what steps changed,
// less what was published, plus what came back. Where folds come late, theta has
// a smaller share s of what is in flight.
type shadow struct {
	fragment outer.Fragment
	anchor   []float32
	u        []float64
	own      map[uint64][]float32 // q of deltas in flight, by seq
	folded   map[uint64][]float32
	steps    uint64             // taken
	left     map[uint64]uint64  // how many when a delta left
	lag      uint64             // steps from when the last delta left that was folded until then
	share    map[uint64]float64 // of q, that theta has while it is in flight
}

func newShadow(f outer.Fragment, tip *outer.Tip) shadow {
	return shadow{fragment: f, anchor: tip.Anchor, u: make([]float64, f.Len), own: map[uint64][]float32{}, folded: map[uint64][]float32{}, left: map[uint64]uint64{}, share: map[uint64]float64{}}
}

// moved takes one step of the trainer.
func (s *shadow) moved(before, after []float32) {
	s.steps++
	was, is := make([]float32, s.fragment.Len), make([]float32, s.fragment.Len)
	s.fragment.Gather(before, was)
	s.fragment.Gather(after, is)
	for i := range was {
		s.u[i] += float64(is[i]) - float64(was[i])
	}
}

// published takes a delta that left. Theta has 0.7 of it where the last fold came two steps and an eighth of H late.
func (s *shadow) published(p outer.Params, seq uint64, q []float32) {
	s.own[seq], s.left[seq], s.share[seq] = q, s.steps, 1
	if !p.Overwrite && 8*int(s.lag) >= 16+p.H {
		s.share[seq] = 0.7
	}
	for i, x := range q {
		s.u[i] -= float64(x)
	}
}

// returned takes own deltas that are unpublished again.
func (s *shadow) returned(seqs []uint64) {
	for _, seq := range seqs {
		for i, x := range s.own[seq] {
			s.u[i] += float64(x)
		}
		delete(s.own, seq)
	}
}

func (s *shadow) restored(seq uint64, q []float32, folded bool) {
	s.share[seq] = 1
	if folded {
		s.folded[seq] = q
		return
	}
	s.own[seq] = q
}

// adopted takes an adoption, in which the learner healed a damaged anchor or not.
func (s *shadow) adopted(a outer.Adopt, healed bool) {
	for i, seq := range slices.Concat(a.Fold, a.Dropped) { // the newest counts
		if lag := s.steps - s.left[seq]; !healed && (i == 0 || lag < s.lag) {
			s.lag = lag
		}
	}
	s.anchor = a.Tip.Anchor
	if a.Discards() {
		clear(s.u)
		defer clear(s.u) // of what is returned, too
	}
	for _, seq := range a.Fold {
		s.folded[seq] = s.own[seq]
		delete(s.own, seq)
	}
	for _, seq := range a.Unfold {
		s.own[seq] = s.folded[seq]
		delete(s.folded, seq)
	}
	s.returned(a.Returned)
	for _, seq := range a.Dropped {
		delete(s.own, seq)
	}
	for _, seq := range slices.Concat(a.Forgotten, a.Discarded) {
		delete(s.folded, seq)
	}
}

// off is the largest difference between theta and its definition.
func (s *shadow) off(theta []float32) float64 {
	is := make([]float32, s.fragment.Len)
	s.fragment.Gather(theta, is)
	var worst float64
	for i := range is {
		want := float64(s.anchor[i]) + s.u[i]
		for seq, q := range s.own {
			want += s.share[seq] * float64(q[i])
		}
		worst = max(worst, math.Abs(want-float64(is[i])))
	}
	return worst
}
