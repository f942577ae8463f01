package testnet

import (
	"fmt"
	"os"
	"strings"
	"time"
)

// This file holds the processes that nodes start: programs that train. They are found by the
// mark in their environment, where the system shows that.

// relative is a process that a node has started, or that is the node.
type relative struct {
	pid, parent int
	rank        string // in a data-parallel group, otherwise empty
	command     string
}

// Kinds of events by which a node says how its program is.
const (
	eventLearnerLost = "learner lost"
	eventLearnerBack = "learner back"
)

// event is when the process last said that this happened, zero if it never did.
func (l *life) event(kind string) (last time.Time) {
	for _, e := range l.last.Events {
		if e.Kind == kind && e.At.After(last) {
			last = e.At
		}
	}
	return last
}

// trains says whether the node's learner has stepped and is not lost, as far as is known.
func (l *life) trains() bool {
	return l.seen && l.last.Time.Step > 0 && !l.event(eventLearnerLost).After(l.event(eventLearnerBack))
}

// killLearner kills the program that trains for a node, or one process of it. Where it is not
// there, because it starts, the event comes up again.
func (w *world) killLearner(s *scheduled, m *member, now time.Time) error {
	all, err := relatives(m.mark())
	if err != nil {
		return err
	}
	pid := victim(all, m.current().cmd.Process.Pid, s.Rank())
	if pid == 0 {
		return nil
	}
	s.done = true
	w.counts.learners++
	w.recoveries = append(w.recoveries, &recovery{kind: relearns, member: m, at: now})
	w.announce(now, m, s.Event)
	return killProcess(pid)
}

// victim is what is to be killed of the program that a node has started: a rank of it, or the
// whole, by the process group that the node gave it. It is 0 where that is not there.
func victim(all []relative, node int, rank string) int {
	parents := map[int]relative{}
	for _, r := range all {
		parents[r.pid] = r
	}
	for _, r := range all {
		switch {
		case rank == "" && r.parent == node:
			return -r.pid
		case rank != "" && r.rank == rank && parents[r.parent].rank == "": // and not what the rank itself started
			return r.pid
		}
	}
	return 0
}

// orphansWithin is how long what a node has started may outlive it: both sides look every half
// second, and a busy machine takes a while to end processes of gigabytes.
const orphansWithin = 10 * time.Second

// checkOrphans fails where a process is left when all nodes have ended, and ends it. It is nil
// where the system does not show that.
func (w *world) checkOrphans(within time.Duration) *Check {
	left, err := relatives(markVariable + w.cfg.Dir + string(os.PathSeparator))
	for until := time.Now().Add(within); err == nil && len(left) > 0 && time.Now().Before(until); {
		time.Sleep(pollEvery)
		left, err = relatives(markVariable + w.cfg.Dir + string(os.PathSeparator))
	}
	if err != nil {
		return nil
	}
	c := Check{Name: "no process left", Passed: len(left) == 0, Detail: "all that the nodes started has ended"}
	var texts []string
	for _, r := range left {
		texts = append(texts, fmt.Sprintf("%d (%s)", r.pid, r.command))
		killProcess(r.pid)
	}
	if !c.Passed {
		c.Detail = fmt.Sprintf("%v after the last node these were there: %s", within, strings.Join(texts, ", "))
	}
	return &c
}
