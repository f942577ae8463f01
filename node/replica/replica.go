package replica

import (
	"crypto/ed25519"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// Config is what a Replica is made of.
type Config struct {
	Machine core.Config
	Policy  Policy
	Genesis Genesis

	Exec       Exec
	Ledger     Ledger
	Net        Net
	Arithmetic Arithmetic
	Watcher    Watcher
	Blobs      Blobs   // nil: it keeps and gives none
	Scratch    Scratch // nil: what it would keep is in memory
}

// Genesis is what all nodes of a run know from its description.
type Genesis struct {
	Encoded []byte                   // as peers may ask for it
	Tips    func() []*outer.Tip      // of round 0; made anew at each call, or shared
	Chunk   func(wire.Digest) []byte // of the initial values, where they are given; nil if it has none
}

// Replica is one node of a run. Execute and the methods that take a time belong
// to the loop.
type Replica struct {
	params     outer.Params
	plan       outer.Plan
	key        ed25519.PrivateKey
	run        wire.RunID
	self       wire.PeerID
	policy     Policy
	genesis    Genesis
	exec       Exec
	ledger     Ledger
	net        Net
	arithmetic Arithmetic
	watcher    Watcher
	blobs      Blobs
	scratch    Scratch

	machine   *core.Machine
	learning  learning
	own       ownDeltas
	bases     *bases
	waiting   unrecorded
	source    source
	retention retention
	epoch     int   // of the machine's tips: counts installs
	leftAt    int64 // Elapsed when an ordered leave began; 0 = it did not
	chunksAt  int64 // Elapsed when a chunk of a snapshot was last stored, or this began; -1 = there are none
}

// Machine is the protocol of this node.
func (r *Replica) Machine() *core.Machine { return r.machine }

// Execute does what the machine wants done, in order, until it wants nothing.
func (r *Replica) Execute() {
	for effects := r.machine.Effects(); len(effects) > 0; effects = r.machine.Effects() {
		for _, e := range effects {
			r.execute(e)
		}
	}
}

func (r *Replica) execute(e core.Effect) {
	switch e := e.(type) {
	case core.IO:
		r.executeIO(e.Effect)
	case core.Work:
		r.executeWork(e.Effect)
	case core.News:
		r.watcher.Saw(e.Event)
	case core.StoreOwn:
		r.exec.Disk(func() { r.storeOwn(e) })
	case core.StoreDelta:
		r.exec.Disk(func() { r.storeDelta(e) })
	case core.ForgetDelta:
		r.write("forget a delta", func() error { return r.ledger.ForgetDelta(e.ID) })
	case core.StoreEquivocation:
		r.write("store equivocation proof", func() error { return r.ledger.PutEquivocation(e.Equivocation) })
	case core.StoreRevocation:
		r.write("store a revocation", func() error { return r.ledger.PutRevocation(e.Word) })
	case core.RaiseMark:
		r.watcher.Saw(e)
		r.write("raise mark", func() error { return r.ledger.RaiseMark(e.Fragment, e.Round) })
	case core.MarksKnown:
		r.watcher.Saw(e)
		r.write("record the marks", r.ledger.PutMarksKnown)
	case core.InstallSnapshot:
		r.exec.Install(func() { r.install(e) })
	case core.ReturnDraft:
		r.learn(func(l Learner) { r.returnDraft(l, e) })
	case core.MayStep, core.Finished, core.Revoked, core.Refused, core.Verdict:
		r.watcher.Saw(e)
	}
}

func (r *Replica) executeIO(e gossip.IO) {
	switch e := e.(type) {
	case gossip.Publish:
		r.net.Publish(e.Bytes)
	case gossip.Call:
		r.net.Call(e)
	case gossip.Hangup:
		r.net.Hangup(e.ID)
	case gossip.Dial:
		r.net.Dial(e.Peer, e.Addrs)
	case gossip.Discover:
		r.net.Discover()
	case gossip.Reserve:
		r.net.Reserve(e.Peer)
	case gossip.Release:
		r.net.Release(e.Peer)
	case gossip.Keep:
		r.net.Keep(e.Peer)
	case gossip.Drop:
		r.net.Drop(e.Peer, e.Reason)
	case gossip.EndVisit:
		r.net.Disconnect(e.Peer)
	case gossip.Reconnect:
		r.net.Reconnect(e.Peer)
	case gossip.Reply:
		r.net.Reply(e.Handle, Reply{Response: e.Response})
	case gossip.ReplyGenesis:
		r.net.Reply(e.Handle, Reply{Response: wire.Found(r.genesis.Encoded)})
	case gossip.ReplyPayload:
		r.replyPayload(e)
	case gossip.ReplyManifest:
		r.replyManifest(e.Handle, e.At, max(r.policy.Source.Tries, 1))
	case gossip.ReplyChunk:
		r.replyChunk(e)
	case gossip.ReplyPart:
		r.replyPart(e)
	case gossip.Fetching:
		r.write("remember a fetch", func() error { return r.ledger.PutFetching(e.At) })
	case gossip.StoreHeader:
		r.write("store header", func() error { return r.ledger.PutHeader(e.Header.Header.ID(r.run), e.Header) })
	case gossip.StoreChunk:
		r.exec.Disk(func() { r.storeChunk(e) })
	case gossip.StorePart:
		r.exec.Disk(func() { r.storePart(e) })
	case gossip.Admitted:
		r.write("store a certificate", func() error { return r.ledger.PutMember(e.Certificate) })
	}
}

func (r *Replica) executeWork(e rounds.Work) {
	switch e := e.(type) {
	case rounds.WantDraft:
		r.learn(func(l Learner) { r.draft(l, e.Fragment) })
	case rounds.Adopt:
		r.adopt(e.Adopt)
	case rounds.WantFold:
		epoch := r.epoch
		r.exec.Fold(func() { r.fold(e, epoch) })
	case rounds.DropBase:
		epoch, tip := r.epoch, r.machine.Rounds().Fragment(e.Fragment).Tip().Round
		r.exec.Fold(func() { r.dropBase(e, epoch, tip) })
	}
}

// Leave begins an ordered leave.
func (r *Replica) Leave(now core.Time) {
	r.leftAt = max(r.exec.Elapsed(), 1)
	r.machine.Leave(now)
}

// LeftTooLong says that a leaver has waited long enough for peers to take what it made.
func (r *Replica) LeftTooLong() bool {
	return r.leftAt > 0 && r.policy.LeaveWithinMs > 0 && r.exec.Elapsed()-r.leftAt > r.policy.LeaveWithinMs
}

// write has the disk do something that nobody waits for.
func (r *Replica) write(what string, do func() error) {
	r.exec.Disk(func() { r.watcher.Check(what, do()) })
}

// dropBase forgets a base that no fold needs any more.
func (r *Replica) dropBase(e rounds.DropBase, epoch int, tip uint32) {
	if epoch == r.bases.epoch {
		r.watcher.Check("drop base", r.bases.release(e.Fragment, e.Round, tip))
	}
}
