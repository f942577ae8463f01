package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"time"

	"atoll/node/core"
	"atoll/node/status"
	"atoll/node/store"
)

// diskHealth is what the loop knows of the disk.
type diskHealth struct {
	trouble store.Trouble // as it was told last
	tried   time.Time     // when it was last tried
}

// retryDisk is how often a disk in trouble is tried again: the remedy takes a
// person minutes, and a try costs a write.
const retryDisk = 5 * time.Second

// check takes note of an error that does not stop the node: what could not be
// written is kept in memory, or fetched or computed again. It may be called
// from any goroutine. A damaged index is the end: nothing can be kept without.
func (n *node) check(what string, err error) {
	trouble := store.TroubleOf(err)
	switch {
	case err == nil:
	case errors.Is(err, store.ErrIndex):
		n.fail(err)
	case errors.Is(err, fs.ErrNotExist) && n.gone(): // which the end says
	case trouble == store.Well:
		n.log.Error(what, "dir", n.cfg.Dir, "err", err)
	default:
		n.log.Debug(what, "dir", n.cfg.Dir, "err", err)
		n.post(func(core.Time) { n.troubled(trouble, what, err) })
	}
}

// troubled says what is wrong with the disk, once, until it is well or
// something else is.
func (n *node) troubled(t store.Trouble, what string, err error) {
	if t == n.disk.trouble {
		if t == store.Full && n.corpus != nil {
			n.tighten() // again: a part that was on its way may have taken the room
		}
		return
	}
	n.disk.trouble, n.disk.tried = t, time.Now()
	n.screen.Alarm(status.AlarmDisk, "", fmt.Sprintf("the disk is %s (%s: %v). %s", t, what, err, n.untilWell(t)), t.Remedy(n.cfg.Dir))
}

// untilWell says what this node does until its disk is well, and begins with it.
func (n *node) untilWell(t store.Trouble) string {
	text := "Training goes on with what fits in memory; nothing is published until then"
	if t != store.Full || n.corpus == nil {
		return text
	}
	dropped := n.tighten()
	if _, missing := n.corpus.Needed(); missing > 0 {
		text = fmt.Sprintf("The shards that the next steps read need up to %s more; this node waits for them and then trains on", status.Bytes(float64(missing)))
	}
	if dropped > 0 {
		text += fmt.Sprintf(". It deleted shards that no step reads yet (%d), and fetches each only when a step reads it", dropped)
	}
	return text
}

// ErrFolderGone ends a node whose folder was deleted or moved under it.
var ErrFolderGone = errors.New("is no longer there: it was deleted or moved while this node ran")

// gone says that the node's folder is no longer where it was. It may be called from any goroutine.
func (n *node) gone() bool {
	if n.placed == nil {
		return false // it has not started
	}
	info, err := os.Stat(n.place)
	return errors.Is(err, fs.ErrNotExist) || err == nil && !os.SameFile(info, n.placed)
}

// seekFolder ends the node once its folder has gone. What is written into files that have no name is lost, and a new folder under
// the old name would be a node without a past.
func (n *node) seekFolder() {
	if n.fatal == nil && n.gone() {
		n.fatal = fmt.Errorf("%s %w. What was published is with the others, if there are any; the rest is lost. "+
			"If you moved it, `atoll join FOLDER` goes on from where it is now; otherwise ask a member for a link and join in a new folder", n.cfg.Dir, ErrFolderGone)
	}
}

// flush has the ledger written. A disk in trouble is tried now and then, with a
// file of its own first: a commit may find room where a payload does not.
func (n *node) flush() {
	if n.disk.trouble == store.Well {
		n.work.disk.Put(func() { n.check("flush the ledger", n.store.Flush()) })
		return
	}
	if time.Since(n.disk.tried) < retryDisk {
		return
	}
	n.disk.tried = time.Now()
	n.work.disk.Put(func() {
		err := n.cfg.disk.Probe(n.cfg.Dir)
		if err == nil {
			err = n.store.Flush()
		}
		if n.check("flush the ledger", err); err == nil {
			n.post(func(core.Time) { n.recovered() })
		}
	})
}

// keepCommon keeps the rounds that others have in common, when they have moved.
func (n *node) keepCommon() {
	rounds := n.machine.Gossip().Chains().Common()
	if slices.Equal(rounds, n.commonKept) {
		return
	}
	n.commonKept = rounds
	n.work.disk.Put(func() { n.check("keep common rounds", n.ledger.PutCommon(rounds)) })
}

func (n *node) recovered() {
	if n.disk.trouble == store.Well {
		return
	}
	n.screen.Event("disk well", "", fmt.Sprintf("the disk is no longer %s: the ledger that waited is written, and publishing goes on", n.disk.trouble))
	n.disk.trouble = store.Well
	n.replanShards()
}
