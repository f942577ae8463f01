// Package nodelink reads which nodes of a world have which links: what --link is given, of a
// testnet and of the simulator.
package nodelink

import (
	"fmt"
	"slices"
	"strings"

	"atoll/testnet/fault"
	"atoll/testnet/shaping"
)

// Set says which node has which link. The last that names a node wins.
type Set []Link

// Link is the link of some nodes.
type Link struct {
	Text string // LINK, or NODES:LINK
	Targets
	shaping.Link
}

// Targets are the nodes that something is said of, as a fault names them; nil = all.
type Targets []int

// Parse reads LINK, or NODES:LINK for these nodes alone. Numbers of nodes are below maxNodes.
func Parse(texts []string, maxNodes int) (s Set, err error) {
	for _, text := range texts {
		l := Link{Text: text}
		names, link, named := strings.Cut(text, ":")
		if !named {
			link = text
		} else if l.Targets, err = Nodes(names, maxNodes); err != nil {
			return nil, err
		}
		if link == "" {
			return nil, fmt.Errorf("%q names no link; write it like rate=100mbit,delay=40ms or 3:up=5mbit,down=100mbit", text)
		}
		if l.Link, err = shaping.Parse(link); err != nil {
			return nil, err
		}
		s = append(s, l)
	}
	return s, nil
}

// Nodes reads numbers of nodes such as 3 or 0,2-5.
func Nodes(text string, maxNodes int) (Targets, error) {
	r := &fault.Reader{File: "nodes", Words: strings.Fields(text), MaxNodes: maxNodes}
	nodes := r.Nodes()
	r.End()
	if r.Err != nil {
		return nil, r.Err
	}
	return nodes, nil
}

// Of is the link of a node; NoNode has the link that all have.
func (s Set) Of(node int) (link shaping.Link) {
	for _, l := range s {
		if l.Has(node) {
			link = l.Link
		}
	}
	return link
}

// NoNode stands for a process that is not one of the nodes.
const NoNode = fault.Any

// Has says whether a node is among them.
func (t Targets) Has(node int) bool {
	return t == nil || slices.Contains(t, fault.All) || slices.Contains(t, node)
}

// Highest is the highest number of a node among them, 0 if none is named.
func (t Targets) Highest() int { return slices.Max(append(slices.Clip([]int(t)), 0)) }
