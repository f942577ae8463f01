package sim

import (
	"math"
	"math/rand/v2"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/testnet/fault"
)

// ExploreThin draws a scenario in which payloads take a good share of what the links carry:
// 3 to 8 nodes, some 16, whose demand is 0.3 to 3 times their uplinks; homes, unequal links,
// links that fall and come back, and few other faults. As with Explore, the same seed gives
// the same scenario for as long as this function is not changed.
func ExploreThin(seed uint64) Scenario {
	x := thinner{rand.New(rand.NewPCG(seed, 4))}
	nodes := x.nodes()
	w := x.world(nodes)
	s := Scenario{
		Seed: seed, Params: w.params(), Founders: make([]NodeSpec, nodes), Link: x.link(w.uplink()),
		Scale: w.scale, Degree: thinDegree, StepMs: w.stepMs, TickMs: thinTickMs, HeartbeatMs: thinHeartbeatMs,
	}
	x.unequal(&s, w)
	x.trouble(&s, w)
	s.LimitMs = s.CalmMs + exploreLimitMs
	s.Fits = fitting(s)
	return s
}

// Bounds of what ExploreThin draws.
const (
	thinMost        = 16
	thinRounds      = 9 // of the budget, where a delta has as many steps as its link wants
	thinHeartbeatMs = 1000
	thinLeast       = 0.3 // demand of uplinks
	thinGreatest    = 3.0
	thinFall        = 20  // so many times thinner a link becomes that falls, and one that is thin
	homeDown        = 5   // so many times wider a home's downlink is
	fills           = 0.7 // share of the uplinks that rounds are to fill
	gossipEach      = 4   // bytes per ms that an uplink has at least, for each node
	thinDegree      = 6   // as gossipsub's mesh
	thinTickMs      = 50
	leastRate       = 125  // bytes per ms of a link: 1 Mbit/s,
	mostRate        = 1250 // and 10 Mbit/s; heartbeats are nearly nothing there
	leastScale      = 10
	mostScale       = 45 // payloads of 76 kB
)

type thinner struct{ *rand.Rand }

// thinWorld is what a schedule is made of.
type thinWorld struct {
	nodes, h, fragments int
	scale               int
	stepMs              Time
	demand              float64 // of an uplink, by deltas of H steps
}

func (x thinner) nodes() int {
	if x.IntN(48) == 0 {
		return thinMost
	}
	return 3 + x.IntN(6)
}

// world draws a rate of links, and payloads that make the demand.
func (x thinner) world(nodes int) thinWorld {
	w := thinWorld{
		nodes: nodes, h: 8 << x.IntN(2), fragments: 1 + x.IntN(3), stepMs: 50 << x.IntN(3),
		demand: thinLeast * math.Pow(thinGreatest/thinLeast, x.Float64()),
	}
	rate := leastRate * math.Pow(mostRate/leastRate, x.Float64())
	bytes := rate * w.demand * w.intervalMs() / float64(nodes-1)
	w.scale = min(max(int(bytes/bytesAt(1)), leastScale), mostScale)
	if up := w.uplink(); up < leastRate { // payloads of that size make a demand in less time
		w.stepMs = max(Time(float64(w.stepMs)*up/leastRate), 1)
	}
	return w
}

// intervalMs is the time between two deltas of H steps.
func (w thinWorld) intervalMs() float64 { return float64(w.h) * float64(w.stepMs) }

// uplink is what makes the demand, in bytes per ms: a delta of every fragment goes to each
// other node.
func (w thinWorld) uplink() float64 {
	return bytesAt(w.scale) * float64(w.nodes-1) / w.intervalMs() / w.demand
}

// thinner is by how much the thinnest uplink may be thinner than the others: it still carries
// each of its deltas once, where they have as many steps as is of use.
func (w thinWorld) thinner() float64 {
	carries := fills * float64(w.params().MostH()) / float64(w.h) / w.demand
	return min(max(carries*float64(w.nodes-1), 1), w.fall())
}

// fall is how many times thinner a link becomes that falls. It still carries gossip: every
// node passes on what the others say.
func (w thinWorld) fall() float64 {
	return min(max(w.uplink()/(gossipEach*float64(w.nodes)), 1), thinFall)
}

// planned is how many steps a delta has that fits.
func (w thinWorld) planned() float64 { return float64(w.h) * max(1, w.demand/fills) }

// spanMs is how long learners take for two thirds of the budget.
func (w thinWorld) spanMs() Time {
	return Time(thinRounds * w.planned() * float64(w.stepMs) * 2 / 3)
}

func (w thinWorld) params() outer.Params {
	s := outer.Spec{Fragments: w.fragments, Codec: codec.F32, H: w.h, Learners: w.nodes}
	s.Budget = uint64(thinRounds*max(1, w.demand/fills)*float64(w.h)) * uint64(w.nodes) * TokensPerStep
	p := ParamsOf(s)
	p.GraceMaxMs = outer.LongGraceMs
	p.WindowAccept = 8
	return p
}

// link is that of all: those at home have more down than up.
func (x thinner) link(up float64) Link {
	l := Link{LatencyMs: 10 + x.Int64N(141), BytesMs: up, DownMs: up}
	l.JitterMs = x.Int64N(l.LatencyMs/2 + 1)
	if x.IntN(3) == 0 {
		l.Loss = 0.001
	}
	if x.IntN(3) == 0 {
		l.DownMs = homeDown * up
	}
	return l
}

// unequal gives some nodes other links and speeds than the rest.
func (x thinner) unequal(s *Scenario, w thinWorld) {
	for i := range s.Founders {
		s.Founders[i].Slow = 1
		if x.IntN(4) == 0 {
			s.Founders[i].Slow = 2
		}
	}
	switch x.IntN(4) {
	case 0: // one uplink far thinner than all others
		s.Founders[x.IntN(len(s.Founders))].Link = Link{BytesMs: s.Link.BytesMs / w.thinner()}
	case 1: // each its own
		for i := range s.Founders {
			wide := 0.5 + 1.5*x.Float64()
			s.Founders[i].Link = Link{BytesMs: wide * s.Link.BytesMs, DownMs: wide * s.Link.DownMs, LatencyMs: 10 + x.Int64N(141)}
		}
	}
}

// trouble draws what happens: most often that links fall and come back.
func (x thinner) trouble(s *Scenario, w thinWorld) {
	span := w.spanMs()
	s.CalmMs = 1
	for range x.IntN(4) {
		at := 1 + x.Int64N(span)
		until := at + 1 + x.Int64N(span/2)
		node := 1 + x.IntN(len(s.Founders)-1)
		switch x.IntN(8) {
		case 0:
			s.Faults = append(s.Faults, Fault{At: at, Kind: fault.Kill, Node: node}, Fault{At: until, Kind: fault.Start, Node: node})
		case 1:
			s.Faults = append(s.Faults, Fault{At: at, Kind: fault.Join})
		case 2:
			s.Faults = append(s.Faults, Fault{At: at, Kind: fault.Leave, Node: node})
		default:
			fallen := Link{BytesMs: s.Link.BytesMs / w.fall(), DownMs: s.Link.DownMs / w.fall()}
			s.Faults = append(s.Faults, Fault{At: at, Kind: fault.Link, Node: node, Link: fallen}, Fault{At: until, Kind: fault.Link, Node: node})
		}
		s.CalmMs = max(s.CalmMs, until)
	}
}
