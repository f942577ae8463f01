package node

import "atoll/node/replica"

// markNewKey records that a key which this process made has signed nothing: all its marks are known.
func (n *node) markNewKey() error {
	if !n.keyMade {
		return nil
	}
	return n.ledger.PutMarksKnown()
}

// keyOnly says whether the key is older than what the folder knows of it: it was
// restored from a backup, or the ledger was set aside. It may have signed rounds
// that only peers know of, and signing one again would exclude it from the run.
func (n *node) keyOnly(was replica.Restored) (bool, error) {
	if n.keyMade && was.Saved != nil {
		n.screen.Event("key", n.self.String(), "the folder has a ledger and had no key: made one, so this is a new node of the run. To go on as the old one, stop this node and put the old key in place of the new one")
	}
	if known, err := n.ledger.MarksKnown(); known || err != nil {
		return false, err
	}
	if was.Marked() {
		return false, n.ledger.PutMarksKnown()
	}
	n.screen.Event("key", n.self.String(), "the key is older than the ledger: publishes nothing until peers have said what the key signed")
	return true, nil
}
