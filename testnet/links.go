package testnet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/testnet/fault"
	"atoll/testnet/nodelink"
	"atoll/testnet/shaping"
)

// This file holds what the links of a world's nodes are made: --link and the verb link.

// parseLinks reads what --link is given, once or more often.
func parseLinks(texts []string) (nodelink.Set, error) {
	set, err := nodelink.Parse(texts, maxNodes)
	if err != nil {
		return nil, fmt.Errorf("--link: %w", err)
	}
	return set, nil
}

// checkLinkTargets returns an error for a node that there will never be.
func checkLinkTargets(set nodelink.Set, all int) error {
	for _, l := range set {
		if n := l.Highest(); n >= all {
			return fmt.Errorf("--link names node %d: there are only nodes 0 to %d, including those that join", n, all-1)
		}
	}
	return nil
}

// shaped says whether the world makes links of its own.
func (w *world) shaped() bool {
	return len(w.links) > 0 || slices.ContainsFunc(w.chaos, func(s *scheduled) bool { return s.Verb == fault.Link || s.Verb == fault.Loss })
}

// shape is what a process makes of its link when it starts; nil in a world whose links are as they are.
func (w *world) shape(link shaping.Link) *shaping.Link {
	if !w.shaped() {
		return nil
	}
	return &link
}

// changedLink is the link of a node with other traits; without any it is what it was at the
// start.
func changedLink(set nodelink.Set, node int, traits []string) (shaping.Link, error) {
	link := set.Of(node)
	if len(traits) == 0 {
		return link, nil
	}
	return link.Change(strings.Join(traits, ","))
}

// linkTraits are those of a link that an event changes; none if it ends such a change.
func linkTraits(e fault.Event) []string {
	if e.Verb == fault.Loss {
		return []string{lossTrait + fault.Number(e.Percent) + "%"}
	}
	return e.Detail
}

// lossTrait is how the losses of a link are written.
const lossTrait = "loss="

// changeLink does an event to the link of a node. Losses stay when another link comes or goes, if
// that says nothing of them.
func (w *world) changeLink(m *member, e fault.Event) (err error) {
	if e.Verb == fault.Loss {
		m.lossy = linkTraits(e)
	} else if m.traits = e.Detail; slices.ContainsFunc(e.Detail, func(trait string) bool { return strings.HasPrefix(trait, lossTrait) }) {
		m.lossy = nil
	}
	m.link, err = changedLink(w.links, m.index, slices.Concat(m.traits, m.lossy))
	return err
}

// checkLinks refuses a link that a node cannot have.
func (c chaos) checkLinks(set nodelink.Set, nodes int) error {
	for _, e := range c {
		whom := e.Nodes
		if e.Node() == fault.Any {
			whom = numbers(nodes)
		}
		for _, n := range whom {
			if _, err := changedLink(set, n, linkTraits(e)); (e.Verb == fault.Link || e.Verb == fault.Loss) && err != nil {
				return fmt.Errorf("--chaos %q: %w", e, err)
			}
		}
	}
	return nil
}

// numbers has all nodes that start together.
func numbers(nodes int) (all []int) {
	for i := range nodes {
		all = append(all, i)
	}
	return all
}

// capacity is what a node's uplink could have carried while its processes ran.
type capacity struct {
	bytes float64
	at    time.Time // until then
}

// addCapacity goes on to count what uplinks could carry.
func (w *world) addCapacity(now time.Time) {
	for _, m := range w.members {
		if m.current() != nil && !m.could.at.IsZero() {
			m.could.bytes += float64(m.link.Up) * now.Sub(m.could.at).Seconds()
		}
		m.could.at = now
	}
}

// describeLink fills in what a node's link was, and how much of it was used.
func (w *world) describeLink(m *member, row *NodeReport) {
	if !w.shaped() {
		return
	}
	row.Link = w.links.Of(m.index).String()
	if m.could.bytes == 0 {
		return
	}
	sent := uint64(0)
	for _, l := range m.lives {
		sent += l.last.Net.SentBytes
	}
	row.LinkUse = measured(float64(sent) / m.could.bytes)
}

// linkText says what links were made, and how much of each uplink was used.
func (r Report) linkText() string {
	var used []string
	for _, n := range r.NodesReport {
		if n.LinkUse != nil {
			used = append(used, fmt.Sprintf("%s %.0f %%", n.Name, 100**n.LinkUse))
		}
	}
	if len(used) == 0 {
		return r.Link
	}
	return r.Link + "; of what uplinks could carry, " + strings.Join(used, ", ")
}
