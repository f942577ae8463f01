package top

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"atoll/node/status"
)

// alarmFor is how long an alarming event stays at the top.
const alarmFor = 5 * time.Minute

// alarm is what is wrong, "" if nothing is known to be.
func (h *History) alarm() string {
	for _, e := range slices.Backward(h.events) {
		if status.Alarming(e.Kind) && h.now.Sub(e.At) < alarmFor {
			text := e.Kind
			if e.Peer != "" {
				text += " " + short(e.Peer)
			}
			if e.node != "" {
				text = e.node + ": " + text
			}
			return text + ": " + e.Text
		}
	}
	return h.partition()
}

// partition says that some of the peers are silent: of the node that hears least.
func (h *History) partition() string {
	var worst, others int
	var names []string
	for _, n := range h.nodes {
		if !n.Running || n.Status.Finished {
			continue
		}
		var quiet []string
		peers := 0
		for _, p := range n.Status.Peers {
			if p.Self || p.State == refused {
				continue
			}
			peers++
			if silent(p) {
				quiet = append(quiet, h.name(p))
			}
		}
		if len(quiet) > worst {
			worst, others, names = len(quiet), peers, quiet
		}
	}
	if worst == 0 {
		return ""
	}
	return fmt.Sprintf("%d of %s silent: %s: cut off, or switched off", worst, counted(others, "peer is", "peers are"), strings.Join(names, ", "))
}

// States of peers that are no state of a beat.
const (
	refused      = "refused"
	silentPrefix = "silent"
)

func silent(p status.Peer) bool { return strings.HasPrefix(p.State, silentPrefix) }

// livePeers counts the others that are heard.
func livePeers(s status.Snapshot) (n int) {
	for _, p := range s.Peers {
		if !p.Self && !silent(p) && p.State != refused {
			n++
		}
	}
	return n
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
	return n.Status.State
}
