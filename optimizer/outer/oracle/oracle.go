// Package oracle computes what the local parameters of a learner must be, by other means than the learner. Tests and the simulator
// compare the two.
package oracle

import (
	"math"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// Oracle keeps what a learner's local parameters must be for one fragment: theta = A + sum(s q of own deltas not folded) + U. U is
// what steps changed, less what was published, plus what came back. Where folds come late, they have a smaller share s
// of what is in flight. With a sparse codec a learner moves half of what it could not publish out of them until the
// next delta. An Oracle is not for concurrent use.
type Oracle struct {
	fragment outer.Fragment
	sparse   bool // the codec
	global   []float32
	u        []float64            // that the local parameters have
	held     []float64            // and lack; 0 without a sparse codec
	own      map[uint64][]float32 // q of deltas in flight, by seq
	folded   map[uint64][]float32
	steps    uint64             // taken
	left     map[uint64]uint64  // how many when a delta left
	lag      uint64             // steps from when the last delta left that was folded until then
	share    map[uint64]float64 // of q, that the local parameters have while it is in flight
	was, is  []float32          // scratch
	largest  float64            // value that took part so far: what it left of rounding stays
}

// New returns the oracle of a learner that was made with that tip of a fragment, before its first step.
func New(f outer.Fragment, k codec.Kind, tip *outer.Tip) *Oracle {
	return &Oracle{
		fragment: f, sparse: k.Partial(), global: tip.Global, u: make([]float64, f.Len), held: make([]float64, f.Len),
		own: map[uint64][]float32{}, folded: map[uint64][]float32{}, left: map[uint64]uint64{}, share: map[uint64]float64{},
		was: make([]float32, f.Len), is: make([]float32, f.Len),
	}
}

// Moved takes one step of the trainer, which changed all local parameters from before to after.
func (o *Oracle) Moved(before, after []float32) {
	o.steps++
	o.fragment.Gather(before, o.was)
	o.fragment.Gather(after, o.is)
	for i := range o.was {
		o.u[i] += float64(o.is[i]) - float64(o.was[i])
	}
}

// Published takes a delta that left, with the progress q that its payload decodes to. The
// local parameters have 0.7 of it where the last fold came two steps and an eighth of H late.
func (o *Oracle) Published(p outer.Params, seq uint64, q []float32) {
	o.own[seq], o.left[seq], o.share[seq] = q, o.steps, 1
	if 8*int(o.lag) >= 16+p.H {
		o.share[seq] = 0.7
	}
	for i, x := range q {
		o.u[i] -= float64(x)
		if o.sparse {
			o.held[i] = (o.u[i] + o.held[i]) / 2
			o.u[i] = o.held[i]
		}
	}
}

// Returned takes own deltas that are unpublished again.
func (o *Oracle) Returned(seqs []uint64) {
	for _, seq := range seqs {
		for i, x := range o.own[seq] {
			o.u[i] += float64(x)
		}
		delete(o.own, seq)
	}
}

// Restored takes an own delta that the learner found on its disk.
func (o *Oracle) Restored(seq uint64, q []float32, folded bool) {
	o.share[seq] = 1
	if folded {
		o.folded[seq] = q
		return
	}
	o.own[seq] = q
}

// Adopted takes an adoption. A learner that repairs cannot tell U from damage. It discards U and keeps only what
// earlier deltas had no room for.
func (o *Oracle) Adopted(a outer.Adopt, repaired bool) {
	for i, seq := range a.Seqs(outer.Folded, outer.Dropped) { // the newest counts
		if lag := o.steps - o.left[seq]; !repaired && (i == 0 || lag < o.lag) {
			o.lag = lag
		}
	}
	o.global = a.Tip.Global
	if repaired {
		copy(o.u, o.held)
		defer copy(o.u, o.held) // of what is returned, too
	}
	for _, seq := range a.Seqs(outer.Folded) {
		o.folded[seq] = o.own[seq]
		delete(o.own, seq)
	}
	for _, seq := range a.Seqs(outer.Unfolded) {
		o.own[seq] = o.folded[seq]
		delete(o.folded, seq)
	}
	o.Returned(a.Seqs(outer.Returned))
	for _, seq := range a.Seqs(outer.Dropped) {
		delete(o.own, seq)
	}
	for _, seq := range a.Seqs(outer.Forgotten, outer.Discarded) {
		delete(o.folded, seq)
	}
}

// Off is the largest difference between the local parameters and their definition. Where a value
// above one took part, it is in units of the largest: a liar may make values large, and
// float32 rounds in proportion.
func (o *Oracle) Off(local []float32) float64 {
	o.fragment.Gather(local, o.is)
	worst, largest := 0.0, 1.0
	for i := range o.is {
		want := float64(o.global[i]) + o.u[i]
		largest = max(largest, o.largest, math.Abs(float64(o.global[i])), math.Abs(o.u[i]))
		for seq, q := range o.own {
			want += o.share[seq] * float64(q[i])
		}
		worst = max(worst, math.Abs(want-float64(o.is[i])))
	}
	o.largest = largest
	return worst / largest
}
