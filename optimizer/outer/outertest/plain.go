// Package outertest has rules of the outer step under which tests of the cores can tell by hand what a fold comes to.
package outertest

import (
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// Plain are parameters of so many fragments, a budget in tokens and a creation time in Unix milliseconds, that nobody chooses:
// one learner's global parameters are its own, all weights are what deltas claim, and a round needs nobody else.
func Plain(fragments int, budget uint64, createdMs int64) outer.Params {
	p := outer.Spec{
		Fragments: fragments, Codec: codec.Int4, Learners: 1, StepTokens: 1 << 10, Budget: budget, CreatedMs: createdMs, OwnText: true,
	}.Params()
	p.Eta, p.Mu, p.MaxShare, p.Quorum, p.MaxPace = 1, 0, 1, 1, outer.MaxPaceLimit
	p.GraceMinMs, p.GraceMaxMs = 100, 30_000
	return p
}
