package main

import (
	"context"
	"fmt"
	"strconv"
	"time"

	"atoll/node/genesis"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/tune"
	"atoll/optimizer/trainer"
	"atoll/tensor/codec"
)

// expected is what `atoll new --bandwidth` chose, and what a run will take.
type expected struct {
	H            int     `json:"h"`
	Fragments    int     `json:"fragments"`
	Codec        string  `json:"codec"`
	Learners     int     `json:"learners"`
	StepSeconds  float64 `json:"step_s"`
	Measured     bool    `json:"step_measured"` // here, not given
	LinkMbitPerS float64 `json:"link_mbit_per_s"`
	MbitPerS     float64 `json:"payload_mbit_per_s"` // that a node receives, and about as much sends
	LinkShare    float64 `json:"link_share"`
	SweepSeconds float64 `json:"sweep_s"`                   // in which the whole link carries what a node receives in H steps
	Answerers    int     `json:"answerers,omitempty"`       // where they are fewer than without --bandwidth
	CoreShare    float64 `json:"core_share"`                // of one core, for the outer steps
	Int4MbitPerS float64 `json:"int4_mbit_per_s,omitempty"` // that links would have to carry, where they do not
}

// costs say what the codecs cost that are chosen where links do not carry int4 (optimizer/outer/DESIGN.md).
var costs = map[string]string{
	codec.Sparse8.String(): "a quarter of the bytes of int4 at the same H, for 1 to 4 % more bits per byte; a larger H costs more",
	codec.Sparse.String():  "a twentieth of the bytes of int4 at the same H, for 3 to 11 % more bits per byte; a larger H costs more",
}

// How long and how often a step is timed where its time is not given.
const (
	stepTimes   = 3
	stepTimeFor = time.Second
)

// chooseLinks sets H, the fragments and, unless one was asked for, the codec of a run by what links carry; it
// returns nil where nobody said what they do.
func (c *NewCmd) chooseLinks(ctx context.Context, g *genesis.Genesis) (*expected, error) {
	if c.Bandwidth == 0 {
		return nil, nil
	}
	e := &expected{Learners: c.Learners, StepSeconds: c.Step.Seconds(), LinkMbitPerS: float64(c.Bandwidth) / 1e6}
	if e.StepSeconds == 0 {
		step, err := measureStep(ctx, *g)
		if err != nil {
			return nil, err
		}
		e.StepSeconds, e.Measured = step.Seconds(), true
	}
	g.CutRows()
	means := c.means(*g, e.StepSeconds)
	choice, err := tune.Choose(means)
	if err != nil {
		return nil, badUsage("--bandwidth: %v", err)
	}
	if choice.Answerers != g.Outer.Answerers {
		e.Answerers = choice.Answerers
		g.Outer.Answerers = choice.Answerers
	}
	g.Outer.Codec = choice.Codec
	g.Outer.SetH(choice.H)
	c.followH(g)
	g.Outer.SetLearners(c.Learners)
	g.Outer.Fragments = choice.Fragments
	g.SplitToFit()
	e.H, e.Fragments, e.Codec, e.SweepSeconds = choice.H, g.Outer.Fragments, g.Outer.Codec.String(), choice.SweepSeconds
	if choice.Codec != means.Codec && choice.Codec != codec.Int4 {
		e.Int4MbitPerS = means.Int4BytesPerSecond() * 8 / 1e6
	}
	e.MbitPerS, e.LinkShare, e.CoreShare = choice.BytesPerSecond*8/1e6, choice.LinkShare, choice.CoreShare
	return e, nil
}

// measureStep times a step of the run's model here.
func measureStep(ctx context.Context, g genesis.Genesis) (time.Duration, error) {
	among, _, err := trainer.Precisions(trainer.AutoPrecision)
	if err != nil {
		return 0, err
	}
	s, _, err := trainer.MeasureBest(ctx, trainer.Config{Model: g.Model, Batch: g.Batch, Optim: g.Inner.Optim()}, among, stepTimes, stepTimeFor, time.Now)
	return s.Step, err
}

// means are what the nodes of a run have to spend, and what the flags leave open.
func (c *NewCmd) means(g genesis.Genesis, stepSeconds float64) tune.Means {
	m := tune.Means{
		Params: g.Params(), Tensors: g.MostFragments(), Learners: c.Learners, Answerers: g.Outer.Answerers,
		StepSeconds: stepSeconds, BytesPerSecond: c.Bandwidth.bytesPerSecond(), Codec: g.Outer.Codec,
		Merge: asked(c.Merge), FreeCores: !g.BuiltIn() || c.Step != 0 && g.Large(),
	}
	if c.Codec == auto {
		m.Codec = 0
	}
	if c.Answerers == 0 {
		m.LeastAnswerers = g.Outer.Quorum
	}
	return m
}

// maxLearners is far more than any run has, and keeps sums of what they send within an int64.
const maxLearners = 1 << 20

// checkLinks refuses flags that contradict each other.
func (c *NewCmd) checkLinks() error {
	switch {
	case c.Learners < 1 || c.Learners > maxLearners:
		return badUsage("--learners is %d; use 1 to %d", c.Learners, maxLearners)
	case c.Bandwidth == 0 && c.Step != 0:
		return badUsage("--step is for --bandwidth; pass both, or leave out --step")
	case c.Bandwidth == 0:
		return nil
	case c.H != 0 || c.Fragments != 0:
		return badUsage("--bandwidth chooses H and the fragments; leave out --h and --fragments, or leave out --bandwidth")
	case c.Step < 0:
		return badUsage("--step is %v; use a time such as 500ms, or leave it out", c.Step)
	}
	return nil
}

// pace says how long a step takes, "" where nothing is expected.
func (e *expected) pace() string {
	if e == nil {
		return ""
	}
	how := "as given"
	if e.Measured {
		how = "measured here; --step sets it"
	}
	step, unit := time.Duration(e.StepSeconds*float64(time.Second)), 10*time.Microsecond
	if step > time.Second {
		unit = 10 * time.Millisecond
	}
	return fmt.Sprintf(" of %v (%s)", step.Round(unit), how)
}

// manyCores is the share of a core from which on it has to be free beside what trains.
const manyCores = 0.1

// rows say what links and cores will carry.
func (e *expected) rows() (rows [][]string) {
	text := fmt.Sprintf("%s: each receives and sends %s Mbit/s of payloads, %.0f %% of %s Mbit/s; outer steps take %.1f %% of a core",
		plural(e.Learners, "learner", "learners"), plain(toTwoDigits(e.MbitPerS)), 100*e.LinkShare, plain(e.LinkMbitPerS), 100*e.CoreShare)
	if e.CoreShare > manyCores {
		text += ", which has to be free: training on it would lose as much"
	}
	rows = append(rows, []string{"links", text})
	if e.Answerers > 0 {
		rows = append(rows, []string{"answerers", fmt.Sprintf("%d of %s contribute to a round, as links or cores carry no more: they take turns, and a round averages fewer deltas, each of more steps", e.Answerers, plural(e.Learners, "learner", "learners"))})
	}
	return rows
}

// plain writes a number with all its digits and no exponent.
func plain(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

// toTwoDigits is the number of two digits that is nearest to x.
func toTwoDigits(x float64) float64 {
	y, _ := strconv.ParseFloat(strconv.FormatFloat(x, 'g', 2, 64), 64) // it reads what it wrote
	return y
}

// codecCost says what a sparse codec costs every h steps, and with which links another is better; "" for the others.
func codecCost(name string, h int, e *expected) string {
	if name == codec.Sparse.String() && h > outer.MostSparseH {
		return fmt.Sprintf("with H above %d, four learners did worse than one alone; use a smaller --h", outer.MostSparseH)
	}
	text := costs[name]
	if e != nil && e.Int4MbitPerS > 0 {
		text += fmt.Sprintf("; with links of %s Mbit/s or more, int4 is better", plain(tune.RoundUp(e.Int4MbitPerS, 2)))
	}
	return text
}
