package scenario

import (
	"math"
	"slices"

	"atoll/optimizer/outer"
	"atoll/tensor/codec"
	"atoll/testnet/sim"
)

// What a script need not say.
const (
	defaultRounds  = 60
	defaultLimitMs = 900_000 // after the last event: a run that lasts longer never ends
	defaultStepMs  = 100
)

// begin is a world of which nothing is said.
func (c *compiler) begin() {
	c.rounds = defaultRounds
	c.script.World = sim.Scenario{
		Seed: 1, Params: sim.Params(3, 0, codec.Int4), Link: sim.Link{LatencyMs: 10, JitterMs: 5},
		StepMs: defaultStepMs, CalmMs: 1, Unmended: true,
	}
}

// settings are the lines that set one thing. Those of the outer step have the
// names that protocol.md gives them.
var settings = map[string]func(c *compiler, r *reader){
	"seed": func(c *compiler, r *reader) { c.script.World.Seed = uint64(r.integer("the seed", 0, math.MaxInt64)) },
	"rounds": func(c *compiler, r *reader) {
		c.rounds = r.integer("the number of rounds", 1, 1e6)
		c.alone(r, "steps")
	},
	"steps":  func(c *compiler, r *reader) { c.steps = r.integer("the number of steps", 1, 1e9); c.alone(r, "rounds") },
	"link":   func(c *compiler, r *reader) { c.script.World.Link = r.link() },
	"step":   func(c *compiler, r *reader) { c.script.World.StepMs = r.durationFrom("a step", 1) },
	"beat":   func(c *compiler, r *reader) { c.script.World.BeatMs = r.durationFrom("the beat period", 1) },
	"degree": func(c *compiler, r *reader) { c.script.World.Degree = int(r.integer("the degree", 1, maxNodes)) },
	"limit":  func(c *compiler, r *reader) { c.script.World.LimitMs = r.durationFrom("the limit", 1) },

	"P":         func(c *compiler, r *reader) { c.params().Fragments = int(r.integer("P", 1, outer.MaxFragments)) },
	"H":         func(c *compiler, r *reader) { c.params().H = int(r.integer("H", 1, outer.MaxH)) },
	"h_min":     func(c *compiler, r *reader) { c.params().HMin = int(r.integer("h_min", 1, outer.MaxH)) },
	"W_a":       func(c *compiler, r *reader) { c.params().WindowAccept = uint32(r.integer("W_a", 1, outer.MaxWindow)) },
	"W_u":       func(c *compiler, r *reader) { c.params().WindowUnion = uint32(r.integer("W_u", 1, outer.MaxWindow)) },
	"C":         func(c *compiler, r *reader) { c.params().Answerers = int(r.integer("C", 1, outer.MaxAnswerers)) },
	"K":         func(c *compiler, r *reader) { c.params().Quorum = int(r.integer("K", 1, outer.MaxAnswerers)) },
	"eta":       func(c *compiler, r *reader) { c.params().Eta = r.float("eta", 0, outer.MaxEta) },
	"mu":        func(c *compiler, r *reader) { c.params().Mu = r.float("mu", 0, 1) },
	"max_share": func(c *compiler, r *reader) { c.params().MaxShare = r.float("max_share", 0, 1) },
	"max_steps": func(c *compiler, r *reader) {
		c.params().MaxSteps = uint32(r.integer("max_steps", 1, outer.MaxStepsLimit))
	},
	"max_tokens_per_step": func(c *compiler, r *reader) {
		c.params().MaxTokensPerStep = uint64(r.integer("max_tokens_per_step", 1, outer.MaxTokensLimit))
	},
	"min_round": func(c *compiler, r *reader) { c.params().MinRoundMs = r.duration("min_round") },
	"grace": func(c *compiler, r *reader) {
		c.params().GraceMinMs, c.params().GraceMaxMs = r.duration("the least grace"), r.duration("grace_max")
	},
	"codec": func(c *compiler, r *reader) { c.params().Codec = r.codec() },
	"merge": func(c *compiler, r *reader) { c.params().Merge = r.oneOf("a merge", merges) },
	"clip":  func(c *compiler, r *reader) { c.params().ClipFactor = r.float("clip", 1, 1e6) },
}

// fieldOf are the fields of outer.Params that the settings set, for errors that
// name these.
var fieldOf = map[string]string{
	"P": "Fragments", "H": "H", "h_min": "HMin", "W_a": "WindowAccept", "W_u": "WindowUnion", "C": "Answerers", "K": "Quorum",
	"eta": "Eta", "mu": "Mu", "max_share": "MaxShare", "max_steps": "MaxSteps", "max_tokens_per_step": "MaxTokensPerStep",
	"min_round": "MinRoundMs", "grace": "GraceMaxMs", "clip": "ClipFactor",
}

var merges = []string{outer.MergeRDA, outer.MergeMean, outer.MergeClip}

func (c *compiler) params() *outer.Params { return &c.script.World.Params }

// alone fails where the other way to set the budget is used as well.
func (c *compiler) alone(r *reader, other string) {
	if before, said := c.said[other]; said {
		r.fail("", "the budget is set in %s on line %d; remove one of the two", other, before)
	}
}

// link reads `latency D [jitter D] [loss P] [duplicate P] [uplink R]`, in any order.
func (r *reader) link() (l sim.Link) {
	for first := true; first || r.more() && !r.closing(); first = false {
		switch word := r.next("a trait of links"); word {
		case "latency":
			l.LatencyMs = r.durationFrom("the latency", 1)
		case "jitter":
			l.JitterMs = r.duration("the jitter")
		case "loss":
			l.Loss = r.percent("the loss")
		case "duplicate":
			l.Duplicate = r.percent("the share of duplicates")
		case "uplink":
			l.BytesMs = r.rate("the uplink")
		default:
			r.fail(word, "links have no such trait; use latency, jitter, loss, duplicate or uplink")
		}
	}
	return l
}

// closing says that what ends an event comes next.
func (r *reader) closing() bool {
	return len(r.words) > 0 && (r.words[0] == "for" || r.words[0] == "in")
}

// traits reads in what a node differs from others.
func (r *reader) traits(s sim.NodeSpec) sim.NodeSpec {
	for r.more() && !r.closing() {
		switch word := r.next("a trait"); word {
		case "slow":
			s.Slow = int(r.integer("how much slower", 1, 1e6))
		case "observer":
			s.Observer = true
		case "skew":
			s.SkewMs = r.signed("the skew")
		case "drift":
			s.DriftPPM = r.integer("the drift in parts per million", -500_000, 500_000)
		case "protocol":
			s.Version.Protocol = uint32(r.integer("the protocol's version", 1, 1<<20))
		case "codecs":
			s.Version.Codecs = r.codecs()
		case "newer":
			s.Version.Newer = true
		case "other-run":
			s.Version.OtherRun = true
		case "attack":
			s.Attack = r.attack()
		default:
			r.fail(word, "nodes have no such trait; use slow, observer, skew, drift, protocol, codecs, newer, other-run or attack")
		}
	}
	return s
}

// signed reads a time that may be before now.
func (r *reader) signed(what string) sim.Time { return r.durationFrom(what, -maxTime) }

func (r *reader) codec() codec.Kind {
	word := r.next("a codec")
	k, err := codec.Parse(word)
	if r.err == nil && err != nil {
		r.fail(word, "%v", err)
	}
	return k
}

// codecs reads one or more.
func (r *reader) codecs() (kinds []codec.Kind) {
	for kinds = append(kinds, r.codec()); r.more(); kinds = append(kinds, r.codec()) {
		if _, err := codec.Parse(r.words[0]); err != nil {
			break
		}
	}
	return kinds
}

func (r *reader) oneOf(what string, words []string) string {
	word := r.next(what)
	if r.err == nil && !slices.Contains(words, word) {
		r.fail(word, "%s is one of %v", what, words)
	}
	return word
}

// attack reads `KIND [from D] [times X] [ahead N]`.
func (r *reader) attack() (a sim.Attack) {
	a.Kind = sim.AttackKind(r.oneOf("an attack", attackNames()))
	for {
		switch {
		case r.took("from"):
			a.From = r.duration("when it begins")
		case r.took("times"):
			a.Times = r.float("times", -math.MaxFloat64, math.MaxFloat64)
		case r.took("ahead"):
			a.Ahead = uint32(r.integer("ahead", 0, outer.MaxWindow))
		default:
			return a
		}
	}
}

func attackNames() (names []string) {
	for _, k := range sim.AttackKinds() {
		names = append(names, string(k))
	}
	return names
}
