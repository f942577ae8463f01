package node

import (
	"slices"

	"atoll/node/core"
	"atoll/node/status"
	"atoll/optimizer/outer"
)

func (n *node) fillAccount(s *status.Snapshot) {
	r := n.machine.Rounds()
	a := status.Account{Rounds: n.view.rounds, PayloadBytes: n.view.payloadBytes, PayloadHeld: n.view.payloadHeld}
	a.Refused, a.Late = n.machine.View().Counts()
	a.OwnReturned, a.OwnDiscarded = slices.Clone(n.view.returned), slices.Clone(n.view.discarded)
	a.OwnLostHere = slices.Clone(n.view.lostHere)
	for p := range n.plan {
		a.Deltas += n.view.ledger[p].Deltas()
		_, unpublished := r.Fragment(p).Pending()
		a.OwnUnpublished = append(a.OwnUnpublished, unpublished)
		a.OwnFolded = append(a.OwnFolded, n.view.ledger[p].Made(n.self))
		a.OwnInFlight = append(a.OwnInFlight, r.Fragment(p).Account().InFlight.Tokens)
		a.OwnLostBefore = append(a.OwnLostBefore, n.lostBefore(p, a))
	}
	s.Account = a
}

// findLost records what earlier processes trained and this one finds neither folded nor in flight. One of them discarded it with
// a chain, or ended before it was published. They count what they lose, but the step log and the ledger outlive their counts.
func (n *node) findLost(saved []core.Saved) {
	for p := range n.plan {
		found := n.view.ledger[p].Made(n.self)
		if saved != nil {
			found += n.view.ledger[p].Outside(saved[p])
		}
		n.view.lostBefore[p] = n.trained - min(n.trained, found)
	}
}

// lostBefore is what findLost found, less what was folded after all: others may hold a delta that was discarded here, and this
// process no longer knows it from what it lost otherwise.
func (n *node) lostBefore(p int, a status.Account) uint64 {
	known := a.OwnFolded[p] + a.OwnInFlight[p] + a.OwnUnpublished[p] + a.OwnDiscarded[p] + a.OwnLostHere[p]
	return min(n.view.lostBefore[p], n.trained-min(n.trained, known))
}

// countLast reads what the workers still had for the loop. Nobody executes what the machine wants done for it any more. What
// becomes of own deltas is in the account all the same: the machine counts them no longer where they were.
func (n *node) countLast() {
	n.inbox.each(func(do func(core.Time)) { do(n.clock.Now()) })
	for _, e := range n.machine.Effects() {
		if a, is := e.(outer.Adopt); is {
			n.view.adopted(n, a)
		}
	}
}
