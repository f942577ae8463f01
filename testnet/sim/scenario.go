package sim

import (
	"cmp"
	"fmt"
	"slices"

	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/testnet/fault"
)

// Time is virtual milliseconds.
type Time = core.Time

// Start is when every world begins: genesis.created. It leaves room for clocks
// that are behind.
const Start Time = 1_000_000_000

// Scenario is one world, as data. The same scenario has the same history.
type Scenario struct {
	Seed        uint64
	Params      outer.Params
	Founders    []NodeSpec // begin the run together, connected
	Link        Link       // of every pair of nodes
	Degree      int        // connections that a node wants; 0 means defaultDegree
	StepMs      Time       // of an inner step of a node of speed 1
	TickMs      Time       // between two ticks of a machine; 0 means as a real node
	HeartbeatMs int64      // shortest heartbeat period
	Faults      []Fault    // by time
	CalmMs      Time       // after the start: what is still disturbed ends then
	Unmended    bool       `json:",omitempty"` // at CalmMs nothing is mended: what is down stays down
	LimitMs     Time       // after the start: by then the run must have ended
	Rounds      uint32     // end when every fragment closed so many; 0 = at the budget
	AtLeast     uint32     `json:",omitempty"` // rounds of a run to the budget: if fewer close it is run again with a larger one
	Policy      Policy     `json:",omitzero"`  // what nodes decide by themselves
	Deltas      int        `json:",omitempty"` // that a fold of one round takes; 0 = as many as SPEC.md says
	Open        bool       `json:",omitempty"` // everybody may contribute; else the run admits by invitation, and all but outsiders are invited
	Lean        bool       // for large worlds: see DESIGN.md, "Scale"
	Trace       bool       `json:"-"` // the result has the life of every delta
	Task        Task       `json:"-"` // what the nodes learn; nil means the quadratic

	PayloadScale float64  `json:",omitempty"` // payloads have so many times their bytes on links, as those of a larger model; 0 = 1
	Fits         []string `json:",omitempty"` // promises about links that are checked as well
	Scale        int      `json:",omitempty"` // the quadratic has so many times as many parameters; 0 means 1
}

// Policy is what the nodes of a world decide by themselves, where it is not what a real
// process decides. Zero is what a process does.
type Policy struct {
	KeepBytes     int64 `json:"keep_bytes,omitempty"`      // payloads that nobody can ask for any more are dropped above; 0 = none are
	LeaveWithinMs Time  `json:"leave_within_ms,omitempty"` // when a leaver goes if nobody takes what it made; 0 = it waits
}

// NodeSpec is what one node differs in.
type NodeSpec struct {
	Slow     int     `json:"slow,omitempty"`      // so many times slower than others; 0 means 1
	Observer bool    `json:"observer,omitempty"`  // holds and serves, never trains
	Outsider bool    `json:"outsider,omitempty"`  // nobody invited it to a run that admits by invitation
	Leaked   bool    `json:"leaked,omitempty"`    // it came by an invite that was meant for one node
	Guest    bool    `json:"guest,omitempty"`     // it came by an invite for guests
	SkewMs   Time    `json:"skew_ms,omitempty"`   // of its clock
	DriftPPM int64   `json:"drift_ppm,omitempty"` // of its clock, parts per million
	Attack   Attack  `json:"attack,omitzero"`     // what it does that no honest node does
	Version  Version `json:"version,omitzero"`    // of its program
	Link     Link    `json:"link,omitzero"`       // its own; a trait that is 0 is as in the links of all
}

// Link is how messages travel. A stream (requests and answers) is reliable while
// the connection is: loss delays it. A gossip message is lost for good.
type Link struct {
	LatencyMs Time    `json:"latency_ms"`          // one way
	JitterMs  Time    `json:"jitter_ms,omitempty"` // up to so much more, which reorders
	Loss      float64 `json:"loss,omitempty"`      // share of the hops
	Duplicate float64 `json:"duplicate,omitempty"` // share of the hops that arrive twice
	BytesMs   float64 `json:"bytes_ms,omitempty"`  // uplink of a node, bytes per ms; 0 = without limit
	DownMs    float64 `json:"down_ms,omitempty"`   // downlink, likewise
}

// Limits and defaults of a scenario.
const (
	defaultDegree      = 12  // as gossip's TargetPeers
	nodeTickMs         = 20  // as node's tickEvery
	defaultHeartbeatMs = 200 // test profile: ten times faster than a real run's
	maxNodes           = 20_000
)

// Kinds are the faults of a world, in the order in which reports list them. One that makes
// no sense when its time comes (a kill of a node that is down) does nothing and is not counted.
var Kinds = []fault.Verb{
	fault.Kill, fault.PowerCut, fault.Lose, fault.Wipe, fault.Start, fault.Pause, fault.Resume, fault.Join, fault.Leave,
	fault.Partition, fault.Merge, fault.Cut, fault.Mend, fault.DiskFull, fault.DiskFree, fault.Network, fault.Slow, fault.Skew,
	fault.Upgrade, fault.Miscalculate, fault.Corrupt, fault.Link, fault.Rest, fault.Work, fault.Revoke,
}

// drawn are the kinds that Explore draws from. Others are not in it: nodes that
// refuse each other never come to one chain, damage breaks promises until it is
// repaired, and ExploreThin draws links.
var drawn = Kinds[:slices.Index(Kinds, fault.Upgrade)]

// Fault is one thing that happens to a world.
type Fault struct {
	At     Time       `json:"at_ms"` // after the start
	Kind   fault.Verb `json:"kind"`
	Node   int        `json:"node,omitempty"`   // founders first, then in order of joining
	Others []int      `json:"others,omitempty"` // of Partition, Cut and Mend
	Parts  [][]int    `json:"parts,omitempty"`  // of Partition: nodes reach each other that share a part; those in none form one more
	Factor int64      `json:"factor,omitempty"` // of Slow: times slower; of Skew: ms, from its next start on; of Corrupt: the fragment; of PowerCut: so many of the newest own deltas are lost, too
	Spec   NodeSpec   `json:"spec,omitzero"`    // of Join; of Upgrade its Version, from its next start on
	Link   Link       `json:"link,omitzero"`    // of Network and Link; none = as at the start
}

// Validate returns an error that names the first field that cannot be.
func (s Scenario) Validate() error {
	s = s.withDefaults()
	switch {
	case len(s.Founders) == 0 || len(s.Founders) > maxNodes:
		return fmt.Errorf("scenario: %d founders; use 1 to %d", len(s.Founders), maxNodes)
	case s.StepMs < 1:
		return fmt.Errorf("scenario: a step of %d ms; use at least 1", s.StepMs)
	case s.Scale < 0 || s.Scale > MaxScale:
		return fmt.Errorf("scenario: a model of scale %d; use 1 to %d", s.Scale, MaxScale)
	case s.LimitMs < 1:
		return fmt.Errorf("scenario: limit of %d ms; use at least 1", s.LimitMs)
	case slices.ContainsFunc(s.links(), Link.isBad):
		return fmt.Errorf("scenario: a link of %+v; use a loss and duplicates of at least 0 and below 1, and rates and times of at least 0", s.links()[slices.IndexFunc(s.links(), Link.isBad)])
	case s.Params.CreatedMs > Start:
		return fmt.Errorf("scenario: created at %d; use sim.Start, %d, or less for a run that was made before it starts", s.Params.CreatedMs, Start)
	}
	for _, f := range s.Faults {
		if !slices.Contains(Kinds, f.Kind) {
			return fmt.Errorf("scenario: fault %q; use one of %v", f.Kind, Kinds)
		}
		if len(f.Parts) > maxParts {
			return fmt.Errorf("scenario: a partition into %d parts; use at most %d", len(f.Parts), maxParts)
		}
	}
	if err := s.Params.Validate(); err != nil {
		return err
	}
	return s.Params.CheckPlan(planOf(s.Task, s.Params))
}

// links are all links of the scenario.
func (s Scenario) links() []Link {
	all := []Link{s.Link}
	for _, n := range s.Founders {
		all = append(all, n.Link)
	}
	for _, f := range s.Faults {
		all = append(all, f.Link, f.Spec.Link)
	}
	return all
}

// isBad says that a link cannot be.
func (l Link) isBad() bool {
	least := min(float64(min(l.LatencyMs, l.JitterMs)), l.Loss, l.Duplicate, l.BytesMs, l.DownMs)
	return !(least >= 0) || l.Loss >= 1 || l.Duplicate >= 1
}

func (s Scenario) withDefaults() Scenario {
	s.Degree = cmp.Or(s.Degree, defaultDegree)
	s.TickMs = cmp.Or(s.TickMs, nodeTickMs)
	s.HeartbeatMs = cmp.Or(s.HeartbeatMs, defaultHeartbeatMs)
	if s.Task == nil {
		s.Task = quadraticTask{s.Seed}
		if s.Scale > 1 {
			s.Task = wideTask{quadraticTask{s.Seed}, s.Scale}
		}
	}
	s.Link.LatencyMs = max(s.Link.LatencyMs, 1)
	s.Faults = slices.Clone(s.Faults)
	slices.SortStableFunc(s.Faults, func(a, b Fault) int { return cmp.Compare(a.At, b.At) })
	return s
}

// smallH is the H of worlds that ask for no other: short rounds, in which much happens.
const smallH = 8

// Params are those of a new run, as its maker has them, of so many fragments, that ends after about so many inner steps of all
// learners together.
func Params(fragments, steps int, kind codec.Kind) outer.Params {
	return ParamsOf(outer.Spec{Fragments: fragments, Codec: kind, H: smallH, Budget: uint64(steps) * TokensPerStep})
}

// ParamsOf are those of a new run for which so much is chosen. They differ from what its maker writes in what unlikeRuns names.
func ParamsOf(s outer.Spec) outer.Params {
	s.StepTokens, s.CreatedMs = TokensPerStep, Start
	p := s.Params()
	p.GraceMaxMs = shortGraceMs
	return p
}

// shortGraceMs is how long rounds stay open at most where nobody comes: a test profile's, a thirtieth of a real run's.
const shortGraceMs = 4000
