package node

import (
	"fmt"
	"time"

	"atoll/gossip/wire"
	"atoll/node/core"
)

// foldRounds is how many rounds nothing may be folded while two nodes train before people hear of it. Fragments take turns,
// so something is folded every few steps.
const foldRounds = 3

// leastQuiet is the shortest time that counts: busy machines stop processes for seconds, and repairs take a while.
const leastQuiet = 30 * time.Second

// foldWatch notices that nothing is folded any more.
type foldWatch struct {
	tokens uint64    // folded
	since  time.Time // when they last grew, or fewer than two nodes trained
	said   bool
}

// look returns for how long nothing has been folded, once that is longer than it may be, and only
// once. training is how many nodes train, this one included. The moment is by the clock of the
// node, which stands still while the process sleeps.
func (w *foldWatch) look(now time.Time, tokens uint64, training int, round time.Duration) (quiet time.Duration, stalled bool) {
	if training < 2 || tokens != w.tokens || w.since.IsZero() {
		w.tokens, w.since, w.said = tokens, now, false
		return 0, false
	}
	quiet = now.Sub(w.since)
	if w.said || quiet <= max(leastQuiet, foldRounds*round) {
		return quiet, false
	}
	w.said = true
	return quiet, true
}

// watchFolds says so where nothing is folded although this node and others train.
func (n *node) watchFolds() {
	m := n.machine.View()
	training := 0
	if n.train != nil && m.Phase() == core.Ready && m.State() == wire.Training && !m.Paused() {
		training = 1 + n.trainingPeers()
	}
	if quiet, stalled := n.folds.look(n.clock.Time(), m.FoldedTokens(), training, n.roundTime()); stalled {
		n.screen.Event("stalled", "", fmt.Sprintf("nothing was folded for %v while %d nodes train: look with `atoll peers` at who reaches whom; if all reach each other, report it with `atoll logs`",
			quiet.Round(time.Second), training))
	}
}

// trainingPeers is how many others say that they train.
func (n *node) trainingPeers() (count int) {
	for _, p := range n.machine.Gossip().Peers().All() {
		if p.Heartbeat != nil && p.Heartbeat.State == wire.Training && !p.Heartbeat.Paused && !p.Silent {
			count++
		}
	}
	return count
}

// roundTime is how long this node takes for the steps of a delta, 0 where its speed is not known yet.
func (n *node) roundTime() time.Duration {
	if n.train == nil {
		return 0
	}
	perSecond := n.train.Stats().PerSecond
	if !(perSecond > 0) {
		return 0
	}
	steps := max(n.genesis.Outer.H, n.machine.Rounds().Plan().Steps)
	return time.Duration(float64(steps) * float64(n.genesis.StepTokens()) / perSecond * float64(time.Second))
}
