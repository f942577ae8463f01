package fleet

import (
	"fmt"
	"math"
	"time"
)

// Link is what a training method asks of the link between places, in the model of Bandwidth.
type Link struct {
	Method string  `json:"method"`
	Bits   float64 `json:"bits"` // bits/s each way
}

// Need describes a run whose links are to be sized.
type Need struct {
	Params      float64       // of the model
	Step        time.Duration // of a place, without the link
	Learners    int           // places
	H           int           // steps between two exchanges of a part of the model
	Fragments   int           // parts of it
	Utilisation float64       // share of the time that is to go into steps: above 0, below 1
}

// method exchanges bits every few steps, and hides some of that behind steps.
type method struct {
	name  string
	bits  func(Need) float64 // of one exchange that a place receives
	every func(Need) float64 // steps between two exchanges
	hides func(Need) float64 // steps that go on meanwhile
}

// Bits of a value that is exchanged.
const (
	bf16Bits = 16.0
	fp4Bits  = 4.0
)

// forward is the share of a step for which the parts of a model that are not exchanged yet keep a place busy: about the
// forward pass. hidden is that of an all-reduce.
const forward = 1.0 / 3

func (n Need) all(bits float64) float64 { return bits * n.Params }
func (n Need) ring() float64            { return 2 * float64(n.Learners-1) / float64(n.Learners) }
func (n Need) h() float64               { return float64(n.H) }
func (n Need) parts() float64           { return float64(n.Fragments) }

func steps(x float64) func(Need) float64 { return func(Need) float64 { return x } }

// methods are those of arXiv 2501.18512 (Streaming DiLoCo), the decoupled one of arXiv 2604.21428, and atoll.
var methods = []method{
	{"data parallel", func(n Need) float64 { return n.ring() * n.all(bf16Bits) }, steps(1), steps(hidden)},
	{"diloco", func(n Need) float64 { return n.ring() * n.all(bf16Bits) }, Need.h, steps(0)},
	{"streaming", func(n Need) float64 { return n.ring() * n.all(bf16Bits) / n.parts() }, perPart, steps(forward)},
	{"streaming, overlapped", func(n Need) float64 { return n.ring() * n.all(bf16Bits) / n.parts() }, perPart, steps(1)},
	{"streaming, overlapped, 4 bit", func(n Need) float64 { return n.ring() * n.all(fp4Bits) / n.parts() }, perPart, steps(1)},
	{"eager, 4 bit", func(n Need) float64 { return n.ring() * n.all(fp4Bits) }, Need.h, Need.h},
	{"decoupled, a learner, 4 bit", func(n Need) float64 { return n.all(fp4Bits) / n.parts() }, perPart, perPart},
	{"decoupled, the syncer, 4 bit", func(n Need) float64 { return float64(n.Learners) * n.all(fp4Bits) / n.parts() }, perPart, perPart},
	{"atoll, int4", func(n Need) float64 { return atollDeltas(n) * n.all(8*int4Bytes) / n.parts() }, perPart, perPart},
	{"atoll, sparse", func(n Need) float64 { return atollDeltas(n) * n.all(8*sparseBytes) / n.parts() }, perPart, perPart},
}

// sparseBytes are those of a value in a delta of atoll's sparse codec: a twentieth of int4's (testnet/lab/RESULTS.md).
const sparseBytes = int4Bytes / 20

// perPart are the steps between the exchanges of two parts.
func perPart(n Need) float64 { return n.h() / n.parts() }

// atollDeltas are how many a node receives in a round.
func atollDeltas(n Need) float64 { return min(float64(n.Learners-1), learnersPerRound) }

// Bandwidth is the link with which each method spends a share of the time in steps. An exchange goes on beside some steps
// and holds up the others: rate = bits / (hidden steps + what may be lost). A model of the means, without delays.
func (n Need) Bandwidth() ([]Link, error) {
	if err := n.validate(); err != nil {
		return nil, err
	}
	var links []Link
	for _, m := range methods {
		lost := m.every(n) * (1/n.Utilisation - 1)
		links = append(links, Link{m.name, m.bits(n) / (n.Step.Seconds() * (m.hides(n) + lost))})
	}
	return links, nil
}

func (n Need) validate() error {
	switch {
	case !(n.Params >= 1 && n.Params <= 1e15):
		return fmt.Errorf("params is %g; use 1 to 1e15", n.Params)
	case n.Step <= 0:
		return fmt.Errorf("step is %v; use a time above 0", n.Step)
	case n.Learners < 2 || n.Learners > MaxLearners:
		return fmt.Errorf("learners is %d; use 2 to %d", n.Learners, MaxLearners)
	case n.H < 1 || n.H > maxH:
		return fmt.Errorf("h is %d; use 1 to %d", n.H, maxH)
	case n.Fragments < 1 || n.Fragments > n.H:
		return fmt.Errorf("fragments is %d; use 1 to the %d steps of h", n.Fragments, n.H)
	case !(n.Utilisation > 0 && n.Utilisation < 1) || math.IsNaN(n.Utilisation):
		return fmt.Errorf("utilisation is %g; use a share above 0 and below 1", n.Utilisation)
	}
	return nil
}
