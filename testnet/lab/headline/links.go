package headline

import (
	"fmt"
	"slices"
	"time"

	"atoll/testnet/lab/trials"
)

// This file holds the rows about links: speed over thin ones, what they leave of it, bytes per token.

const (
	thin20  = "rate=20mbit,delay=40ms"
	thin100 = "rate=100mbit,delay=40ms"
	lossy20 = "rate=20mbit,delay=40ms,loss=0.1%"
	delay   = 40 * time.Millisecond
)

// thinLinks are those of the row thin, with the tokens of dp that take minutes, and seconds in the short form.
var thinLinks = []struct {
	mbit           float64
	link           string
	dpFull, dpFast float64
	asked          trials.Target
}{
	{20, thin20, 1.5e4, 5e3, trials.AtLeast(20)},
	{100, thin100, 5e4, 1e4, trials.Shown},
}

// leastFull is what dp has to use of its links: a slow all-reduce would make atoll look good.
const leastFull = 0.8

var thinRow = Row{
	Name: "thin", About: "speed over thin links", Takes: "11 minutes", TakesQuick: "two and a half minutes",
	Worlds: func(s Settings, seed uint64) (worlds []World) {
		for _, l := range thinLinks {
			worlds = append(worlds,
				small(fmt.Sprintf("atoll %g", l.mbit), 4, s.tokens(4e5, 6e4), seed, "--link", l.link),
				small(fmt.Sprintf("dp %g", l.mbit), 4, s.tokens(l.dpFull, l.dpFast), seed, "--link", l.link, "--baseline", "dp"))
		}
		return worlds
	},
	Lines: func(o map[string]Outcome) (lines []Line) {
		for _, l := range thinLinks {
			atoll, have := o[fmt.Sprintf("atoll %g", l.mbit)]
			dp, haveDP := o[fmt.Sprintf("dp %g", l.mbit)]
			if !have || !haveDP {
				continue
			}
			what := thinWhat(l.mbit)
			lines = append(lines,
				over(what, "tokens/s", atoll.steady(), dp.steady(), "dp", l.asked),
				over(what+", dp by the formula", "tokens/s", atoll.steady(), dpRate(4, smallParams, smallStep, l.mbit, delay), "dp at most", trials.Shown),
				other(what+": share of its link that dp fills", "", dp.sent()/bytesPerSecond(l.mbit), "dp", trials.AtLeast(leastFull)))
		}
		return lines
	},
}

// thinWhat names the comparison over a link.
func thinWhat(mbit float64) string { return fmt.Sprintf("%g Mbit/s, 40 ms", mbit) }

func bytesPerSecond(mbit float64) float64 { return mbit * 1e6 / 8 }

// dpRate is the most tokens per second that data parallelism makes of a link: a ring all-reduce in bf16 sends the
// gradients nearly twice, over twice as many hops as there are other nodes.
func dpRate(nodes, params int, stepTokens float64, mbit float64, delay time.Duration) float64 {
	n := float64(nodes)
	step := 2*(n-1)/n*2*float64(params)/bytesPerSecond(mbit) + 2*(n-1)*delay.Seconds()
	return n * stepTokens / step
}

var keptRow = Row{
	Name: "kept", About: "own speed kept", Takes: "11 minutes", TakesQuick: "two minutes",
	Worlds: func(s Settings, seed uint64) []World {
		// The start and the end of a run are ten seconds, whatever its length.
		tokens := s.tokens(1e6, 6e4)
		return []World{
			small("loopback", 4, tokens, seed, "--eval"),
			small("100", 4, tokens, seed, "--eval", "--link", thin100),
			small("lossy 20", 4, tokens, seed, "--eval", "--link", lossy20, "--codec", "sparse8"), // as atoll new --bandwidth 20mbit says
		}
	},
	Lines: func(o map[string]Outcome) (lines []Line) {
		loopback, have := o["loopback"]
		for _, l := range []struct {
			world, what string
			least       float64
		}{{"100", "100 Mbit/s, 40 ms", 0.95}, {"lossy 20", "20 Mbit/s, 40 ms, 0.1 % loss, sparse8", 0.9}} {
			on, haveOn := o[l.world]
			if !have || !haveOn {
				continue
			}
			lines = append(lines,
				over(l.what+", whole run", "tokens/s", on.Report.TokensPerS, loopback.Report.TokensPerS, "loopback", trials.AtLeast(l.least)),
				over(l.what+", without start and end", "tokens/s", on.steady(), loopback.steady(), "loopback", trials.Shown),
				alone(l.what+": learners have nothing to step at the end", "s", value(on.Report.EndIdleS), trials.Shown),
				over(l.what+", model", "bits per byte", value(on.Report.ValBPB), value(loopback.Report.ValBPB), "loopback", trials.Shown))
		}
		return lines
	},
}

// delta is a form of deltas in the rows about bytes.
type delta struct {
	codec string
	h     int
	least float64 // of dp's bytes over its own, with four nodes; 0 = nothing is asked
}

// deltas are those of the usual H, with what is asked of four nodes; rareDeltas go out a quarter as often.
var (
	deltas     = []delta{{"int4", 24, 55}, {"sparse8", 24, 220}, {"sparse", 24, 700}}
	rareDeltas = []delta{{"int4", 100, 0}, {"sparse8", 100, 0}, {"sparse", 100, 0}}
)

func (d delta) name(nodes int) string { return fmt.Sprintf("%s H %d, %d nodes", d.codec, d.h, nodes) }

func (d delta) asked(nodes int) trials.Target {
	if d.least == 0 || nodes != 4 {
		return trials.Shown
	}
	return trials.AtLeast(d.least)
}

// quickSweeps is how often each fragment is exchanged in the short form.
const quickSweeps = 2

// sweeps is how often each fragment is exchanged. A run begins with half a delta of each in its turn and ends with what is
// left of each: one sweep together. Where something is asked, it is little beside the others.
func (d delta) sweeps(nodes int) int {
	if d.asked(nodes).Bounded() {
		return 32
	}
	return 8
}

// group are forms of deltas between so many nodes.
type group struct {
	nodes  int
	deltas []delta
}

// dpSteps are enough to count: each has the same bytes.
const dpSteps = 20

// worlds are data parallelism and each form of deltas.
func (g group) worlds(s Settings, seed uint64) []World {
	worlds := []World{small(fmt.Sprintf("dp, %d nodes", g.nodes), g.nodes, s.tokens(float64(g.nodes*smallStep*dpSteps), float64(5*g.nodes*smallStep)), seed, "--baseline", "dp")}
	for _, d := range g.deltas {
		sweep := float64(d.h * g.nodes * smallStep)
		tokens := s.tokens(float64(d.sweeps(g.nodes))*sweep, quickSweeps*sweep)
		worlds = append(worlds, small(d.name(g.nodes), g.nodes, tokens, seed, "--codec", d.codec, "--h", fmt.Sprint(d.h)))
	}
	return worlds
}

func (g group) lines(o map[string]Outcome) (lines []Line) {
	dp, have := o[fmt.Sprintf("dp, %d nodes", g.nodes)]
	for _, d := range g.deltas {
		if atoll, haveAtoll := o[d.name(g.nodes)]; have && haveAtoll {
			lines = append(lines, under(d.name(g.nodes), "bytes per token", atoll.bytesPerToken(), dp.bytesPerToken(), "dp in bf16", d.asked(g.nodes)))
		}
	}
	return lines
}

var bytesRow = Row{
	Name: "bytes", About: "bytes per token, everything counted", Takes: "20 minutes", TakesQuick: "two minutes",
	Worlds: func(s Settings, seed uint64) []World { return group{4, deltas}.worlds(s, seed) },
	Lines:  func(o map[string]Outcome) []Line { return group{4, deltas}.lines(o) },
}

// The worlds of dp are played with each group, as its bytes are beside all others.
var bytesMoreRow = Row{
	Name: "bytesmore", About: "bytes per token, rarer deltas and more nodes", Takes: "an hour", TakesQuick: "two minutes",
	Worlds: func(s Settings, seed uint64) (worlds []World) {
		for _, g := range moreGroups(s) {
			worlds = append(worlds, g.worlds(s, seed)...)
		}
		return worlds
	},
	Lines: func(o map[string]Outcome) (lines []Line) {
		for _, g := range moreGroups(Settings{}) {
			lines = append(lines, g.lines(o)...)
		}
		return lines
	},
}

func moreGroups(s Settings) []group {
	if s.Quick {
		return []group{{4, rareDeltas[2:]}}
	}
	return []group{{4, rareDeltas}, {8, slices.Concat(deltas, rareDeltas)}}
}
