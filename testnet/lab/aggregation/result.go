package aggregation

import (
	"atoll/optimizer/outer/tune"
)

// Result is what a plan costs. Bytes and core-seconds are of a round of one fragment.
type Result struct {
	Plan      Plan   `json:"plan"`
	Learners  int    `json:"learners"`
	Publish   int    `json:"publish"` // learners that publish in a round
	Group     int    `json:"group,omitempty"`
	Levels    int    `json:"levels"`
	Deltas    int    `json:"deltas"`        // that a fold has
	Turn      int    `json:"turn"`          // rounds from one delta of a learner to the next, at most
	Payload   int64  `json:"payload_bytes"` // of a learner's delta
	Rounds    int    `json:"rounds"`        // simulated
	Together  int    `json:"together"`      // deltas that one transfer stands for: above 1 where there are too many
	Transfers int    `json:"transfers"`
	Seed      uint64 `json:"seed"`

	Down        float64 `json:"down_bytes"` // of payloads that a node receives, in the mean
	Up          float64 `json:"up_bytes"`   // and sends
	BusiestDown float64 `json:"busiest_down_bytes"`
	BusiestUp   float64 `json:"busiest_up_bytes"`
	Headers     float64 `json:"header_bytes"` // that a node receives
	Audits      float64 `json:"audit_bytes"`  // that a node receives to make others' merged deltas again, in the mean

	// LinkShare is what down, headers and audits take of the link while rounds follow each other. Above 1 the link does not
	// carry the plan: the latency grows with each round.
	LinkShare float64 `json:"link_share"`

	Proposal float64 `json:"proposal_s"` // until the last has heard that a round opens
	Latency  float64 `json:"latency_s"`  // from the proposal until a node has folded, in the mean
	Last     float64 `json:"last_s"`     // the last node

	Core        float64 `json:"core_s"` // of a node, in the mean, audits included
	BusiestCore float64 `json:"busiest_core_s"`
	CoreShare   float64 `json:"core_share"` // of a core, while rounds follow each other

	Trust Trust `json:"trust"`
}

// Run simulates a plan. The same Config gives the same Result.
func Run(c Config) (Result, error) {
	if err := c.Validate(); err != nil {
		return Result{}, err
	}
	counts, levels := c.counts(), c.levels()
	r := Result{
		Plan: c.Plan, Learners: c.Learners, Publish: counts[0], Levels: levels, Deltas: counts[levels], Seed: c.Seed,
		Turn: (c.Learners + counts[0] - 1) / counts[0], Payload: int64(c.payload(0)), Trust: c.trust(),
	}
	if levels > 0 {
		r.Group = c.group()
	}
	w := newWorld(c)
	w.play()
	w.report(&r)
	r.Headers = float64(r.Deltas) * headerBytes * headerCopies
	if levels > 0 {
		r.Headers *= float64(c.Aggregators) // each signs its own
	}
	n := float64(c.Learners)
	once := 0.0 // what it takes of a core to make every merged delta once, of each node's
	for l := 1; l <= levels; l++ {
		r.Audits += float64(c.Auditors) * float64(counts[l]) * c.auditBytes(l) / n
		once += float64(counts[l]) * c.mergeSeconds(l) / n
	}
	auditing := float64(c.Auditors) * once
	own := c.foldSeconds(levels, float64(counts[levels])) + auditing
	r.Core = own + float64(c.Aggregators)*once
	r.BusiestCore = own + w.mostMerging()
	r.LinkShare = (r.Down + r.Headers + r.Audits) * 8 / c.Rate / c.period()
	r.CoreShare = r.Core / c.period()
	return r, nil
}

// foldSeconds is what a fold of so many deltas of a level takes of a core.
func (c Config) foldSeconds(level int, deltas float64) float64 {
	kind := c.Codec
	if level > 0 {
		kind = c.merged()
	}
	return tune.CoreSeconds(kind, c.values(), deltas)
}

// mergeSeconds is what it takes to make a merged delta of a level: about a fold, as that encodes as well.
func (c Config) mergeSeconds(level int) float64 { return c.foldSeconds(level-1, c.members(level)) }
