package fault

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Nodes that stand for others in an Event.
const (
	Any = -1 // the one that chance picks; as the group of a partition, sides that it picks
	All = -2 // all that start together
)

// When is a moment of a run.
type When struct {
	ByShare bool
	Percent float64       // of the token budget, if ByShare
	After   time.Duration // since the start, otherwise
}

// At is a moment by the clock.
func At(d time.Duration) When { return When{After: d} }

// String is the moment as an event has it after the @.
func (w When) String() string {
	if w.ByShare {
		return Number(w.Percent) + "%"
	}
	return w.After.String()
}

// Reached says whether the moment has come, so long after the start and with so
// many percent of the budget folded.
func (w When) Reached(after time.Duration, percent float64) bool {
	if w.ByShare {
		return percent >= w.Percent
	}
	return after >= w.After
}

// Event is one thing that happens, once or again and again.
type Event struct {
	Verb    Verb
	Nodes   []int         // to each of them; of Cut and Mend the senders
	To      []int         // Cut and Mend: the receivers
	Groups  [][]int       // Partition; nil = sides that chance picks
	Count   int           // Join: so many
	Factor  float64       // Slow: x4 is 4
	Percent float64       // Loss: 1% is 1
	By      time.Duration // Skew
	Kind    string        // Attack
	Detail  []string      // words for the executor: a link of Network, traits of Join, Upgrade and Link, a rank of KillLearner

	At     When          // with Every: when it begins
	Until  *When         // when it is undone; with Every: before which it ends; nil = never
	For    time.Duration // after which it is undone; 0 = not
	Every  time.Duration // 0 = once
	InTurn bool          // with Every: to one of its nodes each time
}

// Node is the one that the event befalls, Any if chance picks it or it befalls no node.
func (e Event) Node() int {
	if len(e.Nodes) == 0 {
		return Any
	}
	return e.Nodes[0]
}

// Rank is the process of a data-parallel group that KillLearner names, "" for the whole learner.
func (e Event) Rank() string {
	if e.Verb != KillLearner || len(e.Detail) < 2 {
		return ""
	}
	return e.Detail[1]
}

// Named are the nodes that the event names by number.
func (e Event) Named() (nodes []int) {
	for _, group := range append([][]int{e.Nodes, e.To}, e.Groups...) {
		for _, n := range group {
			if n >= 0 {
				nodes = append(nodes, n)
			}
		}
	}
	return nodes
}

// String is the event as people write it: Parse returns the same event for it.
func (e Event) String() string {
	words := append([]string{string(e.Verb)}, e.how()...)
	switch {
	case e.Every > 0:
		words = append(words, "every "+e.Every.String())
		if e.Until != nil {
			words = append(words, "from "+e.At.String()+" to "+e.Until.String())
		}
	case e.Until != nil:
		words = append(words, "@"+e.At.String()+".."+e.Until.String())
	default:
		words = append(words, "@"+e.At.String())
	}
	if e.InTurn {
		words = append(words, "in turn")
	}
	if e.For > 0 {
		words = append(words, "for "+e.For.String())
	}
	return strings.Join(words, " ")
}

// how is what stands between the verb and when.
func (e Event) how() (words []string) {
	switch {
	case e.Verb == Attack:
		words = append(words, e.Kind)
	case e.Verb == Partition && e.Groups == nil:
		return []string{"any"}
	case e.Verb == Join && (e.Count != 1 || len(e.Detail) > 0 && isNumber(e.Detail[0])):
		words = append(words, strconv.Itoa(e.Count))
	case e.Verb == Partition:
		words = append(words, groups(e.Groups))
	}
	if len(e.Nodes) > 0 {
		words = append(words, nodes(e.Nodes))
	}
	switch e.Verb {
	case Cut, Mend:
		if len(e.To) > 0 {
			words[len(words)-1] += ">" + nodes(e.To)
		}
	case Slow:
		words = append(words, "x"+Number(e.Factor))
	case Loss:
		words = append(words, Number(e.Percent)+"%")
	case Skew:
		words = append(words, "by "+e.By.String())
	case Upgrade:
		words = append(words, "to")
	case Link:
		if len(e.Detail) == 0 {
			return words
		}
		return append(words, strings.Join(e.Detail, ","))
	}
	return append(words, e.Detail...)
}

func groups(gs [][]int) string {
	var sides []string
	for _, g := range gs {
		sides = append(sides, nodes(g))
	}
	return strings.Join(sides, "|")
}

func nodes(ns []int) string {
	words := make([]string, len(ns))
	for i, n := range ns {
		words[i] = strconv.Itoa(n)
		switch n {
		case Any:
			words[i] = "any"
		case All:
			words[i] = "all"
		}
	}
	return strings.Join(words, ",")
}

// Number writes a number without an exponent.
func Number(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// Schedule is a list of events.
type Schedule []Event

// String is the schedule as people write it: Parse returns the same for it.
func (s Schedule) String() string {
	parts := make([]string, len(s))
	for i, e := range s {
		parts[i] = e.String()
	}
	return strings.Join(parts, ", ")
}

// Can is what an executor can do.
type Can struct {
	Who     string // such as "a testnet"
	Verbs   []Verb
	Chance  bool            // any, and every without an end
	Shares  bool            // moments as shares of the budget
	Instead map[Verb]string // what to write instead of a verb
}

// Check returns an error for the first event that cannot be executed.
func (c Can) Check(s Schedule) error {
	for _, e := range s {
		if why := c.refuses(e); why != "" {
			return &Error{File: strconv.Quote(e.String()), Text: why}
		}
	}
	return nil
}

// refuses says why an event cannot be executed, and what to write; "" if it can.
func (c Can) refuses(e Event) string {
	can := false
	for _, v := range c.Verbs {
		can = can || v == e.Verb
	}
	switch {
	case !can && c.Instead[e.Verb] != "":
		return fmt.Sprintf("%s knows no %s: %s", c.Who, e.Verb, c.Instead[e.Verb])
	case !can:
		return fmt.Sprintf("%s knows no %s: use one of %s", c.Who, e.Verb, list(c.Verbs))
	case !c.Chance && (len(e.Nodes) > 0 && e.Node() == Any || e.Verb == Partition && e.Groups == nil):
		return fmt.Sprintf("%s leaves nothing to chance: name the nodes by number", c.Who)
	case !c.Chance && e.Every > 0 && e.Until == nil:
		return fmt.Sprintf("%s needs to know when this ends: write every %v from TIME to TIME", c.Who, e.Every)
	case !c.Shares && (e.At.ByShare || e.Until != nil && e.Until.ByShare):
		return fmt.Sprintf("%s has no shares of the tokens: write a time such as @20s", c.Who)
	}
	return ""
}
