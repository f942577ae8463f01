package node

import (
	"errors"

	"atoll/node/replica"
	"atoll/node/store"
)

// marksKey, in the ledger, says that every round which the node's key signed is
// known to it.
const marksKey = "marks"

// putMarksKnown records that.
func putMarksKnown(s *store.Store) error { return s.Put(marksKey, []byte{1}) }

// markNewKey records that a key which this process made has signed nothing: all its marks are known.
func (n *node) markNewKey() error {
	if !n.keyMade {
		return nil
	}
	return putMarksKnown(n.store)
}

// keyOnly says whether the key is older than what the folder knows of it: it was
// restored from a backup, or the ledger was set aside. It may have signed rounds
// that only peers know of, and signing one again would exclude it from the run.
func (n *node) keyOnly(was replica.Restored) (bool, error) {
	if n.keyMade && was.Saved != nil {
		n.screen.Event("key", n.self.String(), "the folder has a ledger and had no key: made one, so this is a new node of the run. To go on as the old one, stop this node and put the old key in place of the new one")
	}
	_, err := n.store.Get(marksKey)
	if err == nil || !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	if was.Marked() {
		return false, putMarksKnown(n.store)
	}
	n.screen.Event("key", n.self.String(), "the key is older than the ledger: publishes nothing until peers have said what the key signed")
	return true, nil
}
