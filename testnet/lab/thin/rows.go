package thin

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/testnet/lab/trials"
)

// Names of worlds.
const (
	loopback = "loopback"
	thin     = "thin"
)

// usualH and usualFragments are those of runs of the model small that nobody set them for.
const (
	usualH         = 24
	usualFragments = 24
)

// mostIdle is how long learners may have nothing to step at the end, of the time that the last payloads travel.
const mostIdle = 3

// groups are the rows in the order in which they are played.
var groups = []struct {
	name string
	rows func(context.Context, Settings) ([]Row, error)
}{
	{"thin", one(thinRow)},
	{"home", one(homeRow)},
	{"loss", one(lossRow)},
	{"fall", one(fallRow)},
	{"dp", dpRows},
	{"corners", cornerRows},
	{"before", beforeRows},
}

// Groups are the names that Settings.Only may have.
func Groups() (names []string) {
	for _, g := range groups {
		names = append(names, g.name)
	}
	return names
}

func one(row func(Settings) Row) func(context.Context, Settings) ([]Row, error) {
	return func(_ context.Context, s Settings) ([]Row, error) { return []Row{row(s)}, nil }
}

// rows are those that were asked for.
func (s Settings) rows(ctx context.Context) (rows []Row, err error) {
	for _, only := range s.Only {
		if !slices.Contains(Groups(), only) {
			return nil, fmt.Errorf("there is no row %q; use %s", only, strings.Join(Groups(), ", "))
		}
	}
	for _, g := range groups {
		if len(s.Only) > 0 && !slices.Contains(s.Only, g.name) {
			continue
		}
		more, err := g.rows(ctx, s)
		if err != nil {
			return nil, err
		}
		rows = append(rows, more...)
	}
	return rows, nil
}

// optimizer is the one whose steps are cheap beside their bytes: with one row a step Muon
// takes six times as long on two cores, and asks a sixth of the link.
const optimizer = "adamw"

// world is a run of so many nodes and tokens, before they are scaled. Further flags follow.
func (s Settings) world(name string, nodes int, tokens float64, flags ...string) World {
	tokens = max(float64(leastSteps*nodes*stepTokens), tokens*s.Scale)
	args := []string{
		"--nodes", fmt.Sprint(nodes), "--model", s.Model, "--data", s.Data, "--batch", "1", "--optimizer", optimizer,
		"--seed", fmt.Sprint(s.Seed), "--tokens", fmt.Sprintf("%.0f", tokens),
	}
	return World{Name: name, Args: append(args, flags...)}
}

// leastSteps are those of each node in the shortest run.
const leastSteps = 8

// Tokens of runs that take some minutes on two cores.
const (
	usualTokens = 4e5
	fallTokens  = 6e5 // a minute before the fall, the fall, and two after
)

// besideLoopback are the same four nodes on the loopback and on such a link each.
func (s Settings) besideLoopback(link string) []World {
	return []World{
		s.world(loopback, 4, usualTokens),
		s.world(thin, 4, usualTokens, "--link", link),
	}
}

func thinRow(s Settings) Row {
	return Row{
		Name: "thin", About: "four nodes on links of 20 Mbit/s and 40 ms, beside the loopback",
		Worlds: s.besideLoopback("rate=20mbit,delay=40ms"),
		Figures: func(o map[string]Outcome) []Figure {
			return append(kept(o[thin]), []Figure{
				{"tokens/s", o[thin].TokensPerS, trials.Shown},
				{"tokens/s of loopback", o[thin].TokensPerS / o[loopback].TokensPerS, trials.AtLeast(0.95)},
				{"bits per byte of loopback", ratio(o[thin].ValBPB, o[loopback].ValBPB), trials.AtMost(1.015)},
				{"goodput_up", orZero(o[thin].GoodputUp), trials.AtLeast(0.9)},
				{"idle at the end, of the last payloads' way", o[thin].idle() / o[thin].lastS(usualFragments, 20, 40*time.Millisecond), trials.AtMost(mostIdle)},
				{"planned steps", o[thin].planned(), trials.Shown},
				{"late of deltas", o[thin].late(), trials.Shown},
				{"late of deltas, loopback", o[loopback].late(), trials.Shown},
			}...)
		},
	}
}

// kept are the promises of every run: that it keeps its checks and its budget, and loses nothing.
func kept(o Outcome) []Figure {
	return []Figure{
		{"checks failed", o.failedChecks(), trials.AtMost(0)},
		{"discarded of tokens", o.discarded(), trials.AtMost(0)},
		{"over budget", o.over(), trials.AtMost(0.01)},
		{"idle at the end, s", o.idle(), trials.Shown},
	}
}

func ratio(a, b *float64) float64 { return orZero(a) / orZero(b) }

func orZero(x *float64) float64 {
	if x == nil {
		return 0
	}
	return *x
}

// homePace is the pace of the row home: two cores have room for four learners of it and for
// the emulation of links of 100 Mbit/s. At full speed three learners alone step faster than
// the processor lets four, whatever their links.
const homePace = 400 * time.Millisecond

func homeRow(s Settings) Row {
	const link, home = "rate=100mbit,delay=20ms", "3:up=5mbit,down=100mbit,delay=20ms" // which takes the place of the other
	return Row{
		Name: "home", About: "one node of four on 5 Mbit/s up, the rest on 100, beside the rest alone",
		Pace: homePace,
		Worlds: []World{
			s.world("with", 4, usualTokens, "--link", link, "--link", home),
			s.world("without", 3, usualTokens*3/4, "--link", link),
		},
		Figures: func(o map[string]Outcome) []Figure {
			with, without := o["with"], o["without"]
			slow := with.Nodes[3]
			return append(kept(with), []Figure{
				{"tokens/s of the rest, of theirs alone", with.steady() * (1 - slow.Share) / without.steady(), trials.AtLeast(0.98)},
				{"folded of its tokens", float64(slow.TokensFolded) / float64(slow.Tokens), trials.AtLeast(0.9)},
				{"its share", slow.Share, trials.Shown},
				{"late of deltas", with.late(), trials.Shown},
			}...)
		},
	}
}

func lossRow(s Settings) Row {
	return Row{
		Name: "loss", About: "20 Mbit/s, 0.1 % loss, 40 ms and 10 ms of jitter, beside the loopback",
		Worlds: s.besideLoopback("rate=20mbit,delay=40ms,jitter=10ms,loss=0.1%"),
		Figures: func(o map[string]Outcome) []Figure {
			return append(kept(o[thin]), []Figure{
				{"tokens/s of loopback", o[thin].TokensPerS / o[loopback].TokensPerS, trials.AtLeast(0.9)},
				{"longest gap between heartbeats, s", o[thin].HeartbeatGapS, trials.AtMost(2)},
				{"the same on the loopback, s", o[loopback].HeartbeatGapS, trials.Shown},
				{"late of deltas", o[thin].late(), trials.Shown},
			}...)
		},
	}
}

// The link of the row fall is thin from one time to another, in seconds at scale 1. Rates of before are those after the
// first round, and rates of after begin so many rounds later.
const (
	fallsAt    = 60
	recoversAt = 120
	backIn     = 2
)

func fallRow(s Settings) Row {
	from, to := fallsAt*s.Scale, recoversAt*s.Scale
	return Row{
		Name: "fall", About: "the link of one node of four falls from 100 to 5 Mbit/s for a minute",
		Worlds: []World{
			s.world(thin, 4, fallTokens, "--link", "rate=100mbit,delay=20ms", "--chaos", fmt.Sprintf("link 0 rate=5mbit @%gs..%gs", from, to)),
		},
		Figures: func(o map[string]Outcome) []Figure {
			w := o[thin]
			round := usualH * w.Calibration.Ms / 1000
			before, after := w.rate(w.at(1)+round, from), w.rate(to+backIn*round, w.at(0.95*float64(w.TokensFolded)))
			return append(kept(w), []Figure{
				{"tokens/s before", before, trials.Shown},
				{"tokens/s during, of before", w.rate(from, to) / before, trials.Shown},
				{"tokens/s from two rounds after, of before", after / before, trials.AtLeast(0.95)},
				{"late of deltas", w.late(), trials.Shown},
			}...)
		},
	}
}

// dpRows compare with data parallelism over the same links.
func dpRows(_ context.Context, s Settings) (rows []Row, err error) {
	for _, c := range []struct {
		mbit     float64
		dpTokens float64 // minutes of dp
		times    float64
	}{{20, 1.5e4, 30}, {100, 5e4, 8}} {
		link := fmt.Sprintf("rate=%gmbit,delay=40ms", c.mbit)
		rows = append(rows, Row{
			Name: fmt.Sprintf("dp %g", c.mbit), About: fmt.Sprintf("four nodes on links of %g Mbit/s and 40 ms, beside data parallelism", c.mbit),
			Worlds: []World{
				s.world("dp", 4, c.dpTokens, "--link", link, "--baseline", "dp"),
				s.world("atoll", 4, usualTokens, "--link", link),
			},
			Figures: func(o map[string]Outcome) []Figure {
				dp, atoll := o["dp"], o["atoll"]
				return []Figure{
					{"tokens/s of dp", dp.steady(), trials.Shown},
					{"tokens/s of atoll", atoll.steady(), trials.Shown},
					{"atoll over dp", atoll.steady() / dp.steady(), trials.AtLeast(c.times)},
					{"dp's share of the link", dp.perNode(dp.BytesSent) / bytesPerSecond(c.mbit), trials.AtLeast(0.8)},
				}
			},
		})
	}
	return rows, nil
}

func bytesPerSecond(mbit float64) float64 { return mbit * 1e6 / 8 }

// beforeRows compare with an earlier version of the program.
func beforeRows(_ context.Context, s Settings) ([]Row, error) {
	if s.Before == "" {
		if slices.Contains(s.Only, "before") {
			return nil, errors.New("the row before needs --before PATH, the program to compare with")
		}
		return nil, nil
	}
	before := s.world("before", 4, usualTokens)
	before.Old = true
	return []Row{{
		Name: "before", About: "the loopback, beside an earlier version",
		Worlds: []World{before, s.world("now", 4, usualTokens)},
		Figures: func(o map[string]Outcome) []Figure {
			return append(kept(o["now"]), []Figure{
				{"tokens/s of before", o["now"].TokensPerS / o["before"].TokensPerS, trials.AtLeast(0.98)},
				{"bits per byte of before", ratio(o["now"].ValBPB, o["before"].ValBPB), trials.AtMost(1.01)},
			}...)
		},
	}}, nil
}

// pacePerNode is the pace of a step for each node of a run on two cores: eight learners share what four do.
const pacePerNode = 80 * time.Millisecond
