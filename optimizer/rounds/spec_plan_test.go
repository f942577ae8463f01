package rounds_test

import (
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// published has a learner publish its first delta, as its size is what a plan is made of.
func (r *world) published() outer.Delta {
	d := r.delta(200, 1)
	r.m.SettleDraft(r.now, 0, rounds.OwnDelta{Seq: 1, Delta: d}, nil)
	r.m.HandedOver(r.now, 0, d.ID)
	r.execute()
	return d
}

// specPlan has four learners of a step a second each, whose uplinks carry ten deltas of each
// of them in so many seconds. What is needed decides, within a quarter.
func specPlan(t *testing.T, _ *spectest.Spec) {
	for _, needed := range []int{1, 4, 5, 20, 64, 1000} {
		r := newWorld(t, nil)
		size := float64(r.published().Size)
		all, own := 3*4*size/0.75/float64(needed), size/0.75/float64(needed)
		for name, l := range map[string]rounds.Links{
			"all links": {Steps: 4, Upload: all, Copies: 3, OwnSteps: 1, OwnUpload: all},
			"own link":  {Steps: 4, Upload: 1e9, Copies: 3, OwnSteps: 1, OwnUpload: own},
		} {
			r.now += 1000
			r.m.SetLinks(r.now, l)
			plan, most := r.m.Plan().Steps, 64
			if least := max(r.p.H, min(needed, most)); plan < least || plan > max(least+1, min(needed*5/4+1, most)) {
				t.Errorf("%s: %d steps are needed, %d planned", name, needed, plan)
			}
		}
	}
}
