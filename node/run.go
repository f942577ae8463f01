package node

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"atoll/gossip"
	"atoll/gossip/p2p"
	"atoll/gossip/p2p/address"
	"atoll/gossip/p2p/messagegate"
	"atoll/gossip/wire"
	"atoll/node/allowance"
	"atoll/node/clock"
	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/hardware"
	"atoll/node/holders"
	"atoll/node/ledger"
	"atoll/node/mailbox"
	"atoll/node/replica"
	"atoll/node/show"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/optimizer/trainer"
)

// Run takes part in a run until it ends, until ctx ends (an ordered leave), or
// until an error that it cannot survive. It returns the last view of the run.
func Run(ctx context.Context, cfg Config) (status.Snapshot, error) {
	cfg, err := cfg.withDefaults()
	if err != nil {
		return status.Snapshot{}, err
	}
	if err := os.MkdirAll(cfg.Dir, 0o755); err != nil {
		return status.Snapshot{}, store.Explain(fmt.Errorf("create node folder: %w", err), cfg.Dir)
	}
	if cfg.Learner, err = cfg.learner(); err != nil {
		return status.Snapshot{}, store.Explain(err, cfg.Dir)
	}
	n := newNode(cfg)
	n.place, err = filepath.Abs(cfg.Dir) // the name "." stays good when what it means has gone
	if err == nil {
		n.placed, err = os.Stat(n.place)
	}
	if err != nil {
		return status.Snapshot{}, store.Explain(err, cfg.Dir)
	}
	return n.takePart(ctx)
}

// newNode is a node that has done nothing yet.
func newNode(cfg Config) *node {
	n := &node{
		cfg: cfg, log: cfg.Log, started: time.Now(), clock: clock.New(),
		inbox: mailbox.New[func(core.Time)](), streams: streams{handles: map[uint64]asker{}, calls: map[uint64]context.CancelFunc{}}, work: newWorkers(),
		holders: holders.New(), allowance: allowance.New(cfg.Limits),
	}
	n.screen = show.New(n.log, journal{n}, n.self, 0, outer.Params{})
	n.duplicate.self, n.duplicate.began = n.started.UnixMilli(), n.clock.Now()
	return n
}

// live is Run from the first file to the last heartbeat. It looks at ctx between the
// stages; some take seconds for a large model.
func (n *node) live(ctx context.Context) error {
	for _, stage := range []func() error{
		n.identify, n.beAdmitted, n.recall, n.recallTraffic, n.openKnown, n.serveControl, n.listen,
		func() error { return n.learnGenesis(ctx) },
		n.confirmAdmission,
		n.open,
		func() error { _ = n.watchPower(ctx); return nil }, // an event says what is wrong
		func() error { return n.learnFirst(ctx) },
		func() error { return n.learnFiles(ctx) },
		func() error { return n.prepare(ctx) },
		n.enter,
		n.start,
		func() error { return n.cfg.Started(Handle{n}) },
	} {
		if err := stage(); err != nil {
			return err
		}
		if err := ctx.Err(); err != nil {
			return err
		}
	}
	return n.loop(ctx)
}

// identify loads the key and, if it is at hand, the genesis.
func (n *node) identify() error {
	key, made, err := n.cfg.disk.LoadKey(n.cfg.Dir)
	if err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	n.key, n.self, n.keyMade = key, wire.PeerIDOf(key), made
	raw, err := n.keptGenesis()
	if err != nil {
		return err
	}
	if n.cfg.Genesis != nil {
		raw = n.cfg.Genesis
	}
	if raw == nil {
		n.run = n.cfg.Link.Run
		return nil
	}
	if n.genesis, err = genesis.Decode(raw); err != nil {
		return err
	}
	n.run = n.genesis.RunID()
	if zero := (wire.RunID{}); n.cfg.Link.Run != zero && n.cfg.Link.Run != n.run {
		return fmt.Errorf("node folder %s belongs to run %v, the link names run %v; use another folder for it", n.cfg.Dir, n.run, n.cfg.Link.Run)
	}
	return nil
}

// listen starts the host with a record that does not know the model yet.
func (n *node) listen() error {
	n.record = &recordBox{key: n.key, name: n.cfg.Name}
	if err := n.record.set(n.firstRecord()); err != nil {
		return err
	}
	n.gate = messagegate.New(n.run, n.members)
	host, err := n.newHost(p2p.Config{
		Key: n.key, Run: n.run, Listen: n.cfg.Listen, Profile: n.cfg.Profile, NoMDNS: n.cfg.NoMDNS,
		Record: n.record.latest, Near: n.record.latestNear, Agent: Agent, Log: n.log, OnConn: n.cfg.OnConn,
		UploadBytesPerSecond: n.cfg.Limits.Up, DownloadBytesPerSecond: n.cfg.Limits.Down,
		Check: n.checkMessage, Spares: n.sparesMessage, Admit: n.admits,
	})
	if err != nil {
		return err
	}
	n.host = host
	return n.record.reached(host.Reach())
}

// memoryRole is what this node does in the run, as far as its memory depends on it.
func (n *node) memoryRole() (hardware.Role, error) {
	among, _, err := trainer.Precisions(n.cfg.Precision)
	if err != nil {
		return hardware.Role{}, err
	}
	return hardware.Role{Observe: n.cfg.Observe, Batch: n.cfg.Batch, External: n.cfg.Learner != "", Precision: among[0]}, nil
}

// openKnown opens the disk before anything is asked of the network, where the run is known: a start that fails there must leave
// word that a key made by it has signed nothing.
func (n *node) openKnown() error {
	if n.genesis.Rules == 0 {
		return nil
	}
	return n.open()
}

// open opens the node's disk and what it keeps of the run, unless that is open.
func (n *node) open() error {
	if n.store != nil {
		return nil
	}
	role, err := n.memoryRole()
	if err != nil {
		return err
	}
	if err := role.Fits(n.genesis, hardware.MemoryBytes()); err != nil {
		return err
	}
	s, err := n.cfg.disk.Open(n.cfg.Dir, n.run)
	if errors.Is(err, store.ErrOtherRun) && n.cfg.Genesis == nil {
		return fmt.Errorf("%w, or if this is the folder of that run its genesis file is damaged: copy it from another node of the run", err)
	}
	if err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	n.store, n.plan = s, n.genesis.Plan()
	n.ledger = ledger.New(s, n.plan, n.genesis.OuterParams(), n.members)
	if err := n.markNewKey(); err != nil {
		return err
	}
	if n.steplog, err = s.OpenStepLog(); err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	n.steps, n.trained = n.steplog.Sum().Steps, n.steplog.Sum().Tokens
	n.screen = show.New(n.log, journal{n}, n.self, len(n.plan), n.genesis.OuterParams())
	n.screen.Restore(n.keptShown().Between(time.UnixMilli(n.genesis.Outer.CreatedMs), time.Now()))
	n.openJournal()
	n.reportDamage()
	return n.openTrace()
}

// start makes the replica from what the disk has and starts the training thread.
func (n *node) start() error {
	g := n.gossipConfig()
	cfg := core.Config{
		Params: n.genesis.OuterParams(), Plan: n.plan, Key: n.key, Run: n.run,
		Learner: !n.cfg.Observe, Certificate: n.id,
		Alone: len(n.dials) == 0, Newcomer: n.told || len(g.Trusted) > 0, AloneMs: n.cfg.AloneAfter.Milliseconds(), Gossip: g,
	}
	was, err := n.restore(cfg)
	if err != nil {
		return err
	}
	if cfg.KeyOnly, err = n.keyOnly(was); err != nil {
		return err
	}
	if err := n.replica.Start(n.clock.Now(), cfg, was, n.trace.Learner(n.learnerOf(was))); err != nil {
		return err
	}
	n.machine = n.replica.Machine()
	n.remembers.Store(true)
	if err := n.stillMember(); err != nil {
		return err
	}
	n.recount()
	n.screen.FindLost(was.Saved, n.trained)
	n.inventoryUp()
	n.limit(time.Now())
	n.startTraining()
	n.machine.Step(n.clock.Now(), n.record.own())
	n.host.Handle(n.serve)
	n.dialPeers()
	n.dialEarlierPeers()
	return nil
}

// others are these peers without this node, whose own link may lead it back.
func (n *node) others(ids []wire.PeerID) []wire.PeerID {
	return slices.DeleteFunc(slices.Clone(ids), func(id wire.PeerID) bool { return id == n.self })
}

// restore makes the replica over what the folder holds.
func (n *node) restore(cfg core.Config) (was replica.Restored, err error) {
	x, policy := executor{n}, replica.NodePolicy()
	policy.KeepBytes, policy.LeaveWithinMs = n.cfg.KeepBytes, n.cfg.leaves(leaveWithin).Milliseconds()
	n.replica, was, err = replica.New(n.trace.Wrap(replica.Config{
		Machine: cfg, Policy: policy, Genesis: replica.Genesis{Encoded: n.genesis.Encode(), Tips: n.firstTips, Chunk: n.first.Chunk},
		Exec: x, Net: x, Watcher: watcher{n}, Arithmetic: arithmetic{n.genesis.OuterParams(), n.plan},
		Ledger: n.ledger, Blobs: n.blobs(), Scratch: ledger.Scratch{Store: n.store},
	}))
	if err != nil {
		return was, fmt.Errorf("in %s: %w", n.cfg.Dir, err)
	}
	n.given = nil
	n.rejoined = was.Saved != nil
	n.screen.OwnFrom(was.Next)
	return was, nil
}

// learnerOf is the learner of the training thread, nil for an observer.
func (n *node) learnerOf(was replica.Restored) replica.Learner {
	if n.cfg.Observe {
		return nil
	}
	n.train = n.newTraining()
	l := outer.NewLearner(n.genesis.OuterParams(), n.plan, n.built.Params(), was.Tips, n.replica.OwnPayload)
	return n.train.Learner(l, n.built)
}

func (n *node) gossipConfig() gossip.Config {
	g := n.genesis.OuterParams()
	cfg := gossip.Config{
		Self: n.self, Key: n.key, Run: n.run, Incarnation: n.started.UnixMilli(),
		Trusted: n.others(n.named), Members: n.members, HeartbeatMinMs: n.cfg.heartbeatMs, WayMs: n.genesis.WayMs,
		WindowAccept: g.WindowAccept, WindowUnion: g.WindowUnion,
		HasChunk: n.store.HasChunk, Resume: n.ledger.Fetching(), Common: n.ledger.Common(), MaxTip: n.genesis.LargestTip(), SnapshotBytes: uint64(n.genesis.TipsSize(n.plan)),
		DownMs: downMs(n.cfg.Limits),
	}
	l := messagegate.NewLimiter(cfg.Limits())
	n.gate.Limiter.Store(l)
	cfg.Limiter = l
	return cfg
}

// downMs is what this node may receive, in bytes per ms; 0 is no limit.
func downMs(l allowance.Limits) float64 { return float64(l.Down) / 1000 }

// peerIDs are the ids in the given addresses.
func peerIDs(addrs []string) []wire.PeerID {
	var ids []wire.PeerID
	for _, addr := range addrs {
		if id, err := address.PeerIDOf(addr); err == nil {
			ids = append(ids, id)
		}
	}
	return ids
}

// dialPeers tries the addresses of the link and of the flags, and again while
// none answers.
func (n *node) dialPeers() {
	for _, addr := range n.dials {
		if id, err := address.PeerIDOf(addr); err == nil && id != n.self {
			n.work.goRun(func(ctx context.Context) { n.keepDialling(ctx, id, addr) })
		}
	}
}

// redialEvery is the pause between two tries of an address of the link.
const redialEvery = 5 * time.Second

func (n *node) keepDialling(ctx context.Context, peer wire.PeerID, addr string) {
	for ctx.Err() == nil {
		n.dial(ctx, peer, addr, func(ctx context.Context) error {
			_, err := n.host.Dial(ctx, addr)
			return err
		})
		select {
		case <-ctx.Done():
		case <-time.After(redialEvery):
		}
	}
}

// close ends every goroutine and file, in the order in which they depend on
// each other. What the ledger has comes before what a restart can do without.
func (n *node) close() error {
	var err error
	n.work.stop()
	ended := n.fatal
	if n.drain(); ended == nil {
		err = n.fatal // found when the loop was over
	}
	n.check("write the trace", n.trace.close())
	n.closeJournal()
	if n.control != nil {
		err = errors.Join(err, n.control.Close())
	}
	if n.host != nil {
		err = errors.Join(err, n.host.Close())
	}
	if n.store != nil {
		n.keepTraffic()
		n.keepShown()
		n.check("flush the ledger", n.store.Flush())
		if n.machine != nil && !n.gone() {
			n.writeStatus()
			n.safe.Store(true)
			n.saveTips()
		}
		if n.external != nil {
			n.check("end the learner", n.external.Close())
		}
		if n.steplog != nil {
			err = errors.Join(err, n.steplog.Close())
		}
		err = errors.Join(err, n.store.Close())
	}
	return err
}

// drain takes what the workers still had for the loop: the last status and the
// tips that are kept then agree with the ledger.
func (n *node) drain() {
	if !n.began {
		return
	}
	n.countLast()
	n.publishStatus()
}

// saveTips writes the newest tips and the optimizer's state, so that a restart
// and `atoll eval` find them without a replay. For a large model that takes
// seconds, which a leaver need not have.
func (n *node) saveTips() {
	for p := range n.plan {
		tip := n.machine.Rounds().Fragment(p).Tip()
		n.check("keep tip", n.store.PutBase(p, tip.Round, tip))
	}
	if n.built != nil && n.built.Steps() > 0 {
		if state, err := n.built.SaveState(); err == nil {
			n.check("checkpoint", n.store.PutCheckpoint(state))
		}
	}
}
