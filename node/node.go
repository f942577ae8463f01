package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/replica"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
)

// node is one process of a run while it runs. Its fields below "loop" belong
// to the loop goroutine.
type node struct {
	cfg     Config
	log     *slog.Logger
	key     ed25519.PrivateKey
	self    wire.PeerID
	run     wire.RunID
	genesis genesis.Genesis
	plan    outer.Plan
	store   *store.Store
	steplog *store.StepLog
	host    *p2p.Host
	record  *recordBox
	data    *corpus.Corpus
	train   *training // nil for an observer
	built   trainer.Trainer
	clock   *clock
	work    *workers
	inbox   *mailbox[func(core.Time)] // what other goroutines have for the loop
	started time.Time
	quit    context.CancelFunc // begins an ordered leave

	disk       diskHealth
	budgetSaid bool                           // that --keep is too small
	counted    atomic.Pointer[[]authorTokens] // of the ledger, for the view
	control    *status.Server
	keyMade    bool          // the key was made by this process
	rejoined   bool          // the folder had state of this run
	firstSeq   uint64        // own deltas below it are of an earlier process
	recalled   []string      // where an earlier process listened
	linked     []string      // addresses in the join link, of an earlier start if this one has none
	named      []wire.PeerID // the peers at them
	contacts   string        // what was last remembered
	commonKept []uint32      // rounds that others have in common, as last kept
	duplicate  duplicate     // other processes with this key
	latest     atomic.Pointer[status.Snapshot]
	latestTips atomic.Pointer[[]*outer.Tip]
	safe       atomic.Bool // all that a leaver must keep is kept

	// loop
	replica  *replica.Replica
	machine  *core.Machine    // of the replica
	handles  map[uint64]asker // stream requests waiting for a Reply
	handle   uint64
	trained  uint64 // tokens, from the step log
	steps    uint64
	view     view
	finished bool
	leaving  time.Time     // when an ordered leave began
	leftAt   time.Duration // that moment by the time awake
	cut      bool          // the step that was under way then is ended
	fatal    error
}

// Times of the loop.
const (
	tickEvery   = 20 * time.Millisecond // resolution of grace and beats
	statusEvery = 500 * time.Millisecond
)

// loop is the one goroutine in which gossip, outer and trainer meet.
func (n *node) loop(ctx context.Context) error {
	tick := time.NewTicker(tickEvery)
	defer tick.Stop()
	show := time.NewTicker(statusEvery)
	defer show.Stop()
	recall := time.NewTicker(contactsEvery)
	defer recall.Stop()
	done := ctx.Done()
	for !n.mayExit() {
		var do func()
		select {
		case <-done:
			done, do = nil, n.leave
		case <-tick.C:
			do = n.tick
		case <-recall.C:
			do = n.remember
		case <-show.C:
			do = n.show
		case e := <-n.host.Events():
			do = func() { n.network(e) }
		case <-n.inbox.ready:
			do = n.takeInbox
		}
		n.wake() // before anything that the sleep may have made wrong
		do()
		n.replica.Execute()
		if n.fatal != nil {
			return n.fatal
		}
	}
	n.remember()
	n.publishStatus()
	return nil
}

// show makes a new status and has the ledger written.
func (n *node) show() {
	n.publishStatus()
	n.flush()
	n.replica.Retain()
}

func (n *node) takeInbox() {
	for _, do := range n.inbox.take() {
		do(n.clock.now())
	}
}

// post hands something to the loop; it never blocks.
func (n *node) post(do func(now core.Time)) { n.inbox.put(do) }

// fail ends the loop with an error.
func (n *node) fail(err error) {
	n.post(func(core.Time) { n.fatal = errors.Join(n.fatal, err) })
}

// tick tells the machine the time and what the training thread has done.
func (n *node) tick() {
	now := n.clock.now()
	var perSecond float64
	if n.train != nil {
		perSecond = n.train.pulse().perSecond
	}
	n.machine.SetLearning(n.steps, n.trained, perSecond, float32(n.view.valBPB), n.record.seq())
	n.machine.Tick(now)
	n.allow(now)
	n.endStep()
	n.view.tick(n, now)
	n.replica.DropOldChunks()
}
