package scenario

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"atoll/node/core"
	"atoll/testnet/fault"
	"atoll/testnet/sim"
)

// honest are the reports of all nodes that do not lie.
func (o *Outcome) honest() []sim.Report {
	return slices.DeleteFunc(slices.Clone(o.Reports), func(r sim.Report) bool { return r.Liar })
}

func (o *Outcome) trained() float64 { return float64(o.Result.Trained) }

// folded are the tokens of the deltas in the chain, as far as some node has all of it.
func (o *Outcome) folded() float64 {
	if all := o.tokens(func(t sim.Tokens) float64 { return t.Folded }); all > 0 {
		return all
	}
	return float64(o.Result.Tokens)
}

// uncounted are folded tokens that count for no budget: of who made more than twice what is usual in its round.
func (o *Outcome) uncounted() float64 {
	if x := o.folded() - float64(o.Result.Tokens); x >= rounding*float64(len(o.Reports)) {
		return x
	}
	return 0
}

func (o *Outcome) unpublished() float64 {
	return o.tokens(func(t sim.Tokens) float64 { return t.Pending })
}
func (o *Outcome) inFlight() float64 {
	return o.tokens(func(t sim.Tokens) float64 { return t.InFlight })
}
func (o *Outcome) discarded() float64 {
	return o.tokens(func(t sim.Tokens) float64 { return t.Discarded })
}
func (o *Outcome) lost() float64 { return o.tokens(func(t sim.Tokens) float64 { return t.Lost }) }

// unaccounted are the tokens that are in no column: of nodes that are gone or
// down, and those whose fate nobody kept. It is negative where tokens are in two.
func (o *Outcome) unaccounted() float64 {
	x := o.trained() - o.folded() - o.unpublished() - o.inFlight() - o.discarded() - o.lost()
	if math.Abs(x) < rounding*float64(len(o.Reports)) {
		return 0
	}
	return x
}

// rounding is what a mean over fragments may be off, in tokens.
const rounding = 2

// tokens adds up a column over honest nodes.
func (o *Outcome) tokens(column func(sim.Tokens) float64) float64 {
	return math.Round(sum(func(r sim.Report) float64 { return column(r.Tokens) })(o))
}

// anyOf is the union over honest nodes of the nodes that they name.
func (o *Outcome) anyOf(named func(sim.Report) []int) (nodes []int) {
	for _, r := range o.honest() {
		nodes = append(nodes, named(r)...)
	}
	slices.Sort(nodes)
	return slices.Compact(nodes)
}

// turnedAway are the nodes that everybody refused and that never got in.
func (o *Outcome) turnedAway() (nodes []int) {
	for _, r := range o.Reports {
		if r.Gone && r.Phase != core.Ready && len(r.Refused) > 0 {
			nodes = append(nodes, r.Index)
		}
	}
	return nodes
}

// idlest is the honest node that stood still for longest.
func (o *Outcome) idlest() (most sim.Report) {
	for _, r := range o.honest() {
		if r.Idle > most.Idle {
			most = r
		}
	}
	return most
}

func (o *Outcome) whoIdles() string {
	if n := o.idlest(); n.Idle > 0 {
		return fmt.Sprintf("node %d", n.Index)
	}
	return ""
}

// said are what honest nodes say of liars, sorted.
func (o *Outcome) said() []string {
	lines := make([]string, 0, len(o.Said))
	for text := range o.Said {
		lines = append(lines, text)
	}
	slices.Sort(lines)
	return lines
}

// refusals are what nodes say of those with which they can agree on nothing.
func (o *Outcome) refusals() (lines []string) {
	type pair struct{ by, of []int }
	pairs := map[string]*pair{}
	for _, r := range o.Reports {
		for of, why := range r.Refused {
			if pairs[why] == nil {
				pairs[why] = &pair{}
			}
			pairs[why].by, pairs[why].of = append(pairs[why].by, r.Index), append(pairs[why].of, of)
		}
	}
	for why, p := range pairs {
		lines = append(lines, fmt.Sprintf("by %s of %s: %s", unique(p.by), unique(p.of), why))
	}
	slices.Sort(lines)
	return lines
}

func unique(nodes []int) string {
	slices.Sort(nodes)
	return people(slices.Compact(nodes))
}

// aspect is one of the things that a recovery consists of.
type aspect int

const (
	together     aspect = iota // all have one chain
	contributing               // what the node made since is folded
)

// after is how long an aspect took; NaN if it is none of this recovery.
func (r Recovery) after(a aspect) float64 {
	switch {
	case r.At == 0 && r.Kind == "":
		return 0 // there was nothing to recover from
	case a == together:
		return r.TogetherMs
	}
	return r.ContributeMs
}

// slowest is the recovery that took longest.
func (o *Outcome) slowest(a aspect) (slowest Recovery) {
	for _, r := range o.Recoveries {
		if r.after(a) > slowest.after(a) {
			slowest = r
		}
	}
	return slowest
}

func (o *Outcome) mostRounds() (rounds float64) {
	for _, r := range o.Recoveries {
		rounds = max(rounds, float64(r.Rounds))
		if math.IsInf(r.TogetherMs, 1) {
			rounds = math.Inf(1)
		}
	}
	return rounds
}

// afterWhat says what the slowest recovery was from.
func (o *Outcome) afterWhat(a aspect) string {
	r := o.slowest(a)
	if r.after(a) == 0 {
		return ""
	}
	return "after " + r.String()
}

func (r Recovery) String() string {
	if r.Node < 0 {
		return fmt.Sprintf("the %s at %s", string(r.Kind), seconds(float64(r.At)))
	}
	return fmt.Sprintf("the %s of %d at %s", string(r.Kind), r.Node, seconds(float64(r.At)))
}

// idleEvents fails if some of what the script lets happen had nothing to do: a
// kill of a node that is down is a slip.
func (o *Outcome) idleEvents() error {
	want := map[fault.Verb]int{}
	for _, f := range o.faults {
		want[f.Kind]++
	}
	for _, k := range sim.Kinds {
		if did := o.Result.Counts.Faults[k]; did < want[k] {
			return fmt.Errorf("%d of %d events %q found nothing to do (a kill of what is down, a start of what is up): correct the script", want[k]-did, want[k], string(k))
		}
	}
	return nil
}

// String is the outcome as scripts hold it.
func (o *Outcome) String() string {
	if b := o.Result.Check; b != "" {
		head, _, _ := strings.Cut(o.Result.Error, "\n")
		return fmt.Sprintf("promises      broken: %s\n", head)
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%-14sall kept, one chain and one state at the end\n", "promises")
	for i, q := range quantities {
		if q.world == nil || q.rare && q.world(o) == 0 || q.fits && !o.long || i > 0 && quantities[i-1].name == q.name && quantities[i-1].world != nil {
			continue
		}
		o.writeQuantity(&b, q, i)
	}
	for _, s := range sets {
		fmt.Fprintf(&b, "%-14s%s\n", s.name, people(s.of(o)))
	}
	o.writeTexts(&b)
	o.writeRecoveries(&b)
	o.writeNodes(&b)
	return b.String()
}

// writeQuantity writes a number, the same in its other unit, and its note.
func (o *Outcome) writeQuantity(b *strings.Builder, q quantity, i int) {
	parts := []string{q.unit.show(q.world(o))}
	if i+1 < len(quantities) && quantities[i+1].name == q.name && q.world(o) != 0 {
		parts = append(parts, quantities[i+1].unit.show(quantities[i+1].world(o)))
	}
	if q.note != nil {
		if note := q.note(o); note != "" {
			parts = append(parts, note)
		}
	}
	fmt.Fprintf(b, "%-14s%s\n", q.name, strings.Join(parts, ", "))
}

func (o *Outcome) writeTexts(b *strings.Builder) {
	for _, text := range o.said() {
		fmt.Fprintf(b, "%-14s%s, %d times\n", "said", text, o.Said[text])
	}
	for _, text := range o.refusals() {
		fmt.Fprintf(b, "%-14s%s\n", "refusal", text)
	}
}

// writeRecoveries sums up how long it took after each kind of event.
func (o *Outcome) writeRecoveries(b *strings.Builder) {
	kinds := map[fault.Verb][]Recovery{}
	for _, r := range o.Recoveries {
		kinds[r.Kind] = append(kinds[r.Kind], r)
	}
	if len(kinds) == 0 {
		return
	}
	fmt.Fprintf(b, "\n%-14s%6s  %-22s%s\n", "after", "times", "one chain", "contributing")
	for _, k := range sim.Kinds {
		if all := kinds[k]; len(all) > 0 {
			row := fmt.Sprintf("%-14s%6d  %-22s%s", string(k), len(all), spread(all, together), spread(all, contributing))
			b.WriteString(strings.TrimRight(row, " ") + "\n")
		}
	}
}

// spread is the median of an aspect and the most, or nothing.
func spread(all []Recovery, a aspect) string {
	var times []float64
	for _, r := range all {
		if t := r.after(a); !math.IsNaN(t) {
			times = append(times, t)
		}
	}
	slices.Sort(times)
	if len(times) == 0 {
		return ""
	}
	median, most := times[(len(times)-1)/2], times[len(times)-1]
	if len(times) == 1 {
		return seconds(most)
	}
	return fmt.Sprintf("%s, most %s", seconds(median), seconds(most))
}

// writeNodes writes a row for each node.
func (o *Outcome) writeNodes(b *strings.Builder) {
	fmt.Fprintf(b, "\n%-6s%6s%8s%7s%9s%11s%10s  %s\n", "node", "steps", "share", "idle", "refolds", "snapshots", "received", "is")
	for _, r := range o.Reports {
		share := "?"
		if o.WholeChain {
			share = inShare.show(r.Tokens.Folded / max(o.folded(), 1))
		}
		row := fmt.Sprintf("%-6d%6d%8s%7s%9d%11d%10s  %s", r.Index, r.Did.Steps, share, seconds(float64(r.Idle)),
			r.Did.Refolds, r.Did.Installs, megabytes(float64(r.Did.BytesIn)), whatIs(r))
		b.WriteString(strings.TrimRight(row, " ") + "\n")
	}
}

// whatIs says what is special about a node.
func whatIs(r sim.Report) string {
	switch {
	case r.Liar:
		return "a liar"
	case r.Gone && r.Phase != core.Ready:
		return "turned away"
	case r.Gone:
		return "gone"
	case !r.Up:
		return "down"
	case r.Phase != core.Ready:
		return "not in yet"
	case r.Observer:
		return "an observer"
	}
	return ""
}
