package thin

import (
	"bytes"
	"encoding/json"
	"fmt"
	"time"
)

// Outcome is the part of a testnet's report that figures are made of. Its names are the report's.
type Outcome struct {
	Failed string `json:"failed,omitempty"` // why there is no report

	TokensBudget    uint64   `json:"tokens_budget"`
	TokensFolded    uint64   `json:"tokens_folded"`
	TokensDiscarded uint64   `json:"tokens_discarded"`
	WallS           float64  `json:"wall_s"`
	TokensPerS      float64  `json:"tokens_per_s"`
	ValBPB          *float64 `json:"val_bpb,omitempty"`
	Deltas          uint64   `json:"deltas"`
	Late            uint64   `json:"late"`
	BytesSent       uint64   `json:"bytes_sent"`
	PayloadBytes    uint64   `json:"payload_bytes"`
	GoodputUp       *float64 `json:"goodput_up,omitempty"`
	HeartbeatGapS   float64  `json:"longest_heartbeat_gap_s"`
	Progress        []Point  `json:"progress"`
	Checks          []Check  `json:"checks"`
	Calibration     Pace     `json:"calibration"`
	Nodes           []Node   `json:"nodes_report"`
}

// Point is how far a run was at a moment.
type Point struct {
	AtS    float64 `json:"at_s"`
	Tokens uint64  `json:"tokens"` // folded
}

// Check is a promise of the run.
type Check struct {
	Name   string `json:"name"`
	Passed bool   `json:"passed"`
	Detail string `json:"detail"`
}

// Pace is the least time of a step.
type Pace struct {
	Ms float64 `json:"pace_ms"`
}

// Node is one node of a run.
type Node struct {
	Tokens       uint64  `json:"tokens"`
	TokensFolded uint64  `json:"tokens_folded"`
	Share        float64 `json:"share"` // of the folded tokens
	Time         Times   `json:"time"`
	Planned      int     `json:"planned_steps"` // the most for a delta
}

// Times are where a learner's time went.
type Times struct {
	EndingS float64 `json:"ending_s"` // nothing was left to step
}

// readReport takes the report from what a testnet printed: it is the last line.
func readReport(out []byte) (o Outcome, err error) {
	out = bytes.TrimSpace(out)
	if len(out) == 0 {
		return o, fmt.Errorf("it printed no report")
	}
	if err := json.Unmarshal(out[bytes.LastIndexByte(out, '\n')+1:], &o); err != nil {
		return o, fmt.Errorf("read the report: %w", err)
	}
	return o, nil
}

// failedChecks is how many promises were broken.
func (o Outcome) failedChecks() (n float64) {
	for _, c := range o.Checks {
		if !c.Passed {
			n++
		}
	}
	return n
}

// over is by how much the run went beyond its budget, as a share of it.
func (o Outcome) over() float64 { return float64(o.TokensFolded)/float64(o.TokensBudget) - 1 }

// late is the share of deltas that came to another node after their round had closed there.
func (o Outcome) late() float64 {
	return float64(o.Late) / max(1, float64(o.Deltas)*float64(len(o.Nodes)-1))
}

// discarded is the share of the tokens that were published and are in no model.
func (o Outcome) discarded() float64 {
	return float64(o.TokensDiscarded) / float64(o.TokensFolded+o.TokensDiscarded)
}

// idle is the longest time that a learner had nothing to step at the end, in seconds.
func (o Outcome) idle() (s float64) {
	for _, n := range o.Nodes {
		s = max(s, n.Time.EndingS)
	}
	return s
}

// planned is the most steps that a node planned for a delta.
func (o Outcome) planned() (steps float64) {
	for _, n := range o.Nodes {
		steps = max(steps, float64(n.Planned))
	}
	return steps
}

// lastS is how long the last payloads travel, in seconds: a delta of each fragment of every author, to all others, over
// uplinks of this rate.
func (o Outcome) lastS(fragments int, mbit float64, delay time.Duration) float64 {
	ofAuthor := float64(o.PayloadBytes) / float64(o.Deltas) * float64(fragments)
	return ofAuthor/bytesPerSecond(mbit) + 2*delay.Seconds()
}

// at is when so many tokens were folded, in seconds.
func (o Outcome) at(tokens float64) float64 {
	for i, p := range o.Progress {
		if float64(p.Tokens) < tokens {
			continue
		}
		if i == 0 {
			return p.AtS
		}
		was := o.Progress[i-1]
		return was.AtS + (p.AtS-was.AtS)*(tokens-float64(was.Tokens))/float64(p.Tokens-was.Tokens)
	}
	return o.WallS
}

// tokensAt is how many were folded at a time.
func (o Outcome) tokensAt(s float64) float64 {
	for i, p := range o.Progress {
		if p.AtS < s {
			continue
		}
		if i == 0 {
			return float64(p.Tokens)
		}
		was := o.Progress[i-1]
		return float64(was.Tokens) + float64(p.Tokens-was.Tokens)*(s-was.AtS)/(p.AtS-was.AtS)
	}
	return float64(o.TokensFolded)
}

// rate is the tokens folded per second between two times.
func (o Outcome) rate(from, to float64) float64 {
	if to <= from {
		return 0
	}
	return (o.tokensAt(to) - o.tokensAt(from)) / (to - from)
}

// steady is the rate after the start and before the end, in tokens per second. Short runs are half start and end.
func (o Outcome) steady() float64 {
	const from, to = 0.25, 0.9 // of what was folded
	return o.rate(o.at(from*float64(o.TokensFolded)), o.at(to*float64(o.TokensFolded)))
}

// perNode is the bytes per second of each node at the steady rate, of so many in the whole run.
func (o Outcome) perNode(bytes uint64) float64 {
	return float64(bytes) / float64(o.TokensFolded) * o.steady() / float64(len(o.Nodes))
}
