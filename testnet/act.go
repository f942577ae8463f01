package testnet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/testnet/fault"
)

// doChaos does the events whose moment has come. One whose node is not in a
// state for it, such as a start while the killed process is still dying, comes
// up again.
func (w *world) doChaos(ctx context.Context, now time.Time) error {
	if w.link == "" || len(w.members) < w.cfg.Nodes || w.finished() {
		return nil
	}
	w.endChance()
	for _, s := range w.chaos {
		if err := w.doDue(ctx, s, now); err != nil {
			return fmt.Errorf("chaos %q: %w", s.Event, err)
		}
	}
	return nil
}

func (w *world) doDue(ctx context.Context, s *scheduled, now time.Time) error {
	after := now.Sub(w.began)
	switch {
	case s.done || s.mends != nil && !s.mends.done:
		return nil
	case s.begun:
		if s.Until.Reached(after, w.folded()) {
			w.merge(s, now)
		}
		return nil
	case !s.At.Reached(after, w.folded()):
		return nil
	}
	return w.do(ctx, s, now)
}

// endChance ends what chance does when it is time: what it broke is mended now,
// and what it has not done is left.
func (w *world) endChance() {
	if w.chanceOver || w.folded() < mendAt {
		return
	}
	w.chanceOver = true
	now := fault.At(0)
	for _, s := range w.chaos {
		switch {
		case !s.drawn || s.done:
		case s.begun:
			s.Until = &now
		case s.mends != nil && s.mends.done && !s.mends.left:
			s.At = now
		default:
			s.done, s.left = true, true
		}
	}
}

// do does one event, if it can be done now.
func (w *world) do(ctx context.Context, s *scheduled, now time.Time) error {
	switch s.Verb {
	case fault.Join:
		s.done = true
		w.counts.joins++
		w.screen.say("%s: %s joins", clock(now.Sub(w.began)), nodeName(len(w.members)))
		return w.startNode(false)
	case fault.Partition:
		w.part(s, now)
		return nil
	}
	m := w.pick(s.Event)
	if m == nil {
		return nil
	}
	switch s.Verb {
	case fault.Corrupt:
		return w.corrupt(ctx, s, m, now)
	case fault.KillLearner:
		return w.killLearner(s, m, now)
	}
	s.done = true
	w.announce(now, m, s.Event)
	return w.doTo(m, s.Event, now)
}

// doTo does an event to a node.
func (w *world) doTo(m *member, e fault.Event, now time.Time) error {
	l := m.current()
	switch e.Verb {
	case fault.Start:
		return w.spawn(m)
	case fault.Leave:
		w.counts.leaves++
		return l.leave()
	case fault.Kill:
		w.counts.kills++
		return l.kill()
	case fault.Pause:
		w.counts.pauses++
		return l.pause()
	case fault.Resume:
		w.recoveries = append(w.recoveries, &recovery{kind: wakes, member: m, at: now, folded: l.ownFolded()})
		return l.resume()
	case fault.Slow:
		m.slow = e.Factor
	case fault.Attack:
		w.counts.liars++
		m.inverted = true
	case fault.Link, fault.Loss:
		if len(linkTraits(e)) > 0 {
			w.counts.links++
		}
		return w.changeLink(m, e)
	}
	return nil
}

// announce says what happens to a node.
func (w *world) announce(now time.Time, m *member, e fault.Event) {
	text := toldAs[e.Verb]
	if e.Verb == fault.Slow {
		if text += fault.Number(e.Factor) + " times slower"; e.Factor == 1 {
			text = "is as fast as before"
		}
	}
	if e.Verb == fault.Loss {
		text = "loses " + fault.Number(e.Percent) + " % of what its link carries"
	}
	if e.Verb == fault.Link {
		if text = "has the link " + strings.Join(e.Detail, ","); len(e.Detail) == 0 {
			text = "has its link of before"
		}
	}
	w.screen.say("%s: %s %s", clock(now.Sub(w.began)), m.name(), text)
}

// toldAs is what the screen says of a node.
var toldAs = map[fault.Verb]string{
	fault.Start: "starts again", fault.Leave: "is asked to leave", fault.Kill: "is killed", fault.Pause: "is paused",
	fault.Resume: "is resumed", fault.Slow: "is ", fault.KillLearner: "loses the program that trains for it",
	fault.Attack: "lies from now on: it trains away from where it should",
}

// pick returns the node that an event is about, if it is in a state in which
// the event means something.
func (w *world) pick(e fault.Event) *member {
	var fit []*member
	for _, m := range w.members {
		ends := e.Verb == fault.Link && len(e.Detail) == 0 // of a link that chance changed
		if e.Verb == fault.KillLearner && !w.learners.inProcess(m.index) {
			continue
		}
		if (e.Node() == fault.Any && !(ends && len(m.traits) == 0) || e.Node() == m.index) && m.suits(e.Verb) {
			fit = append(fit, m)
		}
	}
	if len(fit) == 0 {
		return nil
	}
	return fit[w.rng.IntN(len(fit))]
}

// suits says whether something may happen to the node as it is now.
func (m *member) suits(v fault.Verb) bool {
	l := m.current()
	switch {
	case v == fault.Start:
		return l == nil
	case v == fault.Slow, v == fault.Link, v == fault.Loss, v == fault.Attack:
		return true
	case l == nil || l.asked || l.killed:
		return false
	case v == fault.Resume:
		return l.paused
	case v == fault.Pause:
		return !l.paused
	case v == fault.Corrupt:
		return l.seen && !l.paused
	case v == fault.KillLearner:
		return !l.paused && l.trains()
	}
	return true
}

// part parts the network. Until it ends, every node is told whom to drop, those
// that start meanwhile included; see instruct.
func (w *world) part(s *scheduled, now time.Time) {
	s.begun = true
	w.counts.partitions++
	// What was still merging after the last one goes on when this one ends.
	w.recoveries = slices.DeleteFunc(w.recoveries, func(r *recovery) bool { return r.kind == merges && r.took == 0 })
	w.screen.say("%s: the network is partitioned: %s", clock(now.Sub(w.began)), sidesText(s.Groups))
}

// merge ends a partition.
func (w *world) merge(s *scheduled, now time.Time) {
	s.begun, s.done = false, true
	w.recoveries = append(w.recoveries, &recovery{kind: merges, at: now, closed: w.mostClosed()})
	w.screen.say("%s: the partition ends", clock(now.Sub(w.began)))
}

// sidesText names the sides of a partition.
func sidesText(groups [][]int) string {
	var sides []string
	for _, g := range groups {
		var names []string
		for _, n := range g {
			names = append(names, nodeName(n))
		}
		sides = append(sides, strings.Join(names, " "))
	}
	return strings.Join(sides, " | ")
}

// parted says whether two nodes cannot reach each other now.
func (w *world) parted(a, b int) bool {
	for _, s := range w.chaos {
		if s.begun && separates(s.Groups, a, b) {
			return true
		}
	}
	return false
}

// separates says whether two nodes are in different groups of a partition. Those that it does
// not name reach everybody.
func separates(groups [][]int, a, b int) bool {
	group := func(node int) int {
		return slices.IndexFunc(groups, func(g []int) bool { return slices.Contains(g, node) })
	}
	return group(a) >= 0 && group(b) >= 0 && group(a) != group(b)
}

// startDue says whether a node that is not there is still to come back.
func (w *world) startDue() bool {
	if w.ending != nil || w.finished() {
		return false
	}
	for _, s := range w.chaos {
		if s.Verb == fault.Start && !s.done && !s.At.ByShare && (s.mends == nil || s.mends.done) {
			return true
		}
	}
	return false
}
