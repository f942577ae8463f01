package testnet

import (
	"cmp"
	"fmt"
	"slices"
)

// checkPossible refuses a schedule that cannot happen as it is written: a node
// that leaves twice, or nobody left to go on. Where moments cannot be compared,
// or chance takes the node, only the end is looked at.
func (c Chaos) checkPossible(nodes int) error {
	if c.leftAtEnd(nodes) <= 0 {
		return fmt.Errorf("--chaos: no node is left at the end; let one stay")
	}
	if !c.ordered() {
		return nil
	}
	sorted := slices.Clone(c)
	slices.SortStableFunc(sorted, func(a, b Event) int { return a.At.compare(b.At) })
	state := map[int]string{}
	running := nodes
	for _, e := range sorted {
		if e.Verb == Join {
			running++
			continue
		}
		now := orDefault(state[e.Node], "running")
		next, ok := after[e.Verb][now]
		if !ok {
			return fmt.Errorf("--chaos %q: node %d is %s then", e, e.Node, now)
		}
		state[e.Node] = next
		if running += gain[e.Verb]; running == 0 {
			return fmt.Errorf("--chaos %q: no node is left then; let one stay", e)
		}
	}
	return nil
}

// after is what a node is after an event, by what it may be before.
var after = map[Verb]map[string]string{
	Leave:  {"running": "gone", "paused": "gone"},
	Kill:   {"running": "gone", "paused": "gone"},
	Start:  {"gone": "running"},
	Pause:  {"running": "paused"},
	Resume: {"paused": "running"},
}

// gain is by how many nodes an event makes the world larger.
var gain = map[Verb]int{Join: 1, Start: 1, Leave: -1, Kill: -1}

func (c Chaos) leftAtEnd(nodes int) int {
	for _, e := range c {
		nodes += gain[e.Verb]
	}
	return nodes
}

// ordered says whether it is known which event comes before which other and
// whom each is about.
func (c Chaos) ordered() bool {
	for _, e := range c {
		if e.At.ByShare != c[0].At.ByShare || e.Node == Any {
			return false
		}
	}
	return true
}

// compare orders moments of one kind.
func (w When) compare(other When) int {
	return cmp.Or(cmp.Compare(w.Percent, other.Percent), cmp.Compare(w.After, other.After))
}
