package testnet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/gossip/shape"
	"atoll/testnet/fault"
)

// This file holds what the links of a world's nodes are made: --link and the verb link.

// links say which node has which link. The last one that names a node wins.
type links []nodeLink

// nodeLink is LINK, or NODES:LINK.
type nodeLink struct {
	nodes []int // nil = all
	shape.Link
}

// parseLinks reads what --link is given, once or more often.
func parseLinks(texts []string) (ls links, err error) {
	for _, text := range texts {
		l := nodeLink{}
		names, link, named := strings.Cut(text, ":")
		if !named {
			names, link = "", text
		} else if l.nodes, err = parseNodes(names); err != nil {
			return nil, fmt.Errorf("--link: %w", err)
		}
		if l.Link, err = shape.Parse(link); err == nil && link == "" {
			err = fmt.Errorf("%q names no link; write it like rate=100mbit,delay=40ms or 3:up=5mbit,down=100mbit", text)
		}
		if err != nil {
			return nil, fmt.Errorf("--link: %w", err)
		}
		ls = append(ls, l)
	}
	return ls, nil
}

// parseNodes reads numbers of nodes such as 3 or 0,2-5.
func parseNodes(text string) ([]int, error) {
	r := &fault.Reader{File: "nodes", Words: strings.Fields(text), MaxNodes: maxNodes}
	nodes := r.Nodes()
	r.End()
	if r.Err != nil {
		return nil, r.Err
	}
	return nodes, nil
}

// of is the link of a node; noNode has the link that all have.
func (ls links) of(node int) (link shape.Link) {
	for _, l := range ls {
		if l.nodes == nil || slices.Contains(l.nodes, fault.All) || slices.Contains(l.nodes, node) {
			link = l.Link
		}
	}
	return link
}

// noNode stands for the coordinator of a baseline, which is none.
const noNode = fault.Any

// coordinatorLink is what all nodes have that nothing is said of; nil in a world whose links
// are as they are.
func (w *world) coordinatorLink() *shape.Link {
	if !w.shaped() {
		return nil
	}
	link := w.links.of(noNode)
	return &link
}

// checkTargets returns an error for a node that there will never be.
func (ls links) checkTargets(all int) error {
	for _, l := range ls {
		if n := slices.Max(append(l.nodes, 0)); n >= all {
			return fmt.Errorf("--link names node %d: there are only nodes 0 to %d, including those that join", n, all-1)
		}
	}
	return nil
}

// shaped says whether the world makes links of its own.
func (w *world) shaped() bool {
	return len(w.links) > 0 || slices.ContainsFunc(w.chaos, func(s *scheduled) bool { return s.Verb == fault.Link })
}

// shapeArgument is what the process of a node is told of its link when it starts.
func (w *world) shapeArgument(link shape.Link) string {
	if !w.shaped() {
		return ""
	}
	return link.String()
}

// changed is the link of a node with other traits; without any it is what it was at the start.
func (ls links) changed(node int, traits []string) (shape.Link, error) {
	if len(traits) == 0 {
		return ls.of(node), nil
	}
	return ls.of(node).Change(strings.Join(traits, ","))
}

// checkLinks refuses a link that a node cannot have.
func (c chaos) checkLinks(ls links, nodes int) error {
	for _, e := range c {
		whom := e.Nodes
		if e.Node() == fault.Any {
			whom = numbers(nodes)
		}
		for _, n := range whom {
			if _, err := ls.changed(n, e.Detail); e.Verb == fault.Link && err != nil {
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
	row.Link = w.links.of(m.index).String()
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
