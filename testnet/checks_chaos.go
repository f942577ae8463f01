package testnet

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"atoll/node/status"
)

// chaosChecks are the checks of what chaos did and of how the nodes took it.
func (w *world) chaosChecks(a account) []Check {
	list := []Check{w.checkChaos(), w.checkLost(a)}
	for _, c := range []*Check{w.checkRecoveries(), w.checkCorruptions(), w.checkUsage()} {
		if c != nil {
			list = append(list, *c)
		}
	}
	return list
}

// checkChaos fails where an event could never be done.
func (w *world) checkChaos() Check {
	var missing []string
	done := 0
	for _, s := range w.chaos {
		switch {
		case !s.done:
			missing = append(missing, s.String())
		case !s.left:
			done++
		}
	}
	c := Check{Name: "chaos as planned", Passed: len(missing) == 0, Detail: plural(done, "event")}
	if !c.Passed {
		c.Detail = "never done: " + strings.Join(missing, ", ")
	}
	return c
}

// lostRounds is how many times the steps of a delta a kill may cost a fragment: the steps
// since its last delta, and the steps that waited while two deltas were on their way to
// peers that had just been killed themselves. A delta has H steps, or more where the node
// planned more, as on a machine that is too busy.
const lostRounds = 4

// busyMoment is how long a machine that is too busy may close no round: what was stepped in it before a kill is lost as well.
const busyMoment = 500 * time.Millisecond

// checkLost fails where tokens are gone and no kill explains it, or more than kills
// can.
func (w *world) checkLost(a account) Check {
	c := Check{Name: "nothing lost", Passed: true}
	var lost []string
	for i, e := range a.entries {
		tokens := a.chain.mean(func(p int) uint64 { return uint64(max(0, e.leftOver(p))) })
		if tokens == 0 {
			continue
		}
		kills, steps := 0, 0
		if i < len(w.members) {
			kills, steps = w.members[i].killed(w.genesis.Outer.H)
		}
		text := fmt.Sprintf("%s %s tokens by %s", e.name, count(float64(tokens)), plural(kills, "kill"))
		moment := 0
		if w.cfg.Pace > 0 {
			moment = kills * int(busyMoment/w.cfg.Pace)
		}
		if most := uint64(lostRounds*steps+moment) * e.perStep; tokens > most {
			c.Passed = false
			text += fmt.Sprintf("; these kills explain at most %s", count(float64(most)))
		}
		lost = append(lost, text)
	}
	if c.Detail = strings.Join(lost, ", "); c.Detail == "" {
		c.Detail = "every token trained is folded, discarded or unpublished"
	}
	return c
}

// killed is how many processes of the node were killed, and the steps of one delta of each,
// added up: h, or what it planned.
func (m *member) killed(h int) (kills, steps int) {
	for _, l := range m.lives {
		if l.killed {
			kills++
			steps += max(h, l.plan)
		}
	}
	return kills, steps
}

// checkRecoveries fails where a node never came back to what it did before.
func (w *world) checkRecoveries() *Check {
	if len(w.recoveries) == 0 && w.counts.kills == 0 {
		return nil
	}
	c := Check{Name: "recovered", Passed: true}
	var open []string
	for _, r := range w.recoveries {
		if r.took == 0 && !w.cutShort(r) {
			open = append(open, r.text(w.began))
		}
	}
	for _, m := range w.members {
		for _, l := range m.lives[min(1, len(m.lives)):] {
			if l.last.JoinS == 0 && l.end() == "done" && w.worked(l) {
				open = append(open, m.name()+" contributed nothing after its restart")
			}
		}
	}
	c.Passed = len(open) == 0
	c.Detail = strings.Join(open, ", ")
	if c.Passed {
		c.Detail = w.recoveryText()
	}
	return &c
}

// recoverWithin is how long before the end of the run something may have
// happened that the run does not recover from in time: some rounds.
const recoverWithin = 10 * time.Second

// relearnWithin is the same for a program that trains: a framework of gigabytes starts slowly.
const relearnWithin = time.Minute

// cutShort says whether the run, or the node, ended before a recovery could.
func (w *world) cutShort(r *recovery) bool {
	until := w.ended
	if r.member != nil {
		for _, l := range r.member.lives {
			if l.began.Before(r.at) && l.ended.After(r.at) {
				until = earlier(until, l.ended)
			}
		}
	}
	if r.kind == relearns {
		return until.Sub(r.at) < relearnWithin
	}
	return until.Sub(r.at) < recoverWithin
}

// worked says whether a process lived long enough before the run's end for a
// delta of its own.
func (w *world) worked(l *life) bool { return w.ended.Sub(l.began) > 2*recoverWithin }

func (r *recovery) text(began time.Time) string {
	who := "the nodes never showed one chain"
	switch {
	case r.kind == relearns:
		who = "the program of " + r.member.name() + " never trained again"
	case r.member != nil:
		who = r.member.name() + " contributed nothing"
	}
	return fmt.Sprintf("%s after %s", who, clock(r.at.Sub(began)))
}

// recoveryText lists the times.
func (w *world) recoveryText() string {
	var parts []string
	for _, k := range []struct {
		label string
		times []float64
	}{{"back after a restart", w.restarts()}, {"after a pause", w.took(wakes)}, {"the learner trains again", w.took(relearns)}, {"one chain after a partition", w.took(merges)}} {
		if len(k.times) > 0 {
			parts = append(parts, fmt.Sprintf("%s in %s s", k.label, inSeconds(k.times)))
		}
	}
	return strings.Join(parts, "; ")
}

// inSeconds writes a list of seconds.
func inSeconds(times []float64) string {
	text := make([]string, len(times))
	for i, t := range times {
		text[i] = fmt.Sprintf("%.1f", t)
	}
	return strings.Join(text, ", ")
}

// took are the times of all recoveries of a kind, in seconds.
func (w *world) took(kind string) (times []float64) {
	for _, r := range w.recoveries {
		if r.kind == kind && r.took > 0 {
			times = append(times, r.took.Seconds())
		}
	}
	return times
}

// restarts are the times from the start of a later process of a node to its
// first own folded delta, in seconds.
func (w *world) restarts() (times []float64) {
	for _, m := range w.members {
		for i, l := range m.lives {
			if i > 0 && l.last.JoinS > 0 {
				times = append(times, l.last.JoinS)
			}
		}
	}
	return times
}

// Kinds of events by which a node says whose state was wrong: its own, as it
// found out by itself, or a peer's, which may be itself.
const (
	eventDamaged = "memory damaged"
	eventWrong   = "state wrong"
)

// checkCorruptions fails where a damaged memory was not noticed by the node whose
// it is, or where another was blamed.
func (w *world) checkCorruptions() *Check {
	if len(w.corrupted) == 0 {
		return nil
	}
	c := Check{Name: "damage noticed", Passed: true}
	var seen []string
	for _, k := range w.corrupted {
		after, ok := k.member.noticed(k.at)
		c.Passed = c.Passed && ok
		text := k.member.name() + " never noticed its damaged memory"
		if ok {
			text = fmt.Sprintf("%s noticed its damaged memory after %.1f s", k.member.name(), after.Seconds())
		}
		seen = append(seen, text)
	}
	wrong := w.wronglyBlamed()
	c.Passed = c.Passed && len(wrong) == 0
	c.Detail = strings.Join(append(seen, wrong...), ", ")
	return &c
}

// noticed is how long after a moment the node said that its state was wrong.
func (m *member) noticed(at time.Time) (time.Duration, bool) {
	for _, l := range m.lives {
		for _, e := range l.last.Events {
			if m.blames(e) && e.At.After(at) {
				return e.At.Sub(at), true
			}
		}
	}
	return 0, false
}

// blames says whether an event blames the node.
func (m *member) blames(e status.Event) bool {
	return (e.Kind == eventDamaged || e.Kind == eventWrong) && e.Peer != "" && strings.HasPrefix(m.id(), e.Peer)
}

// wronglyBlamed names nodes that somebody blamed though nothing had happened to
// them.
func (w *world) wronglyBlamed() (wrong []string) {
	for _, m := range w.members {
		if slices.ContainsFunc(w.corrupted, func(k corruption) bool { return k.member == m }) {
			continue
		}
		for _, by := range w.lives() {
			if slices.ContainsFunc(by.last.Events, m.blames) {
				wrong = append(wrong, m.name()+" was blamed though its memory was sound")
				break
			}
		}
	}
	return wrong
}
