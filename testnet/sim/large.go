package sim

import (
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
)

// Large is a world of so many learners for so many rounds, without faults: what
// shows how the cost of a node grows with the run. Neighbours are few, and what
// thousands would compute from the same arguments is computed once.
func Large(nodes int, rounds uint32, seed uint64) Scenario {
	p := ParamsOf(outer.Spec{Fragments: 2, Learners: nodes, Budget: 1 << 50})
	p.GraceMinMs = 400 // covers six hops
	founders := make([]NodeSpec, nodes)
	for i := range founders {
		founders[i].Slow = 1 + i%3 // so that proposals are spread over time
	}
	return Scenario{
		Seed: seed, Params: p, Founders: founders, Link: Link{LatencyMs: 20, JitterMs: 20}, Degree: largeDegree,
		StepMs: largeStepMs, TickMs: largeTickMs, HeartbeatMs: 2000, Rounds: rounds,
		LimitMs: 10 * Time(rounds) * Time(p.H) * largeStepMs, Lean: true,
	}
}

const (
	largeDegree = 6
	largeStepMs = 250 // of the fastest third
	largeTickMs = 100 // a fifth of a real node's: ticks cost in proportion to peers
)

// Small is a world of so many learners with faults, that runs to a budget of
// about so many rounds.
func Small(nodes int, rounds uint32, faults []Fault, seed uint64) Scenario {
	p := Params(3, 0, codec.Int4)
	p.Budget = uint64(nodes) * uint64(rounds) * uint64(p.H) * TokensPerStep
	s := Scenario{
		Seed: seed, Params: p, Founders: make([]NodeSpec, nodes), Link: Link{LatencyMs: 10, JitterMs: 5},
		StepMs: 100, Faults: faults, CalmMs: 1,
	}
	for _, f := range faults {
		s.CalmMs = max(s.CalmMs, f.At+1)
	}
	s.LimitMs = s.CalmMs + exploreLimitMs
	return s
}

// OnLinks is a world of learners over links of their own that runs to a budget of about so
// many rounds. A delta of every fragment has so many bytes, and a learner takes the steps of
// one in everyMs.
func OnLinks(links []Link, rounds uint32, payload float64, everyMs Time, faults []Fault, seed uint64) Scenario {
	s := Small(len(links), rounds, faults, seed)
	s.Link = Link{LatencyMs: 1}
	s.Params = ParamsOf(outer.Spec{
		Fragments: 3, Codec: codec.F32, H: linkedH, Learners: len(links), Budget: uint64(len(links)) * uint64(rounds) * linkedH * TokensPerStep,
	})
	s.StepMs, s.TickMs, s.HeartbeatMs = max(everyMs/linkedH, 1), thinTickMs, thinHeartbeatMs
	s.Scale = min(max(ScaleOf(payload), 1), MaxScale)
	for i, l := range links {
		s.Founders[i].Link = l
	}
	return s
}

// linkedH is the usual number of steps of a delta.
const linkedH = 24
