package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/allowance"
	"atoll/node/clock"
	"atoll/node/content"
	"atoll/node/core"
	"atoll/node/data"
	"atoll/node/genesis"
	"atoll/node/holders"
	"atoll/node/ledger"
	"atoll/node/mailbox"
	"atoll/node/mirror"
	"atoll/node/replica"
	"atoll/node/show"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/node/training"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
	"atoll/optimizer/trainer/corpus"
	"atoll/optimizer/trainer/external"
	"atoll/tensor"
)

// node is one process of a run while it runs. What is below "loop" belongs to the
// loop goroutine.
type node struct {
	cfg     Config
	log     *slog.Logger
	clock   *clock.Clock
	started time.Time
	work    *workers
	inbox   *mailbox.Mailbox[func(core.Time)] // what other goroutines have for the loop
	host    *p2p.Host
	identity
	membership
	shared
	folder
	knownPeers
	holders      holders.Holders
	allowance    allowance.Allowance
	settings     atomic.Pointer[[]status.Setting] // that are not the default, once they were changed
	watchesPower bool                             // a goroutine looks where power comes from
	learning
	shown
	trace tracing

	// loop
	replica  *replica.Replica
	machine  *core.Machine // of the replica
	finished bool
	fatal    error
	place    string      // cfg.Dir from the root on
	placed   os.FileInfo // what it was when the node started
	began    bool        // the loop has
	streams
	shutdown
}

// identity is who this node is.
type identity struct {
	key       ed25519.PrivateKey
	self      wire.PeerID
	keyMade   bool // the key was made by this process
	record    *recordBox
	duplicate duplicate // other processes with this key
}

// shared is what all nodes of the run share.
type shared struct {
	run     wire.RunID
	genesis genesis.Genesis
	told    bool // peers gave the genesis, in this start, in which this node then only looked before it entered
	entered bool // others may count this node as one of the run
	plan    outer.Plan
	first   *genesis.FirstValues // nil where they follow from the seed
	beside  *content.Content     // the files beside the weights; nil where there are none
	given   *tensor.Slab         // the first values in memory, until the tips are made; those of a seed are the trainer's
}

// folder is what this node keeps, and what is known of its disk.
type folder struct {
	store      *store.Store
	ledger     *ledger.Ledger // of the run, in the store
	steplog    *store.StepLog
	journal    *status.EventLog // nil where the disk took none
	disk       diskHealth
	budgetSaid bool     // that --keep is too small
	rejoined   bool     // the folder had state of this run
	commonKept []uint32 // rounds that others have in common, as last kept
	shownKept  time.Time
}

// knownPeers are addresses of peers.
type knownPeers struct {
	dials    []string      // that this node dials: those that it is told, or of an earlier start if there are none, and of who gave the genesis
	recalled []string      // where an earlier process listened
	linked   []string      // addresses in the join link, of an earlier start if this one has none
	named    []wire.PeerID // the peers at them
	met      []string      // addresses that an earlier start knew, beside those that this one is given
	early    []p2p.Event   // what happened on the network before there was a loop
	contacts string        // what was last remembered
}

// learning is the training thread, and what it has done over all starts.
type learning struct {
	data        *corpus.Corpus
	corpus      *data.Corpus     // instead of data, in a run that names a corpus
	mirrors     mirror.Mirrors   // of the corpus
	train       *training.Thread // nil for an observer
	built       trainer.Trainer
	tune        func(ctx context.Context) error // reads a long text, measures and tunes it, on the training thread; nil: it is tuned
	tuning      atomic.Pointer[string]          // what tune is at; nil: nothing
	external    *external.Learner               // built, where it is a process of its own
	toldLost    error                           // the last loss of it that was told; of the learner's commands
	slow        slowStart                       // of it
	evaluations evaluations
	trained     uint64 // tokens, from the step log
	steps       uint64
}

// shown is what others may ask to see.
type shown struct {
	screen     *show.Screen
	folds      foldWatch
	reachSaid  string // how others reach this node
	aloneSaid  bool   // that nobody of the link answers
	unanswered struct {
		said time.Time // when, last, where a newcomer waits for somebody
		text string
	}
	control    *status.Server
	stage      atomic.Pointer[string] // before there is a machine
	latest     atomic.Pointer[status.Snapshot]
	statusKept struct { // what the folder says of this node
		at   time.Time
		what string // of what others go by
		who  string // is here
	}
	latestTips atomic.Pointer[[]*outer.Tip]
	safe       atomic.Bool // all that a leaver must keep is kept
	exports    exports
}

// streams are the requests of others that wait for a reply.
type streams struct {
	handles map[uint64]asker
	calls   map[uint64]context.CancelFunc // own ones under way, and what ends them
	handle  uint64                        // the last one given out
}

// shutdown is an ordered leave.
type shutdown struct {
	quit    context.CancelFunc // begins it
	leaving time.Time          // when it began
	leftAt  time.Duration      // that moment by the time awake
	cut     bool               // the step that was under way then is ended
}

// Times of the loop.
const (
	tickEvery   = 20 * time.Millisecond // resolution of grace and heartbeats
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
	n.began = true
	n.receiveEarly()
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
		case <-n.inbox.Ready():
			do = n.readInbox
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
	n.limit(time.Now())
	if n.seekFolder(); n.fatal != nil {
		return
	}
	n.publishStatus()
	n.flush()
	n.check("write the trace", n.trace.Flush())
	n.replica.Retain()
	n.askMirrors(time.Now())
}

func (n *node) readInbox() {
	n.inbox.Each(func(do func(core.Time)) { do(n.clock.Now()) })
}

// post hands something to the loop; it never blocks.
func (n *node) post(do func(now core.Time)) { n.inbox.Put(do) }

// fail ends the loop with an error.
func (n *node) fail(err error) {
	n.post(func(core.Time) { n.fatal = errors.Join(n.fatal, err) })
}

// tick tells the machine the time and what the training thread has done.
func (n *node) tick() {
	now := n.clock.Now()
	var perSecond float64
	if n.train != nil {
		perSecond = n.train.Stats().PerSecond
	}
	n.machine.SetLearning(n.steps, n.trained, perSecond, n.evaluations.bits(), n.record.seq())
	upload, full := n.host.Upload()
	n.machine.SetUpload(now, upload, full)
	n.machine.Tick(now)
	n.allow(now)
	n.endStep()
	n.watch()
	n.replica.DropOldChunks()
}
