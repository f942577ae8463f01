package sim

import (
	"math/rand/v2"
	"slices"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/testnet/fault"
)

// Explore draws a scenario from a seed: 2 to 40 nodes, a third of the time two or three, under the rules that people can
// choose; faults of every kind; guests, revocations, and somebody who lies; and a budget for exploreRounds rounds, or more
// where fewer than exploreLeast close. The same seed gives the same scenario for as long as this function is not changed:
// who changes it first stores what it drew from the seeds of testdata/seeds.txt.
func Explore(seed uint64) Scenario {
	x := explorer{Rand: rand.New(rand.NewPCG(seed, 3))}
	founders := x.founders()
	x.slowLink = max(slowLink, slowLinkEach*float64(len(founders)))
	s := Scenario{
		Seed: seed, Founders: founders, Link: x.network(), StepMs: 100,
		Params: x.params(len(founders)), AtLeast: exploreLeast, Open: x.IntN(8) == 0,
	}
	if len(founders) > defaultDegree || x.IntN(4) == 0 {
		s.Degree = 4 + x.IntN(3)
	}
	x.fill(&s)
	x.company(&s)
	return s
}

// Bounds of what Explore draws.
const (
	exploreMost    = 40
	exploreRounds  = 40      // of the budget
	exploreLeast   = 20      // that close, or the schedule tests too little
	exploreLimitMs = 900_000 // within which a run ends, whatever befell it,
	// or as long as the last learner takes that is left, as slow as faults make it.
	lastLearnerSlow = 8
	recoverMs       = 4_000 // the faults end so long before the budget could be reached

	// A slow link carries so many bytes per millisecond, or so many for each founder.
	// With many nodes heartbeats alone, ten times as frequent as in a real run, come to
	// that.
	slowLink     = 100
	slowLinkEach = 16
)

type explorer struct {
	*rand.Rand
	slowLink float64
}

// founders are few most of the time: what goes wrong between forty nodes mostly goes wrong between four, at a fiftieth of the
// cost, and most runs are of two or three.
func (x explorer) founders() []NodeSpec {
	n := 2 + x.IntN(5)
	switch k := x.IntN(40); {
	case k == 0:
		n = 10 + x.IntN(exploreMost-9)
	case k < 8:
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

// params draw what people choose of a run, and sizes and times: codec and fragments so that payloads travel inside headers in
// some runs and are pulled in others, learners as they are or as somebody thought that they would be.
func (x explorer) params(learners int) outer.Params {
	spec := outer.Spec{
		Fragments: 3, Codec: codec.Int4, H: 4 + x.IntN(5), LearnersPerRound: 3 + x.IntN(14), Learners: learners, OwnText: x.IntN(6) == 0,
	}
	switch x.IntN(4) {
	case 0:
		spec.Fragments, spec.Codec = 1, codec.F32
	case 1:
		spec.Fragments, spec.Codec = 2, codec.F32
	case 2:
		spec.Fragments = 1 + x.IntN(4)
	}
	if x.IntN(2) == 0 {
		spec.H = 9 + x.IntN(8)
	}
	if x.IntN(3) == 0 {
		spec.Learners = 1 + x.IntN(2*learners)
	}
	spec.Budget = uint64(exploreRounds*learners*spec.H) * TokensPerStep
	p := ParamsOf(spec)
	p.HMin = 1 + x.IntN(p.H/2)
	p.WindowAccept = 4 + uint32(x.IntN(13))
	p.WindowUnion = p.WindowAccept + 8 + uint32(x.IntN(80))
	if x.IntN(8) == 0 {
		p.MinRoundMs = 500
	}
	return p
}

func (x explorer) network() Link {
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
	s.LimitMs = span + exploreLimitMs + lastLearnerSlow*s.StepMs*Time(s.Params.Budget/TokensPerStep)
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
	case fault.Network:
		f.Link = x.network()
	case fault.Slow:
		f.Factor = 1 + x.Int64N(lastLearnerSlow)
	case fault.Skew:
		f.Factor = x.Int64N(120_000) - 60_000
	}
	return f
}

// company draws who else takes part: guests, members whom an owner revokes, and somebody who lies.
func (x explorer) company(s *Scenario) {
	members := len(s.Founders)
	if !s.Open && x.IntN(4) == 0 {
		x.guests(s)
		if x.IntN(3) == 0 {
			s.Faults = append(s.Faults, allAway(members, s.CalmMs/3, s.CalmMs*2/3)...)
		}
	}
	if !s.Open && members >= enoughFounders && x.IntN(4) == 0 {
		for range 1 + x.IntN(2) {
			s.Faults = append(s.Faults, Fault{At: 1 + x.Int64N(s.CalmMs), Kind: fault.Revoke, Node: 1 + x.IntN(members-1)})
		}
	}
	if x.IntN(4) == 0 {
		x.liar(s, members)
	}
}

// enoughFounders is how many nodes a world must have of which two are revoked.
const enoughFounders = 6

// guests makes some of the joiners guests, and has some begin with the run. Faults name joiners by their place behind the
// founders, so founders are only added where nobody joins.
func (x explorer) guests(s *Scenario) {
	joins := false
	for i := range s.Faults {
		if s.Faults[i].Kind == fault.Join {
			joins, s.Faults[i].Spec.Guest = true, x.IntN(3) > 0
		}
	}
	if joins {
		return
	}
	for range 1 + x.IntN(4) {
		guest := x.spec(len(s.Founders))
		guest.Guest = true
		s.Founders = append(s.Founders, guest)
	}
}

// allAway kills all members at once, and starts them again later.
func allAway(members int, from, to Time) (faults []Fault) {
	for i := range members {
		faults = append(faults, Fault{At: from, Kind: fault.Kill, Node: i}, Fault{At: to, Kind: fault.Start, Node: i})
	}
	return faults
}

// liar has the last member lie, or the last guest, or a stranger in the place of a member. Nothing befalls it: it is what
// befalls the others.
func (x explorer) liar(s *Scenario, members int) {
	who := members - 1
	liar := &s.Founders[who]
	lies := memberLies
	switch x.IntN(3) {
	case 0:
		lies, liar.Observer, liar.Outsider = strangersLies, true, !s.Open
	case 1:
		if who = len(s.Founders) - 1; s.Founders[who].Guest {
			liar, lies = &s.Founders[who], guestsLies
		}
	}
	liar.Attack = lies[x.IntN(len(lies))]
	liar.Attack.From = x.Int64N(s.CalmMs)
	s.Faults = slices.DeleteFunc(s.Faults, func(f Fault) bool { return f.Node == who })
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
