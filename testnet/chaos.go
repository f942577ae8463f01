package testnet

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"atoll/testnet/baseline"
)

// Verb is what chaos does.
type Verb string

// Verbs of a chaos spec.
const (
	Join      Verb = "join"      // a new node joins
	Leave     Verb = "leave"     // a node leaves in order
	Kill      Verb = "kill"      // a node dies without warning
	Start     Verb = "start"     // a node that left or died comes back
	Pause     Verb = "pause"     // a node stops running but keeps its connections
	Resume    Verb = "resume"    // and runs again
	Slow      Verb = "slow"      // a node takes so many times longer for a step
	Partition Verb = "partition" // groups of nodes cannot reach each other
	Loss      Verb = "loss"      // a node's link loses a share of its packets
	Corrupt   Verb = "corrupt"   // a bit of a node's model flips in its memory
	Byzantine Verb = "byzantine" // a node lies
	Random    Verb = "random"    // any of kill, pause, slow, partition, join and leave, again and again
)

// Any is the target of an event that takes whichever node it likes: of a
// partition, a split that chance makes.
const Any = -1

// When is a moment of a run.
type When struct {
	ByShare bool
	Percent float64       // of the token budget, if ByShare
	After   time.Duration // since the start, otherwise
}

// Event is one thing that chaos does, once at a moment or again and again.
type Event struct {
	Verb    Verb
	Node    int     // Any or a node's number; unused by Join, Random and a Partition with Groups
	Attack  string  // Byzantine: what the node does, such as "signflip"
	Factor  float64 // Slow: x4 is 4
	Percent float64 // Loss: 1% is 1
	Groups  [][]int // Partition; those it does not name reach everybody

	At    When
	Until *When         // Partition: when it heals
	Every time.Duration // 0 = once, at At
	Down  time.Duration // with Every: how long it lasts; unused by Random
}

// Chaos is a schedule of events.
type Chaos []Event

// String is the canonical spec: ParseChaos returns the same Chaos for it.
func (c Chaos) String() string {
	var parts []string
	for _, e := range c {
		parts = append(parts, e.String())
	}
	return strings.Join(parts, ", ")
}

// String is the event as a spec has it.
func (e Event) String() string {
	words := append([]string{string(e.Verb)}, e.arguments()...)
	switch {
	case e.Verb == Random:
		words = append(words, "every", e.Every.String())
	case e.Every > 0:
		words = append(words, "every", e.Every.String(), "down", e.Down.String())
	case e.Until != nil:
		words = append(words, "@"+e.At.String()+".."+e.Until.String())
	default:
		words = append(words, "@"+e.At.String())
	}
	return strings.Join(words, " ")
}

func (e Event) arguments() []string {
	switch e.Verb {
	case Join, Random:
		return nil
	case Slow:
		return []string{e.target(), "x" + number(e.Factor)}
	case Loss:
		return []string{e.target(), number(e.Percent) + "%"}
	case Byzantine:
		return []string{e.Attack, e.target()}
	case Partition:
		if e.Groups != nil {
			return []string{groups(e.Groups)}
		}
	}
	return []string{e.target()}
}

func (e Event) target() string {
	if e.Node == Any {
		return "any"
	}
	return strconv.Itoa(e.Node)
}

// String is the moment as a spec has it after the @.
func (w When) String() string {
	if w.ByShare {
		return number(w.Percent) + "%"
	}
	return w.After.String()
}

// reached says whether the moment has come, so long after the start and with so
// many percent of the budget folded.
func (w When) reached(after time.Duration, percent float64) bool {
	if w.ByShare {
		return percent >= w.Percent
	}
	return after >= w.After
}

func groups(gs [][]int) string {
	var sides []string
	for _, g := range gs {
		var nodes []string
		for _, n := range g {
			nodes = append(nodes, strconv.Itoa(n))
		}
		sides = append(sides, strings.Join(nodes, ","))
	}
	return strings.Join(sides, "|")
}

func number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// worksHere are the verbs that can be done, not only said.
var worksHere = []string{"join", "leave", "kill", "start", "pause", "resume", "slow", "partition", "corrupt", "random"}

// inThisVersion returns an error for what can be said but not done yet.
func (c Chaos) inThisVersion() error {
	for _, e := range c {
		if !slices.Contains(worksHere, string(e.Verb)) {
			return fmt.Errorf("--chaos %q: not in this version; it knows %s", e, strings.Join(worksHere, ", "))
		}
	}
	return nil
}

// inBaseline returns an error for what makes no sense in a baseline.
func (c Chaos) inBaseline(name string) error {
	if name == Atoll {
		return nil
	}
	for _, e := range c {
		switch {
		case e.Verb == Corrupt:
			return fmt.Errorf("--chaos %q: the baseline %s does not look for damaged memory", e, name)
		case name == baseline.Local && (e.Verb == Join || e.Verb == Random || e.Verb == Partition):
			return fmt.Errorf("--chaos %q: the baseline %s is one node, and stays it", e, name)
		}
	}
	return nil
}

// joins is how many nodes chaos adds.
func (c Chaos) joins() int {
	n := 0
	for _, e := range c {
		if e.Verb == Join {
			n++
		}
	}
	return n
}

// named are the nodes that an event is about by number.
func (e Event) named() []int {
	switch {
	case e.Verb == Join || e.Verb == Random || e.Groups == nil && e.Node == Any:
		return nil
	case e.Groups != nil:
		return slices.Concat(e.Groups...)
	}
	return []int{e.Node}
}

// checkTargets returns an error for a node that there will never be.
func (c Chaos) checkTargets(nodes int) error {
	all := nodes + c.joins()
	for _, e := range c {
		for _, n := range e.named() {
			if n >= all {
				return fmt.Errorf("--chaos %q: there are only nodes 0 to %d, those that join included", e, all-1)
			}
		}
	}
	return nil
}
