package main

import (
	"fmt"

	"atoll/node/genesis"
	"atoll/node/hardware"
	"atoll/node/status"
	"atoll/optimizer/outer/tune"
)

// usualLink is what links are taken to carry where nobody said, in bytes per second: 100 Mbit/s.
const usualLink = 100e6 / 8

// sizes are what a run will take of a node, estimated.
type sizes struct {
	RoundBytes     float64 `json:"round_bytes"`     // of the deltas of one round of all fragments
	WindowRounds   uint32  `json:"window_rounds"`   // that repair unites
	WindowBytes    float64 `json:"window_bytes"`    // of their deltas
	GraceMs        int64   `json:"grace_ms"`        // that a round may stay open
	MemoryBytes    uint64  `json:"memory_bytes"`    // of a node, with the built-in trainer where that can train the run
	ExternalMemory uint64  `json:"external_memory"` // of a node, beside a learner in a process of its own
	BasesBytes     float64 `json:"bases_bytes"`     // of kept states on the disk
	LearnerBytes   float64 `json:"learner_bytes"`   // of the learner's state on the disk
	BuiltIn        bool    `json:"-"`
	Received       float64 `json:"received_bytes"` // by each node, in a round of all fragments
}

// fit makes fragments, windows and grace suit the size of the model and what links carry.
func (c *NewCmd) fit(g *genesis.Genesis, e *expected) {
	g.CutRows()
	if c.Fragments == 0 || !g.BuiltIn() {
		g.SplitToFit()
	}
	round := c.roundBytes(*g)
	sweep := round / usualLink
	if e != nil {
		sweep = e.SweepSeconds
	}
	g.SetGrace(sweep)
	g.SetWindow(float64(c.Window), round)
}

// roundBytes is what the deltas of a round of all fragments take, of as many learners as contribute to it.
func (c *NewCmd) roundBytes(g genesis.Genesis) float64 {
	return c.contributors(g) * float64(g.Params()) * tune.BytesOf(g.Outer.Codec)
}

// contributors is how many learners have a delta in a round.
func (c *NewCmd) contributors(g genesis.Genesis) float64 {
	return float64(min(c.Learners, g.Outer.Answerers))
}

func (c *NewCmd) sizesOf(g genesis.Genesis) sizes {
	round, deltas := c.roundBytes(g), c.contributors(g)
	disk := hardware.Role{External: !g.BuiltIn()}.DiskOf(g)
	return sizes{
		RoundBytes: round, WindowRounds: g.Outer.WindowUnion, WindowBytes: round * float64(g.Outer.WindowUnion), GraceMs: g.Outer.GraceMaxMs,
		MemoryBytes: hardware.Role{}.Need(g), ExternalMemory: hardware.Role{External: true}.Need(g), BuiltIn: g.BuiltIn(),
		BasesBytes: float64(disk.Bases), LearnerBytes: float64(disk.Learner), Received: round * (deltas - 1) / deltas,
	}
}

// rows say them.
func (s sizes) rows() [][]string {
	memory := fmt.Sprintf("about %s for a node, beside its learner", status.Bytes(float64(s.ExternalMemory)))
	if s.BuiltIn {
		memory = fmt.Sprintf("about %s for a node that trains itself, %s beside a learner of another program", status.Bytes(float64(s.MemoryBytes)), status.Bytes(float64(s.ExternalMemory)))
	}
	return [][]string{
		{"traffic", fmt.Sprintf("each node receives about %s in a round of all fragments, and sends as much; a round stays open for %s at most", status.Bytes(s.Received), seconds(float64(s.GraceMs)/1000))},
		{"memory", memory},
		{"disk", fmt.Sprintf("%s of deltas of the last %d rounds, which repair needs, %s of kept states, %s of the learner's; what is older goes by --keep of atoll join",
			status.Bytes(s.WindowBytes), s.WindowRounds, status.Bytes(s.BasesBytes), status.Bytes(s.LearnerBytes))},
	}
}
