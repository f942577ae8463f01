// Package shadow computes by other means than a learner what its theta must be. Tests and the simulator check learners
// against it.
package shadow

import (
	"math"
	"slices"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// Shadow keeps what a learner's theta must be for one fragment: theta = A + sum(s q of own deltas not folded) + U, where
// U is what steps changed, less what was published, plus what came back. Where folds come late, theta has
// a smaller share s of what is in flight. With a sparse codec a learner moves half of what it
// could not publish out of theta until the next delta. It knows nothing of Params.Overwrite. A Shadow is not for
// concurrent use.
type Shadow struct {
	fragment outer.Fragment
	sparse   bool // the codec
	anchor   []float32
	u        []float64            // that theta has
	held     []float64            // and does not; 0 but with a sparse codec
	own      map[uint64][]float32 // q of deltas in flight, by seq
	folded   map[uint64][]float32
	steps    uint64             // taken
	left     map[uint64]uint64  // how many when a delta left
	lag      uint64             // steps from when the last delta left that was folded until then
	share    map[uint64]float64 // of q, that theta has while it is in flight
	was, is  []float32          // scratch
	largest  float64            // value that took part so far: what it left of rounding stays
}

// New returns the shadow of a learner that was made with that tip of a fragment, before its first step.
func New(f outer.Fragment, k codec.Kind, tip *outer.Tip) *Shadow {
	return &Shadow{
		fragment: f, sparse: k.Partial(), anchor: tip.Anchor, u: make([]float64, f.Len), held: make([]float64, f.Len),
		own: map[uint64][]float32{}, folded: map[uint64][]float32{}, left: map[uint64]uint64{}, share: map[uint64]float64{},
		was: make([]float32, f.Len), is: make([]float32, f.Len),
	}
}

// Moved takes one step of the trainer, which changed all of theta from before to after.
func (s *Shadow) Moved(before, after []float32) {
	s.steps++
	s.fragment.Gather(before, s.was)
	s.fragment.Gather(after, s.is)
	for i := range s.was {
		s.u[i] += float64(s.is[i]) - float64(s.was[i])
	}
}

// Published takes a delta that left, with the progress q that its payload decodes to. Theta
// has 0.7 of it where the last fold came two steps and an eighth of H late.
func (s *Shadow) Published(p outer.Params, seq uint64, q []float32) {
	s.own[seq], s.left[seq], s.share[seq] = q, s.steps, 1
	if !p.Overwrite && 8*int(s.lag) >= 16+p.H {
		s.share[seq] = 0.7
	}
	for i, x := range q {
		s.u[i] -= float64(x)
		if s.sparse {
			s.held[i] = (s.u[i] + s.held[i]) / 2
			s.u[i] = s.held[i]
		}
	}
}

// Returned takes own deltas that are unpublished again.
func (s *Shadow) Returned(seqs []uint64) {
	for _, seq := range seqs {
		for i, x := range s.own[seq] {
			s.u[i] += float64(x)
		}
		delete(s.own, seq)
	}
}

// Restored takes an own delta that the learner found on its disk.
func (s *Shadow) Restored(seq uint64, q []float32, folded bool) {
	s.share[seq] = 1
	if folded {
		s.folded[seq] = q
		return
	}
	s.own[seq] = q
}

// Adopted takes an adoption. In one that healed the learner could not tell U from damage, and discarded it, but for
// what earlier deltas had no room for.
func (s *Shadow) Adopted(a outer.Adopt, healed bool) {
	for i, seq := range slices.Concat(a.Fold, a.Dropped) { // the newest counts
		if lag := s.steps - s.left[seq]; !healed && (i == 0 || lag < s.lag) {
			s.lag = lag
		}
	}
	s.anchor = a.Tip.Anchor
	if healed {
		copy(s.u, s.held)
		defer copy(s.u, s.held) // of what is returned, too
	}
	for _, seq := range a.Fold {
		s.folded[seq] = s.own[seq]
		delete(s.own, seq)
	}
	for _, seq := range a.Unfold {
		s.own[seq] = s.folded[seq]
		delete(s.folded, seq)
	}
	s.Returned(a.Returned)
	for _, seq := range a.Dropped {
		delete(s.own, seq)
	}
	for _, seq := range slices.Concat(a.Forgotten, a.Discarded) {
		delete(s.folded, seq)
	}
}

// Off is the largest difference between theta, all of it, and its definition, in units of
// the largest value that took part where that is above one: a liar may make values
// large, and float32 rounds in proportion.
func (s *Shadow) Off(theta []float32) float64 {
	s.fragment.Gather(theta, s.is)
	worst, largest := 0.0, 1.0
	for i := range s.is {
		want := float64(s.anchor[i]) + s.u[i]
		largest = max(largest, s.largest, math.Abs(float64(s.anchor[i])), math.Abs(s.u[i]))
		for seq, q := range s.own {
			want += s.share[seq] * float64(q[i])
		}
		worst = max(worst, math.Abs(want-float64(s.is[i])))
	}
	s.largest = largest
	return worst / largest
}
