package scenario

import (
	"math"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/testnet/fault"
	"atoll/testnet/sim"
)

// What a script need not say.
const (
	defaultRounds  = 60
	defaultLimitMs = 900_000 // after the last event: a run that lasts longer never ends
	defaultStepMs  = 100
)

// begin is a world that nothing is said of.
func (c *compiler) begin() {
	c.rounds = defaultRounds
	c.outer = outer.Spec{Fragments: 3, Codec: codec.Int4, H: 8}
	c.script.World = sim.Scenario{
		Seed: 1, Link: sim.Link{LatencyMs: 10, JitterMs: 5},
		StepMs: defaultStepMs, CalmMs: 1, Unmended: true,
	}
}

// settings are the lines that set one thing. Settings of the outer step have
// the names of the literature; see outer.Params.
var settings = map[string]func(c *compiler, r *fault.Reader){
	"seed": func(c *compiler, r *fault.Reader) {
		c.script.World.Seed = uint64(r.Integer("the seed", 0, math.MaxInt64))
	},
	"rounds": func(c *compiler, r *fault.Reader) {
		c.rounds = r.Integer("the number of rounds", 1, 1e6)
		c.alone(r, "steps")
	},
	"steps": func(c *compiler, r *fault.Reader) {
		c.steps = r.Integer("the number of steps", 1, 1e9)
		c.alone(r, "rounds")
	},
	"link": func(c *compiler, r *fault.Reader) { c.script.World.Link = sim.ReadLink(r) },
	"step": func(c *compiler, r *fault.Reader) { c.script.World.StepMs = sim.ReadMs(r, "a step", 1) },
	"heartbeat": func(c *compiler, r *fault.Reader) {
		c.script.World.HeartbeatMs = sim.ReadMs(r, "the heartbeat period", 1)
	},
	"payload": func(c *compiler, r *fault.Reader) { c.script.World.Scale = readPayload(r) },
	"degree":  func(c *compiler, r *fault.Reader) { c.script.World.Degree = int(r.Integer("the degree", 1, maxNodes)) },
	"keep": func(c *compiler, r *fault.Reader) {
		c.script.World.Policy.KeepBytes = r.Integer("the bytes that a ledger may take", 1, math.MaxInt64)
	},
	"leave": func(c *compiler, r *fault.Reader) {
		c.script.World.Policy.LeaveWithinMs = sim.ReadMs(r, "the time of a leave", 1)
	},
	"limit": func(c *compiler, r *fault.Reader) { c.script.World.LimitMs = sim.ReadMs(r, "the limit", 1) },

	"P": func(c *compiler, r *fault.Reader) { c.outer.Fragments = int(r.Integer("P", 1, outer.MaxFragments)) },
	"H": func(c *compiler, r *fault.Reader) { c.outer.H = int(r.Integer("H", 1, outer.MaxH)) },
	"C": func(c *compiler, r *fault.Reader) {
		c.outer.LearnersPerRound = int(r.Integer("C", 1, outer.MaxLearnersPerRound))
	},
	"codec": func(c *compiler, r *fault.Reader) { c.outer.Codec = sim.ReadCodec(r) },
	"h_min": func(c *compiler, r *fault.Reader) {
		n := int(r.Integer("h_min", 1, outer.MaxH))
		c.unlike(func(p *outer.Params) { p.HMin = n })
	},
	"W_a": func(c *compiler, r *fault.Reader) {
		n := uint32(r.Integer("W_a", 1, outer.MaxWindow))
		c.unlike(func(p *outer.Params) { p.WindowAccept = n })
	},
	"W_u": func(c *compiler, r *fault.Reader) {
		n := uint32(r.Integer("W_u", 1, outer.MaxWindow))
		c.unlike(func(p *outer.Params) { p.WindowUnion = n })
	},
	"grace": func(c *compiler, r *fault.Reader) {
		least, most := sim.ReadMs(r, "the least grace", 0), sim.ReadMs(r, "grace_max", 0)
		c.unlike(func(p *outer.Params) { p.GraceMinMs, p.GraceMaxMs = least, most })
	},
}

// unlike keeps a size or a time that the world has otherwise than the maker of runs would choose it.
func (c *compiler) unlike(change func(p *outer.Params)) { c.changes = append(c.changes, change) }

// params makes the outer step of the world, once all of it is read.
func (c *compiler) params() outer.Params {
	for _, n := range c.script.World.Founders {
		if !n.Observer {
			c.outer.Learners++
		}
	}
	p := sim.ParamsOf(c.outer)
	for _, change := range c.changes {
		change(&p)
	}
	return p
}

// readPayload takes the bytes of a delta of every fragment.
func readPayload(r *fault.Reader) (scale int) {
	word := r.Next("what a delta of every fragment has, such as 100kB,")
	bytes, ok := fault.ParseBytes(word)
	scale = sim.ScaleOf(bytes)
	if r.Err == nil && (!ok || scale < 1 || scale > sim.MaxScale) {
		r.Fail(word, "a payload is an amount from 2kB to 16MB such as 100kB")
	}
	return scale
}

// fieldOf are the fields of outer.Params that the settings set, for errors that
// name these.
var fieldOf = map[string]string{
	"P": "Fragments", "H": "H", "h_min": "HMin", "W_a": "WindowAccept", "W_u": "WindowUnion", "C": "LearnersPerRound", "grace": "GraceMaxMs",
}

// alone fails where the other way to set the budget is used as well.
func (c *compiler) alone(r *fault.Reader, other string) {
	if before, said := c.said[other]; said {
		r.Fail("", "the budget is set in %s on line %d; remove one of the two", other, before)
	}
}
