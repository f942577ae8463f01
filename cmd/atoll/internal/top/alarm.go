package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"atoll/node/status"
)

// alarm is what is wrong with one of the nodes, "" if nothing is known to be: rather what does not pass by itself, then the newest.
func (h *History) alarm() (text string) {
	var worst status.Alarm
	for _, n := range h.nodes {
		for _, a := range n.Status.Alarms {
			newer := a.Since.After(worst.Since)
			if !n.Running || text != "" && (a.Passing() && !worst.Passing() || a.Passing() == worst.Passing() && !newer) {
				continue
			}
			if worst, text = a, a.Line(); len(h.nodes) > 1 {
				text = n.Name + ": " + text
			}
		}
	}
	return text
}

// states counts the nodes in each state.
func (h *History) states() string {
	counts := map[string]int{}
	for _, n := range h.nodes {
		counts[stateOf(n)]++
	}
	var parts []string
	for _, state := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%d %s", counts[state], state))
	}
	return strings.Join(parts, ", ")
}

func stateOf(n Node) string {
	switch {
	case n.Died:
		return "died"
	case !n.Running:
		return "ended"
	}
	return n.Status.Condition().Word
}
