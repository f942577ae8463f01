package sim

import (
	"math/rand/v2"
	"slices"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/testnet/fault"
)

// Explore draws a scenario from a seed: 3 to 40 nodes, faults of every kind, and a
// budget for exploreRounds rounds, or more where fewer than exploreLeast close. The
// same seed gives the same scenario for as long as this function is not changed: who
// changes it first stores what it drew from the seeds of testdata/seeds.txt.
func Explore(seed uint64) Scenario {
	x := explorer{Rand: rand.New(rand.NewPCG(seed, 3))}
	founders := x.founders()
	x.slowLink = max(slowLink, slowLinkEach*float64(len(founders)))
	s := Scenario{
		Seed: seed, Founders: founders, Link: x.weather(), StepMs: 100,
		Params: x.params(len(founders)), AtLeast: exploreLeast,
	}
	if len(founders) > defaultDegree || x.IntN(4) == 0 {
		s.Degree = 4 + x.IntN(3)
	}
	x.fill(&s)
	return s
}

// Bounds of what Explore draws.
const (
	exploreMost    = 40
	exploreRounds  = 40      // of the budget
	exploreLeast   = 20      // that close, or the schedule tests too little
	exploreLimitMs = 900_000 // within which a run ends, whatever befell it
	recoverMs      = 4_000   // the faults end so long before the budget could be reached

	// A slow link carries so many bytes per millisecond, or so many for each founder.
	// With many nodes beats alone, ten times as frequent as in a real run, come to
	// that.
	slowLink     = 100
	slowLinkEach = 16
)

type explorer struct {
	*rand.Rand
	slowLink float64
}

// founders are few most of the time: what goes wrong between forty nodes mostly
// goes wrong between four, at a tenth of the cost.
func (x explorer) founders() []NodeSpec {
	n := 3 + x.IntN(4)
	switch x.IntN(10) {
	case 0:
		n = 10 + x.IntN(exploreMost-9)
	case 1, 2:
		n = 7 + x.IntN(6)
	}
	specs := make([]NodeSpec, n)
	for i := range specs {
		specs[i] = x.spec(i)
	}
	return specs
}

func (x explorer) spec(index int) NodeSpec {
	spec := NodeSpec{Slow: 1 + x.IntN(3)}
	if index > 1 && x.IntN(12) == 0 {
		spec.Observer = true
	}
	if x.IntN(3) == 0 {
		spec.SkewMs = x.Int64N(20_000) - 10_000
		spec.DriftPPM = x.Int64N(20_000) - 10_000
	}
	return spec
}

// params draw codec and fragments so that payloads travel inside headers in some
// runs and are pulled in others.
func (x explorer) params(learners int) outer.Params {
	fragments, kind := 3, codec.Int4
	switch x.IntN(4) {
	case 0:
		fragments, kind = 1, codec.F32
	case 1:
		fragments, kind = 2, codec.F32
	case 2:
		fragments = 1 + x.IntN(4)
	}
	p := Params(fragments, 0, kind)
	p.H = 4 + x.IntN(5)
	p.HMin = 1 + x.IntN(p.H/2)
	p.Budget = uint64(exploreRounds*learners*p.H) * TokensPerStep
	p.Answerers = 3 + x.IntN(14)
	p.Quorum = 1 + x.IntN(3)
	p.WindowAccept = 4 + uint32(x.IntN(13))
	p.WindowUnion = p.WindowAccept + 8 + uint32(x.IntN(80))
	if x.IntN(3) == 0 {
		p.Mu, p.Eta = 0.5, 0.7
	}
	if x.IntN(8) == 0 {
		p.MinRoundMs = 500
	}
	return p
}

func (x explorer) weather() Link {
	latency := []Time{2, 10, 40, 150}[x.IntN(4)]
	return Link{
		LatencyMs: latency, JitterMs: x.Int64N(2*latency + 1),
		Loss: 0.1 * x.Float64(), Duplicate: 0.2 * x.Float64(), BytesMs: []float64{0, 0, 1000, x.slowLink}[x.IntN(4)],
	}
}

// fill draws the faults. They end well before the learners can have made the
// budget, so that the rounds after them are seen as well.
func (x explorer) fill(s *Scenario) {
	span := x.span(s)
	at := Time(0)
	gap := max(span/Time(4+x.IntN(16)), 50)
	for {
		at += 1 + x.Int64N(2*gap)
		if at >= span {
			break
		}
		s.Faults = append(s.Faults, x.fault(at, s))
	}
	s.CalmMs = span
	s.LimitMs = span + exploreLimitMs
}

// span is how long the faults last: between half and all of the time in which the
// learners, undisturbed, make two thirds of the budget.
func (x explorer) span(s *Scenario) Time {
	perMs := 0.0
	for _, spec := range s.Founders {
		if !spec.Observer {
			perMs += TokensPerStep / float64(s.StepMs*Time(max(spec.Slow, 1)))
		}
	}
	whole := Time(float64(s.Params.Budget) / perMs * 2 / 3)
	return max(whole/2+x.Int64N(whole/2+1), recoverMs)
}

func (x explorer) fault(at Time, s *Scenario) Fault {
	joined := 0
	for _, f := range s.Faults {
		if f.Kind == fault.Join {
			joined++
		}
	}
	nodes := len(s.Founders) + joined
	f := Fault{At: at, Kind: drawn[x.IntN(len(drawn))], Node: x.IntN(nodes)}
	switch f.Kind {
	case fault.Lose, fault.Leave: // node 0 stays, so that one has the whole chain
		f.Node = 1 + x.IntN(nodes-1)
	case fault.Join:
		if nodes >= exploreMost {
			f.Kind = fault.Start
		}
		f.Spec = x.spec(nodes)
	case fault.Partition, fault.Cut:
		f.Others = x.some(nodes, f.Node)
	case fault.Weather:
		f.Link = x.weather()
	case fault.Slow:
		f.Factor = 1 + x.Int64N(8)
	case fault.Skew:
		f.Factor = x.Int64N(120_000) - 60_000
	}
	return f
}

// some draws nodes but one: half of them, or a single one.
func (x explorer) some(nodes, but int) []int {
	var out []int
	for i := range nodes {
		if i != but && x.IntN(2) == 0 {
			out = append(out, i)
		}
	}
	if len(out) == 0 {
		out = []int{(but + 1) % nodes}
	}
	if x.IntN(3) == 0 {
		out = out[:1]
	}
	return slices.Clip(out)
}
