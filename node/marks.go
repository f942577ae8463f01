package node

import (
	"errors"
	"fmt"

	"atoll/node/core"
	"atoll/node/store"
)

// marksKey, in the ledger, says that every round which the node's key signed is
// known to it.
const marksKey = "marks"

// keyOnly says whether the key is older than what the folder knows of it: it was
// restored from a backup, or the ledger was set aside. It may have signed rounds
// that only peers know of, and signing one again would bar it from the run.
func (n *node) keyOnly(saved []core.Saved) (bool, error) {
	_, err := n.store.Get(marksKey)
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	marked := n.keyMade
	for _, s := range saved {
		marked = marked || s.Mark > 0
	}
	if marked {
		return false, n.store.Put(marksKey, []byte{1})
	}
	n.view.event(n, "key", n.self.String(), "this key was here before the ledger: publishes nothing until peers have said what it signed")
	return true, nil
}

// raiseMark keeps the word of peers that hold deltas which this folder does not.
func (n *node) raiseMark(e core.RaiseMark) {
	n.view.event(n, "key", n.self.String(), fmt.Sprintf("fragment %d: peers hold deltas of this key that the ledger does not: signs nothing up to round %d", e.Fragment, e.Round))
	n.work.disk.put(func() { n.check("raise mark", n.store.RaiseMark(e.Fragment, e.Round)) })
}

// marksKnown follows every raiseMark of a key that had no ledger.
func (n *node) marksKnown() {
	n.log.Info("peers have said what this key signed")
	n.work.disk.put(func() { n.check("note the marks", n.store.Put(marksKey, []byte{1})) })
}
