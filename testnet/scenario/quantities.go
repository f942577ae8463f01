package scenario

import (
	"fmt"
	"math"
	"strconv"
	"strings"

	"atoll/testnet/fault"
	"atoll/testnet/sim"
)

// unit is how amounts of a kind are written.
type unit struct {
	example string
	show    func(x float64) string
	parse   func(word string) (float64, bool)
}

var (
	inCounts = unit{"12", func(x float64) string { return strconv.FormatFloat(x, 'f', 0, 64) }, parseCount}
	inTime   = unit{"1.5s", seconds, func(word string) (float64, bool) {
		t, ok := fault.ParseDuration(word)
		return float64(t.Milliseconds()), ok && t >= 0
	}}
	inRounds = unit{"12 rounds", func(x float64) string { return counted(x, "round") }, func(word string) (float64, bool) {
		n, ok := strings.CutSuffix(word, " rounds")
		x, isCount := parseCount(n)
		return x, ok && isCount
	}}
	inShare = unit{"2.5%", func(x float64) string { return fmt.Sprintf("%.1f%%", 100*x) }, fault.ParsePercent}
	inBytes = unit{"1.5MB", megabytes, fault.ParseBytes}
	inLoss  = unit{"0.25", func(x float64) string { return fmt.Sprintf("%.3g", x) }, func(word string) (float64, bool) {
		x, err := strconv.ParseFloat(word, 64)
		return x, err == nil
	}}
)

func parseCount(word string) (float64, bool) {
	n, err := strconv.ParseUint(word, 10, 53)
	return float64(n), err == nil
}

// seconds shows milliseconds.
func seconds(ms float64) string {
	if math.IsInf(ms, 1) {
		return "never"
	}
	return fmt.Sprintf("%.1fs", ms/1000)
}

func counted(x float64, what string) string {
	if x != 1 {
		what += "s"
	}
	return fmt.Sprintf("%.0f %s", x, what)
}

func megabytes(x float64) string {
	if x < 1e5 {
		return fmt.Sprintf("%.1fkB", x/1e3)
	}
	return fmt.Sprintf("%.2fMB", x/1e6)
}

// quantity is a number that an outcome shows and that an expectation may be
// about. Two of one name differ in their unit: the same fact in two ways.
type quantity struct {
	name  string
	unit  unit
	world func(o *Outcome) float64               // nil: it is not of a world
	node  func(o *Outcome, r sim.Report) float64 // nil: it is not of a node
	note  func(o *Outcome) string                // said after the number; nil: nothing
	rare  bool                                   // not shown where it is 0
	fits  bool                                   // shown where payloads have a length of their own
}

// quantities are all of them, in the order in which an outcome shows them.
var quantities = []quantity{
	{name: "time", unit: inTime, world: func(o *Outcome) float64 { return float64(o.Result.VirtualMs) }},
	{name: "rounds", unit: inCounts, world: func(o *Outcome) float64 { return float64(o.Result.Rounds) }},
	{name: "loss", unit: inLoss, world: func(o *Outcome) float64 { return o.Result.Loss },
		note: func(o *Outcome) string { return "from " + inLoss.show(o.Result.LossStart) }},

	{name: "trained", unit: inCounts, world: (*Outcome).trained},
	{name: "folded", unit: inCounts, world: (*Outcome).folded},
	{name: "folded", unit: inShare, world: ofTrained((*Outcome).folded)},
	{name: "not counted", unit: inCounts, world: (*Outcome).uncounted, rare: true},
	{name: "unpublished", unit: inCounts, world: (*Outcome).unpublished},
	{name: "unpublished", unit: inShare, world: ofTrained((*Outcome).unpublished)},
	{name: "in flight", unit: inCounts, world: (*Outcome).inFlight},
	{name: "discarded", unit: inCounts, world: (*Outcome).discarded, node: of(func(r sim.Report) float64 { return math.Round(r.Tokens.Discarded) })},
	{name: "discarded", unit: inShare, world: ofTrained((*Outcome).discarded)},
	{name: "lost", unit: inCounts, world: (*Outcome).lost, node: of(func(r sim.Report) float64 { return math.Round(r.Tokens.Lost) })},
	{name: "lost", unit: inShare, world: ofTrained((*Outcome).lost)},
	{name: "unaccounted", unit: inCounts, world: (*Outcome).unaccounted},
	{name: "unaccounted", unit: inShare, world: ofTrained((*Outcome).unaccounted)},

	{name: "deltas", unit: inCounts, world: func(o *Outcome) float64 { return float64(o.Result.Counts.Deltas) }},
	{name: "late share", unit: inShare, fits: true, world: func(o *Outcome) float64 { return o.Result.Fit.Late },
		note: func(*Outcome) string { return "of deltas that others made" }},
	{name: "planned", unit: inCounts, fits: true, world: mean(planned), node: of(planned), note: func(*Outcome) string { return "steps of a delta, on average" }},
	{name: "over budget", unit: inShare, fits: true, world: func(o *Outcome) float64 { return o.Result.Fit.Over }},
	{name: "end", unit: inTime, fits: true, world: func(o *Outcome) float64 { return float64(o.Result.Fit.EndMs) },
		note: func(*Outcome) string { return "from the last step until all knew that the run is over" }},

	{name: "late", unit: inCounts, world: sum(func(r sim.Report) float64 { return float64(r.Late) }),
		note: func(*Outcome) string { return "over all nodes" }},
	{name: "returned", unit: inCounts, world: sum(func(r sim.Report) float64 { return float64(r.Did.Returns) })},
	{name: "unwritten", unit: inCounts, world: sum(func(r sim.Report) float64 { return float64(r.Did.Unwritten) })},
	{name: "refolds", unit: inCounts, world: sum(refolds), node: of(refolds),
		note: func(*Outcome) string { return "over all nodes" }},
	{name: "snapshots", unit: inCounts, world: sum(snapshots), node: of(snapshots)},
	{name: "files damaged", unit: inCounts, world: func(o *Outcome) float64 { return float64(o.Result.Counts.FilesDamaged) }},

	{name: "dropped", unit: inCounts, rare: true, world: func(o *Outcome) float64 { return float64(o.Result.Counts.PayloadsDropped) }},
	{name: "left behind", unit: inCounts, rare: true, world: func(o *Outcome) float64 { return float64(o.Result.Counts.LeftBehind) }},

	{name: "steps", unit: inCounts, node: of(func(r sim.Report) float64 { return float64(r.Did.Steps) })},
	{name: "share", unit: inShare, node: func(o *Outcome, r sim.Report) float64 { return r.Tokens.Folded / max(o.folded(), 1) }},
	{name: "idle", unit: inTime, world: func(o *Outcome) float64 { return float64(o.idlest().Idle) }, node: of(idle),
		note: (*Outcome).whoIdles},
	{name: "one chain", unit: inTime, world: func(o *Outcome) float64 { return o.slowest(together).after(together) }, note: func(o *Outcome) string { return o.afterWhat(together) }},
	{name: "one chain", unit: inRounds, world: (*Outcome).mostRounds},
	{name: "settled", unit: inTime, world: func(o *Outcome) float64 { return float64(o.Result.AgreedMs) },
		note: func(*Outcome) string { return "from the last event to one chain" }},
	{name: "settled", unit: inRounds, world: func(o *Outcome) float64 { return float64(o.Result.AgreedIn) }},
	{name: "contributing", unit: inTime, world: func(o *Outcome) float64 { return o.slowest(contributing).after(contributing) }, note: func(o *Outcome) string { return o.afterWhat(contributing) }},
	{name: "received", unit: inBytes, world: mean(received), node: of(received),
		note: func(*Outcome) string { return "a node" }},
}

func quantityNames() (names []string) {
	for _, q := range quantities {
		if len(names) == 0 || names[len(names)-1] != q.name {
			names = append(names, q.name)
		}
	}
	for _, s := range sets {
		names = append(names, s.name)
	}
	return names
}

// of is the quantity in an outcome: of a node, or with -1 of the world.
func (q quantity) of(o *Outcome, node int) float64 {
	switch {
	case node < 0:
		return q.world(o)
	case node < len(o.Reports):
		return q.node(o, o.Reports[node])
	}
	return math.NaN()
}

func refolds(r sim.Report) float64   { return float64(r.Did.Refolds) }
func snapshots(r sim.Report) float64 { return float64(r.Did.Installs) }
func idle(r sim.Report) float64      { return float64(r.Idle) }
func planned(r sim.Report) float64   { return float64(r.Planned) }
func received(r sim.Report) float64  { return float64(r.Did.BytesIn) }

// of makes a quantity of a node from what does not depend on others.
func of(what func(sim.Report) float64) func(*Outcome, sim.Report) float64 {
	return func(_ *Outcome, r sim.Report) float64 { return what(r) }
}

// sum adds up honest nodes.
func sum(of func(sim.Report) float64) func(*Outcome) float64 {
	return func(o *Outcome) (total float64) {
		for _, r := range o.honest() {
			total += of(r)
		}
		return total
	}
}

func mean(of func(sim.Report) float64) func(*Outcome) float64 {
	return func(o *Outcome) float64 { return sum(of)(o) / float64(max(len(o.honest()), 1)) }
}

func ofTrained(of func(*Outcome) float64) func(*Outcome) float64 {
	return func(o *Outcome) float64 { return of(o) / max(o.trained(), 1) }
}

// set is a set of nodes that an outcome shows.
type set struct {
	name string
	of   func(o *Outcome) []int
}

var sets = []set{
	{"marked", func(o *Outcome) []int { return o.anyOf(func(r sim.Report) []int { return r.Marks }) }},
	{"excluded", func(o *Outcome) []int { return o.anyOf(func(r sim.Report) []int { return r.Excludes }) }},
	{"turned away", (*Outcome).turnedAway},
}
