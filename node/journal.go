package node

import (
	"fmt"
	"time"

	"atoll/node/status"
)

// openJournal begins to keep events in the folder, for atoll logs. It is for people: a node whose disk takes
// none goes on, and tells of its disk when that takes no ledger either.
func (n *node) openJournal() {
	kept, err := status.OpenEventLog(n.cfg.Dir)
	if err != nil {
		n.log.Warn("events are not kept", "dir", n.cfg.Dir, "err", err)
		return
	}
	n.journal = kept
	journal{n}.Keep(status.Event{At: time.Now(), Kind: "start", Text: fmt.Sprintf("%s begins as %s of run %v, %s", Agent, n.role(), n.run, n.genesis.Name)})
}

// journal keeps what the screen tells. It belongs to the loop.
type journal struct{ n *node }

// Keep implements show.Journal.
func (j journal) Keep(e status.Event) {
	n := j.n
	if n.journal == nil {
		return
	}
	if err := n.journal.Append(e); err != nil {
		n.log.Debug("keep an event", "dir", n.cfg.Dir, "err", err)
	}
}

func (n *node) closeJournal() {
	if n.journal == nil {
		return
	}
	if err := n.journal.Close(); err != nil {
		n.log.Debug("close the record of events", "dir", n.cfg.Dir, "err", err)
	}
	n.journal = nil
}
