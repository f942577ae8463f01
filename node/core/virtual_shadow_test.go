package core_test

import (
	"math"
	"slices"

	"atoll/optimizer/outer"
)

// shadow keeps by other means what a learner's theta must be for one fragment:
// theta = A + sum(q of own deltas not folded) + U, where U is what steps changed,
// less what was published, plus what came back. Where folds come late, theta has
// less of what is in flight.
type shadow struct {
	fragment outer.Fragment
	anchor   []float32
	u        []float64
	own      map[uint64][]float32 // q of deltas in flight, by seq
	folded   map[uint64][]float32
	lag      uint64             // steps that the last fold of an own delta took
	pulled   map[uint64]float64 // of q, that theta is without
}

func newShadow(f outer.Fragment, tip *outer.Tip) shadow {
	return shadow{fragment: f, anchor: tip.Anchor, u: make([]float64, f.Len), own: map[uint64][]float32{}, folded: map[uint64][]float32{}, pulled: map[uint64]float64{}}
}

// moved takes one step of the trainer.
func (s *shadow) moved(before, after []float32) {
	was, is := make([]float32, s.fragment.Len), make([]float32, s.fragment.Len)
	s.fragment.Gather(before, was)
	s.fragment.Gather(after, is)
	for i := range was {
		s.u[i] += float64(is[i]) - float64(was[i])
	}
}

func (s *shadow) published(p outer.Params, seq uint64, q []float32) {
	s.own[seq], s.pulled[seq] = q, p.Pull(s.lag)
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
	if folded {
		s.folded[seq] = q
		return
	}
	s.own[seq] = q
}

// adopted takes what a learner did that had so many steps pending.
func (s *shadow) adopted(a outer.Adopt, pending uint32, healed bool) {
	if !healed && len(a.Fold)+len(a.Dropped) > 0 {
		s.lag = uint64(pending)
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
			want += (1 - s.pulled[seq]) * float64(q[i])
		}
		worst = max(worst, math.Abs(want-float64(is[i])))
	}
	return worst
}
