package exhaust

import (
	"cmp"
	"fmt"
	"slices"
)

// choice is one thing that may happen next.
type choice struct {
	kind choiceKind
	at   int // node, or place among the messages under way
	what flight
}

type choiceKind uint8

const (
	step choiceKind = iota
	tornStep
	tick
	deliver
	deliverCopy
	drop
	crash
	restart
)

// choices are all things that may happen next.
func (s *search) choices(w *world) []choice {
	var cs []choice
	add := func(ok bool, kind choiceKind, at int) {
		if ok {
			c := choice{kind: kind, at: at}
			if kind == deliver || kind == deliverCopy || kind == drop {
				c.what = w.flying[at]
			}
			cs = append(cs, c)
		}
	}
	b, u := s.bounds, w.used
	for i, l := range w.nodes() {
		maySteps := l.up && l.may && int(u.steps) < b.Steps
		mayCrash := l.up && int(u.crashes) < b.Crashes
		add(maySteps, step, i)
		add(maySteps && mayCrash, tornStep, i)
		add(l.up && int(u.ticks) < b.Ticks, tick, i)
		add(mayCrash, crash, i)
		add(!l.up, restart, i)
	}
	for j, f := range w.flying {
		if j > 0 && w.flying[j-1] == f {
			continue // a copy: the same
		}
		add(true, deliver, j)
		add(int(u.copies) < b.Copies, deliverCopy, j)
		add(int(u.drops) < b.Drops, drop, j)
	}
	return cs
}

// apply returns the state after a choice, and whether it made sense.
func (s *search) apply(before *world, c choice) (w *world, possible bool) {
	w = before.clone()
	switch c.kind {
	case step:
		w.used.steps++
		s.run(w, c.at, input{kind: inStep})
	case tornStep:
		w.used.steps++
		w.used.crashes++
		s.run(w, c.at, input{kind: inTornStep})
		if w.at[c.at].up {
			return w, false // nothing was published in this step
		}
		s.parted(w, c.at)
	case tick:
		w.used.ticks++
		s.run(w, c.at, input{kind: inTick})
	case deliver:
		s.deliver(w, c.at, false)
	case deliverCopy:
		w.used.copies++
		s.deliver(w, c.at, true)
	case drop:
		w.used.drops++
		w.flying = slices.Delete(w.flying, c.at, c.at+1)
	case crash:
		w.used.crashes++
		s.run(w, c.at, input{kind: inCrash})
		s.parted(w, c.at)
	case restart:
		s.start(w, c.at)
	}
	return w, true
}

// start boots a node and connects it with all that are up.
func (s *search) start(w *world, i int) {
	s.run(w, i, input{kind: inBoot})
	for j, l := range w.nodes() {
		if j != i && l.up {
			s.run(w, i, input{kind: inPeerUp, from: j})
			s.run(w, j, input{kind: inPeerUp, from: i})
		}
	}
}

// parted ends the connections of a node that is down, and what was on its way to
// it.
func (s *search) parted(w *world, i int) {
	w.flying = slices.DeleteFunc(w.flying, func(f flight) bool { return f.to == i })
	for j, l := range w.nodes() {
		if j != i && l.up {
			s.run(w, j, input{kind: inPeerDown, from: i})
		}
	}
}

// deliver gives a delta that is under way to its node.
func (s *search) deliver(w *world, at int, again bool) {
	f := w.flying[at]
	if !again {
		w.flying = slices.Delete(w.flying, at, at+1)
	}
	s.run(w, f.to, input{kind: inMessage, from: s.senders[f.message], bytes: s.messages[f.message]})
}

// errand is an input on its way to a node, without delay.
type errand struct {
	to int
	in input
}

// run gives a node an input, and carries heartbeats, requests and answers to and fro
// until there are no more. Deltas stay under way.
func (s *search) run(w *world, to int, in input) {
	queue := []errand{{to, in}}
	for len(queue) > 0 {
		e := queue[0]
		queue = queue[1:]
		if l := w.at[e.to]; l.up || e.in.kind == inBoot {
			t := s.transit(l, e.in)
			w.at[e.to] = t.to
			for _, o := range t.out {
				queue = append(queue, s.errands(w, e.to, o)...)
			}
		}
		if len(queue) == 0 {
			queue = unanswered(w)
		}
	}
}

// errands are the inputs that an output of a node becomes.
func (s *search) errands(w *world, from int, o output) []errand {
	switch o.kind {
	case outCall:
		if !w.at[o.to].up {
			return []errand{{from, input{kind: inAnswer, call: o.call}}}
		}
		return []errand{{o.to, input{kind: inRequest, from: from, call: o.call, bytes: o.bytes}}}
	case outAnswer:
		return []errand{{o.to, input{kind: inAnswer, call: o.call, bytes: o.bytes}}}
	case outReconnect:
		return reconnect(w, from, o.to)
	}
	var out []errand
	isDelta := s.open(o.bytes).Header != nil
	for to, l := range w.nodes() {
		switch {
		case to == from || !l.up:
		case isDelta:
			w.flying = append(w.flying, flight{to, s.messageOf(o.bytes, from)})
			slices.SortFunc(w.flying, func(a, b flight) int {
				return cmp.Or(cmp.Compare(a.to, b.to), cmp.Compare(a.message, b.message))
			})
		default:
			out = append(out, errand{to, input{kind: inMessage, from: from, bytes: o.bytes}})
		}
	}
	return out
}

// reconnect closes a connection and makes it anew, with one that is up.
func reconnect(w *world, a, b int) []errand {
	if !w.at[b].up {
		return nil
	}
	return []errand{
		{a, input{kind: inPeerDown, from: b}}, {b, input{kind: inPeerDown, from: a}}, {a, input{kind: inPeerUp, from: b}}, {b, input{kind: inPeerUp, from: a}},
	}
}

// unanswered ends the first call that nobody will answer: a request that is
// parked, as the payload may still come, or one to a node that died.
func unanswered(w *world) []errand {
	for i, l := range w.nodes() {
		if l.up && len(l.open) > 0 {
			return []errand{{i, input{kind: inAnswer, call: slices.Min(l.open)}}}
		}
	}
	return nil
}

// messageOf numbers the deltas by their bytes.
func (s *search) messageOf(bytes string, from int) int {
	n, known := s.names[bytes]
	if !known {
		n = len(s.messages)
		s.names[bytes] = n
		s.messages, s.senders = append(s.messages, bytes), append(s.senders, from)
	}
	return n
}

// name shows a choice in the way to a broken promise.
func (s *search) name(c choice) string {
	if c.kind == deliver || c.kind == deliverCopy || c.kind == drop {
		h := s.open(s.messages[c.what.message]).Header.Header
		verb := map[choiceKind]string{deliver: "deliver", deliverCopy: "deliver a copy of", drop: "drop"}[c.kind]
		return fmt.Sprintf("%s node %d's delta of round %d to node %d", verb, s.senders[c.what.message], h.Round, c.what.to)
	}
	return fmt.Sprintf("node %d: %s", c.at, [...]string{step: "step", tornStep: "crash within a step, the delta just durable",
		tick: "tick", crash: "crash", restart: "restart"}[c.kind])
}
