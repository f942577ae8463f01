// Package lockstep is what data parallelism and DiLoCo compute, without how vectors travel
// between members. It says how long a round is, which rate each of its steps has, and what
// a ring all-reduce takes. It takes the outer step. Package baseline does it between real
// processes, package sweep in virtual time.
//
// All members of a round contribute equally: as many steps of as many tokens each.
package lockstep

import (
	"fmt"
	"math"

	"atoll/optimizer"
	"atoll/optimizer/trainer"
	"atoll/tensor"
)

// Run is what stays the same in all rounds of a run.
type Run struct {
	Budget     uint64 // tokens of all members together
	StepTokens uint64 // of one step of one member
	H          int    // steps of a round: 1 for data parallelism
	Schedule   optimizer.Schedule
}

// Steps is how many steps each member makes in the round that begins after so many tokens: H,
// or what is left of the budget, and at least one.
func (r Run) Steps(from uint64, members int) uint64 {
	all := r.all(members)
	left := r.Budget - min(r.Budget, from)
	return max(1, min(uint64(r.H), (left+all-1)/all))
}

// Tokens is how many tokens that round is of.
func (r Run) Tokens(from uint64, members int) uint64 { return r.Steps(from, members) * r.all(members) }

// Rate is the learning rate of a step of that round; the first is number 0.
func (r Run) Rate(from uint64, members int, step uint64) float64 {
	return r.Schedule.At(float64(from+step*r.all(members)) / float64(r.Budget))
}

// all is how many tokens one step of every member is of.
func (r Run) all(members int) uint64 { return uint64(members) * r.StepTokens }

// Outer is the state of DiLoCo's outer optimizer, Nesterov momentum (A. Douillard et al.,
// DiLoCo, 2023).
type Outer struct {
	Eta, Mu          float64
	Global, Momentum []float32 // of the same length
}

// NewOuter begins at these global parameters, and keeps the slice.
func NewOuter(eta, mu float64, global []float32) *Outer {
	return &Outer{Eta: eta, Mu: mu, Global: global, Momentum: make([]float32, len(global))}
}

// Progress sets dst to how far local parameters are from the global ones.
func (o *Outer) Progress(dst, local []float32) {
	for i, x := range local {
		dst[i] = x - o.Global[i]
	}
}

// stepLen is how many values are stepped before the next: few enough to stay in the first
// cache.
const stepLen = 1 << 11

// Step takes the outer step along the members' mean progress u: m = mu m + u, A += eta (u + mu m).
// mean sets u to the part of the progress that begins at a value. After an error the state is of
// no use.
func (o *Outer) Step(mean func(at int, u []float64)) error {
	var buffer [stepLen]float64
	for at := 0; at < len(o.Global); at += stepLen {
		end := min(at+stepLen, len(o.Global))
		u, m, a := buffer[:end-at], o.Momentum[at:end], o.Global[at:end]
		mean(at, u)
		tensor.DecayNarrow(m, o.Mu, m, u)
		tensor.AxpyWide(o.Mu, m, u)
		tensor.MoveNarrow(a, a, o.Eta, u)
		for i, x := range a {
			if !(x > -math.MaxFloat32 && x < math.MaxFloat32) {
				return fmt.Errorf("outer step: value %d is %v: %w", at+i, x, trainer.ErrDiverged)
			}
		}
	}
	return nil
}

// BytesPerValue is what a ring all-reduce sends of each value: bfloat16.
const BytesPerValue = 2

// RingBytes is what all members together receive when a ring all-reduce sums so many values.
func RingBytes(members, values int) float64 {
	return 2 * float64(members-1) * float64(values) * BytesPerValue
}
