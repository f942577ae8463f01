package node

import (
	"errors"
	"fmt"
	"time"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// Handle is what a program may do to the node that it runs, from any goroutine until Run returns.
type Handle struct{ n *node }

// Block cuts the node off from these peers, and from no others: see p2p.Host.Block.
func (h Handle) Block(peers []wire.PeerID) { h.n.host.Block(peers) }

// Pace changes Config.Pace.
func (h Handle) Pace(least time.Duration) error {
	if h.n.train == nil {
		return errors.New("pace: this node does not train")
	}
	h.n.train.SetPace(least)
	return nil
}

// Global has change see the newest global parameters of a fragment, in the memory that rounds, folds and
// the learner share. It does so on the fold queue while the training thread stands still, as only
// these two read them all the time. A reader for a joiner or an evaluation sees what was there
// before or after.
func (h Handle) Global(fragment int, change func(values []float32)) error {
	if fragment < 0 || fragment >= len(h.n.plan) {
		return fmt.Errorf("fragment %d; use 0 to %d", fragment, len(h.n.plan)-1)
	}
	h.n.work.folds.Put(func() { h.n.changeGlobal(fragment, change) })
	return nil
}

// changeGlobal runs on the fold queue. All requested folds are done and told, so the
// tip that the loop has now is the base of the next one.
func (n *node) changeGlobal(fragment int, change func(values []float32)) {
	newest := make(chan *outer.Tip, 1)
	n.post(func(core.Time) { newest <- n.machine.Rounds().Fragment(fragment).Tip() })
	var tip *outer.Tip
	select {
	case tip = <-newest:
	case <-n.work.ctx.Done():
		return
	}
	changed := make(chan struct{})
	do := func() {
		change(tip.Global)
		close(changed)
	}
	if n.train == nil {
		do()
		return
	}
	n.train.Do(do)
	select {
	case <-changed:
	case <-n.work.ctx.Done():
	}
}
