package sim

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/codec"
	"atoll/testnet/fault"
)

// Worlds whose end is looked at are short beside their fragments: five rounds of each of 24,
// and steps that take long beside the links.
const (
	endFragments = 24
	endRounds    = 5
)

// manyTensors is a task of as many fragments, with payloads that have to be pulled.
type manyTensors struct{ values int }

func (t manyTensors) Specs() (specs []tensor.Spec) {
	for i := range endFragments {
		specs = append(specs, tensor.Spec{Name: fmt.Sprintf("t%d.weight", i), Shape: []int{t.values / 16, 16}})
	}
	return specs
}

func (t manyTensors) Initial() []float32             { return initial(t.Specs()) }
func (t manyTensors) Tokens() int                    { return TokensPerStep }
func (t manyTensors) Loss(params []float32) float64  { return Loss(params) }
func (t manyTensors) Learned([]float32) error        { return nil }
func (t manyTensors) Trainer(node, life int) Trainer { return &drifting{t.Initial(), node<<8 + life} }

// payload is the bytes of a delta of one fragment, at most.
func (t manyTensors) payload() float64 { return float64(codec.MaxSize(codec.Int4, t.values)) }

// drifting is a trainer that moves a few values in a step: what it learns is not looked at.
type drifting struct {
	params []float32
	at     int
}

func (c *drifting) Params() []float32 { return c.params }

func (c *drifting) Step(func() float64) error {
	c.at++
	for i := c.at * 7919 % 61; i < len(c.params); i += 61 {
		c.params[i] += float32(i%17-8) * 1e-3
	}
	return nil
}

// endWorld is a kind of world whose end is looked at.
type endWorld struct {
	name    string
	nodes   int
	latency Time
	demand  float64 // payload bytes of a run that opens a round after H steps, over what uplinks carry; 0 = no limit
	speeds  []int
	watched bool // by an observer
	faults  func(rng *rand.Rand, whole Time) []Fault
}

var endWorlds = []endWorld{
	{name: "loopback", nodes: 4},
	{name: "40 ms", nodes: 4, latency: 40},
	{name: "150 ms", nodes: 4, latency: 150},
	{name: "a seventh of the link", nodes: 4, latency: 5, demand: 0.15},
	{name: "half of the link, 40 ms", nodes: 4, latency: 40, demand: 0.5},
	{name: "thinner than H, 40 ms", nodes: 4, latency: 40, demand: 1.1},
	{name: "two, half, 40 ms", nodes: 2, latency: 40, demand: 0.5},
	{name: "eight, 40 ms", nodes: 8, latency: 40},
	{name: "speeds 1 to 3, 40 ms", nodes: 6, latency: 40, speeds: []int{1, 2, 3}},
	{name: "an observer, 40 ms", nodes: 4, latency: 40, watched: true},
	{name: "a joiner, 40 ms", nodes: 4, latency: 40, faults: joinsLate},
	{name: "two killed near the end", nodes: 5, latency: 40, faults: killedNearTheEnd},
	{name: "a guest under chaos", nodes: 4, latency: 40, faults: guestUnderChaos},
}

func joinsLate(rng *rand.Rand, whole Time) []Fault {
	return []Fault{{At: part(rng, whole, 0.7), Kind: fault.Join}}
}

func killedNearTheEnd(rng *rand.Rand, whole Time) []Fault {
	return []Fault{{At: part(rng, whole, 0.94), Kind: fault.Lose, Node: 1}, {At: part(rng, whole, 0.97), Kind: fault.Lose, Node: 2}}
}

func guestUnderChaos(rng *rand.Rand, whole Time) []Fault {
	at := func(share float64) Time { return part(rng, whole, share) }
	return []Fault{
		{At: at(0.2), Kind: fault.Join}, {At: at(0.3), Kind: fault.Kill, Node: 1}, {At: at(0.4), Kind: fault.Start, Node: 1},
		{At: at(0.6), Kind: fault.Kill, Node: 2}, {At: at(0.7), Kind: fault.Start, Node: 2}, {At: at(0.85), Kind: fault.Leave, Node: 4},
	}
}

// part is about a share of a time.
func part(rng *rand.Rand, whole Time, share float64) Time {
	return Time((share + 0.04*rng.Float64()) * float64(whole))
}

func (e endWorld) scenario(seed uint64) Scenario {
	rng := rand.New(rand.NewPCG(seed, 77))
	task := manyTensors{8192}
	if e.demand > 0 {
		task.values = 4 * 8192 // headers and heartbeats are a small part of what travels
	}
	p := ParamsOf(outer.Spec{Fragments: endFragments, H: 24, Learners: e.nodes})
	p.GraceMaxMs = outer.LongGraceMs
	p.Budget = uint64(float64(e.nodes*endRounds*p.H)*(0.9+0.3*rng.Float64())) * TokensPerStep
	step := Time(500 + rng.IntN(1500))
	s := Scenario{
		Seed: seed, Params: p, Founders: make([]NodeSpec, e.nodes), Link: Link{LatencyMs: max(e.latency, 1), JitterMs: e.latency / 8},
		StepMs: step, HeartbeatMs: 500, LimitMs: 600_000, Task: task, Lean: true,
	}
	for i := range s.Founders {
		if len(e.speeds) > 0 {
			s.Founders[i].Slow = e.speeds[i%len(e.speeds)]
		}
	}
	if e.watched {
		s.Founders = append(s.Founders, NodeSpec{Observer: true})
	}
	if e.demand > 0 {
		s.Link.BytesMs = task.payload() * float64(e.nodes-1) / float64(step) / e.demand
	}
	if e.faults != nil {
		whole := Time(float64(p.Budget) / TokensPerStep / float64(e.nodes) * float64(step))
		s.Faults, s.Unmended = e.faults(rng, whole), true
		for _, f := range s.Faults {
			s.CalmMs = max(s.CalmMs, f.At+1)
		}
	}
	return s
}

// ended is what the end of a world came to.
type ended struct {
	over, least float64 // tokens beyond the budget, relative: of the mean of all fragments, and of the one with the fewest
	allowed     float64
	idle        float64 // s from a learner's last step until it says that the run is over, of who waited longest
	rest        float64 // s of that since the last step of any
	payloads    float64 // s that the last deltas take, with a few round trips and a heartbeat
	step        float64 // s of a step of the slowest
}

// ending watches who steps, and who says that the run is over.
type ending struct {
	w             *World
	steps         map[*Node]int
	last, settled map[*Node]Time
}

func (x *ending) look() {
	for _, n := range x.w.nodes {
		if n.up && n.Steps != x.steps[n] {
			x.steps[n], x.last[n] = n.Steps, x.w.now
		}
		if n.up && n.finished && x.settled[n] == 0 {
			x.settled[n] = x.w.now
		}
	}
}

func (e endWorld) play(t *testing.T, seed uint64) ended {
	t.Helper()
	s := e.scenario(seed)
	w := newWorld(t, s)
	x := &ending{w, map[*Node]int{}, map[*Node]Time{}, map[*Node]Time{}}
	w.Watch(20, x.look)
	w.Finish()
	out := ended{least: 1, allowed: max(0.01, float64(len(w.nodes)*TokensPerStep)/float64(s.Params.Budget))}
	for p := range w.plan {
		over := float64(w.first().machine.Rounds().Fragment(p).Tip().Tokens)/float64(s.Params.Budget) - 1
		out.over, out.least = out.over+over/float64(len(w.plan)), min(out.least, over)
	}
	var any Time
	for n, at := range x.last {
		if n.up {
			any = max(any, at)
			out.idle = max(out.idle, float64(x.settled[n]-at)/1000)
			out.step = max(out.step, float64(n.stepMs())/1000)
		}
	}
	for n := range x.last {
		out.rest = max(out.rest, float64(x.settled[n]-any)/1000)
	}
	way := 8 * (s.Link.LatencyMs + s.Link.JitterMs)
	if s.Link.BytesMs > 0 {
		way += Time(float64(len(w.nodes)-1) * endFragments * s.Task.(manyTensors).payload() / s.Link.BytesMs)
	}
	out.payloads = float64(way+max(s.HeartbeatMs, w.first().machine.Gossip().HeartbeatPeriodMs())) / 1000
	return out
}

// mostIdle is how many times what the last payloads take learners may stand still at the
// end, beside the steps that some still make.
const mostIdle = 3

// A run ends near its budget, and soon after its last step. ATOLL_SIM_ENDS says of how many
// seeds; -v shows what each kind of world came to, median and worst.
func TestEndsSoonAndNearTheBudget(t *testing.T) {
	if testing.Short() {
		t.Skip("plays long worlds")
	}
	t.Parallel()
	seeds, _ := strconv.Atoi(os.Getenv("ATOLL_SIM_ENDS"))
	var table strings.Builder
	fmt.Fprintf(&table, "%-26s%16s%16s%16s%16s%16s%16s\n", "world", "over %", "least over %", "idle s", "of all s", "payloads s", "idle/payloads")
	for i, e := range endWorlds {
		if !taken(i, 8) {
			continue
		}
		if only := os.Getenv("ATOLL_SIM_END"); only != "" && only != e.name {
			continue
		}
		var all []ended
		for seed := range uint64(max(seeds, 1)) {
			x := e.play(t, seed+1)
			all = append(all, x)
			if x.least > x.allowed || x.least < 0 {
				t.Errorf("%s, seed %d: %.2f %% beyond the budget, %.2f %% are allowed", e.name, seed+1, 100*x.least, 100*x.allowed)
			}
			if x.rest > mostIdle*x.payloads {
				t.Errorf("%s, seed %d: over %.1f s after the last step, the last payloads take %.1f s", e.name, seed+1, x.rest, x.payloads)
			}
		}
		fmt.Fprintf(&table, "%-26s", e.name)
		for _, of := range []func(ended) float64{
			func(x ended) float64 { return 100 * x.over }, func(x ended) float64 { return 100 * x.least }, func(x ended) float64 { return x.idle },
			func(x ended) float64 { return x.rest }, func(x ended) float64 { return x.payloads }, func(x ended) float64 { return x.rest / x.payloads },
		} {
			slices.SortFunc(all, func(a, b ended) int { return int(1e6 * (of(a) - of(b))) })
			fmt.Fprintf(&table, "%9.2f%7.2f", of(all[(len(all)-1)/2]), of(all[len(all)-1]))
		}
		table.WriteByte('\n')
	}
	t.Logf("\n%s", table.String())
}
