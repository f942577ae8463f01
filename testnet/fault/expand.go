package fault

import (
	"fmt"
	"slices"
	"strconv"
)

// MaxEvents is how many moments a schedule may come to: a slip of the pen must not make more.
const MaxEvents = 10_000

// Expand returns what an event comes to, each once and to one node: of all nodes those that
// start together, and of every moment until it ends. What is left to chance, a rate without an
// end and a node that is any, stays as it is.
func (e Event) Expand(nodes int) (all Schedule, err error) {
	e = e.resolved(nodes)
	if e.Every == 0 || e.Until == nil {
		return e.each(nil)
	}
	first, end := e.At.After, e.Until.After
	for k := 0; first < end; k++ {
		once := e
		once.At, once.Until, once.Every, once.InTurn = At(first), nil, 0, false
		if e.InTurn {
			once.Nodes = e.Nodes[k%len(e.Nodes):][:1]
		}
		if all, err = once.each(all); err != nil {
			return nil, err
		}
		first += e.Every
	}
	return all, nil
}

// each adds the event once for each of its nodes, or for each that joins.
func (e Event) each(all Schedule) (Schedule, error) {
	count := max(e.Count, len(e.Nodes), 1)
	if len(all)+count > MaxEvents {
		return nil, &Error{File: strconv.Quote(e.String()), Word: string(e.Verb), Text: fmt.Sprintf("this makes more than %d events", MaxEvents)}
	}
	for i := range count {
		one := e
		switch {
		case e.Verb == Join:
			one.Count = 1
		case len(e.Nodes) > 0:
			one.Nodes = e.Nodes[i : i+1 : i+1]
		}
		all = append(all, one)
	}
	return all, nil
}

// resolved has numbers for all nodes.
func (e Event) resolved(nodes int) Event {
	e.Nodes, e.To, e.Groups = resolve(e.Nodes, nodes), resolve(e.To, nodes), slices.Clone(e.Groups)
	for i, g := range e.Groups {
		e.Groups[i] = resolve(g, nodes)
	}
	return e
}

func resolve(list []int, nodes int) (out []int) {
	for _, n := range list {
		if n != All {
			out = append(out, n)
			continue
		}
		for i := range nodes {
			out = append(out, i)
		}
	}
	return out
}

// Undone splits an event into itself without an end and the event that ends it; there is none
// if it never ends. A factor that ends is 1; a link that ends has no words.
func (e Event) Undone() (begin Event, end *Event) {
	begin = e
	begin.Until, begin.For = nil, 0
	if e.For == 0 && e.Until == nil {
		return begin, nil
	}
	last := Event{Verb: e.Verb.undo(), Nodes: e.Nodes, To: e.To, At: At(e.At.After + e.For)}
	if e.Until != nil {
		last.At = *e.Until
	}
	if e.Verb == Slow {
		last.Factor = 1
	}
	return begin, &last
}
