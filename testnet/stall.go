package testnet

import (
	"fmt"
	"time"

	"atoll/gossip/wire"
)

// foldRounds is how many times H steps of the slowest learner nothing may be folded while two nodes train. Fragments take
// turns, so something is folded every few steps.
const foldRounds = 3

// foldLeast is the shortest time that counts: busy machines stop processes for seconds.
const foldLeast = 30 * time.Second

// stall watches that folds go on.
type stall struct {
	tokens  uint64    // folded, by the node that knew most
	since   time.Time // when they last grew, or fewer than two nodes trained
	longest time.Duration
	at      time.Time // when the longest began
	most    time.Duration
}

// look notes how far the run is. up is how many nodes train, and step is the time of a step of the slowest of them.
func (s *stall) look(now time.Time, tokens uint64, up int, h int, step time.Duration) {
	if up < 2 || tokens != s.tokens || s.since.IsZero() {
		s.tokens, s.since = tokens, now
		return
	}
	most := max(foldLeast, foldRounds*time.Duration(h)*step)
	if took := now.Sub(s.since); took > s.longest {
		s.longest, s.at, s.most = took, s.since, most
	}
}

// watchFolds looks at what the nodes said last.
func (w *world) watchFolds(now time.Time) {
	lead := w.lead()
	if lead == nil || w.finished() || w.cfg.Baseline != Atoll {
		return
	}
	up, slowest := 0, time.Duration(0)
	for _, m := range w.members {
		l := m.current()
		if l == nil || !l.seen || l.paused || l.asked || l.last.State != wire.Training.String() || l.last.Step == 0 {
			continue
		}
		up++
		slowest = max(slowest, l.step(), w.paceOf(m))
	}
	w.folds.look(now, lead.last.TokensFolded, up, w.genesis.Outer.H, slowest)
}

// step is the mean time of a step, or less where an earlier process took most of them.
func (l *life) step() time.Duration {
	seconds := (l.last.Time.Step + l.last.Time.Paced) / float64(max(l.last.Step, 1))
	return time.Duration(seconds * float64(time.Second))
}

// checkFolds fails where nothing was folded for long while two nodes trained.
func (w *world) checkFolds() Check {
	s := w.folds
	c := Check{Name: "folds go on", Passed: s.longest <= s.most, Detail: fmt.Sprintf("at most %.1f s without a fold while two nodes trained", s.longest.Seconds())}
	if !c.Passed {
		c.Detail = fmt.Sprintf("nothing was folded for %.1f s from %s on while two nodes trained; %d rounds take %.1f s",
			s.longest.Seconds(), clock(s.at.Sub(w.began)), foldRounds, s.most.Seconds())
	}
	return c
}
