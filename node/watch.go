package node

import (
	"errors"
	"fmt"

	"atoll/node/core"
	"atoll/node/replica"
	"atoll/node/status"
	"atoll/optimizer/outer"
)

// watcher shows people what happens in a replica, and sees to what is a process's own.
type watcher struct{ n *node }

// Check implements replica.Watcher.
func (w watcher) Check(what string, err error) { w.n.check(what, err) }

// Fail implements replica.Watcher.
func (w watcher) Fail(err error) { w.n.fail(err) }

// Saw implements replica.Watcher.
func (w watcher) Saw(event any) {
	n := w.n
	switch e := event.(type) {
	case core.MayStep:
		n.duplicate.may = e.Yes
		n.allow(n.clock.Now())
	case core.Finished:
		n.finished = true
		now := n.clock.Now()
		agreed, _ := n.machine.Gossip().Chains().Agreed(now)
		n.screen.Finished(agreed, n.machine.Gossip().Chains().OtherStates(now))
	case core.Revoked:
		n.revoked(e)
	case core.MarksKnown:
		n.log.Info("peers have said what this key signed")
	case replica.Installed:
		n.installed(e)
	case replica.Retained:
		n.retained(e)
	default:
		n.sawTrouble(event)
	}
}

// sawTrouble tells what went wrong, or leaves it to the screen.
func (n *node) sawTrouble(event any) {
	switch e := event.(type) {
	case replica.DraftFailed:
		if errors.Is(e.Err, outer.ErrNothing) || errors.Is(e.Err, outer.ErrDevice) {
			return // the learner is lost, which is told by itself
		}
		n.log.Error("encode own progress", "fragment", e.Fragment, "err", e.Err)
		n.draftFailed(e)
	case replica.FoldFailed:
		if errors.Is(e.Err, core.ErrOvertaken) { // as it has to be: these rounds are folded again
			n.log.Info("fold", "fragment", e.Want.Fragment, "why", e.Err)
			return
		}
		n.log.Error("fold", "err", e.Err)
	case replica.NotInstalled:
		if errors.Is(e.Err, core.ErrUnfit) { // anything else is the disk's, and Check has said it
			n.log.Error("install a snapshot", "from", e.From, "err", e.Err)
		}
	case replica.GivenUp:
		n.log.Warn("the disk took no record for too long: these rounds stay unrecorded", "fragment", e.Fragment, "from", e.Round)
	case replica.Damaged:
		n.damaged(e.Err)
	default:
		n.screen.Saw(event)
	}
}

// installed records that a snapshot was taken, and what was left for it.
func (n *node) installed(e replica.Installed) {
	n.recount()
	n.screen.Saw(e)
	n.log.Info("install a snapshot", "from", e.From, "round", e.Tips[0].Round)
}

// recount takes over what the ledger last counted.
func (n *node) recount() {
	if counts := n.ledger.Counted(); counts != nil {
		n.screen.Count(counts)
	}
}

// draftFailed tells of the damage that kept the learner from publishing.
func (n *node) draftFailed(e replica.DraftFailed) {
	switch {
	case errors.Is(e.Err, outer.ErrDamaged):
		n.screen.Damaged(e.Err)
	case errors.Is(e.Err, outer.ErrUnread):
		n.screen.Alarm("damaged", n.self.String(), fmt.Sprintf("%v: loses the unpublished work of its fragment", e.Err), n.checkDisk())
	}
}

// damaged tells of what memory or the disk has damaged, and what is done about it.
func (n *node) damaged(err error) {
	switch {
	case errors.Is(err, outer.ErrDamaged):
		n.screen.Damaged(err)
	case errors.Is(err, replica.ErrNoBase):
		n.screen.Alarm("damaged", "", fmt.Sprintf("%v: folds again from an older one", err), n.checkDisk())
	case errors.Is(err, replica.ErrOwnLost):
		n.screen.Alarm("damaged", "", err.Error(), n.checkDisk())
	default:
		n.screen.Alarm("damaged", "", fmt.Sprintf("%v: fetches it again", err), n.checkDisk())
	}
}

// retained tells of what retention came to, and once that the budget is too small.
func (n *node) retained(e replica.Retained) {
	if e.Dropped > 0 {
		n.log.Info("dropped payloads of final rounds", "payloads", e.Dropped, "left", e.Bytes)
	}
	if e.Bytes > e.Budget && !n.budgetSaid {
		n.budgetSaid = true
		n.screen.Alarm("disk", "", fmt.Sprintf("the ledger uses %s and nothing can be deleted yet: the union window, the last %d rounds, needs more than the %s of --keep",
			status.Bytes(float64(e.Bytes)), n.genesis.Outer.Window, status.Bytes(float64(e.Budget))), "see that the disk has room for it")
	}
}
