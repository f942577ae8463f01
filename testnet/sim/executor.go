package sim

import (
	"errors"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
	"atoll/tensor/codec"
)

// executor is what a replica needs of this world: work runs in virtual time, messages
// go over its wires, pure functions are remembered, and its checkers watch.
type executor struct{ n *Node }

// Disk implements replica.Exec, as do the methods up to Cut.
func (x executor) Disk(do func()) { x.n.later(diskMs, do) }
func (x executor) Fold(do func()) { x.n.later(foldMs, do) }
func (x executor) Install(do func()) {
	x.n.later(diskMs+foldMs, func() {
		installs := x.n.Installs
		if do(); x.n.Installs > installs {
			x.n.w.checkWhole(x.n, x.n.taken)
		}
	})
}
func (x executor) Learn(do func()) { x.n.command(do) }

// Serve reads at once: memory takes no time, and an answer finds out by itself that
// its asker is gone.
func (x executor) Serve(_ uint64, do func(gone func() bool)) {
	x.n.serving = true
	do(func() bool { return false })
	x.n.serving = false
}

func (x executor) Post(do func(core.Time)) { do(x.n.clock()) }

// Announce leaves a millisecond in which a crash may come between an own delta that
// is durable and its first byte on a wire.
func (x executor) Announce(do func(core.Time)) { x.n.later(1, func() { do(x.n.clock()) }) }

func (x executor) Elapsed() int64 { return x.n.w.now }
func (x executor) Cut() bool      { return false }

// Publish implements replica.Net, as do the methods up to Reply. A liar may say
// something else.
func (x executor) Publish(message []byte) {
	if n := x.n; !n.lies() || !n.liar.says(message) {
		n.publish(message)
	}
}

func (x executor) Call(e gossip.Call)                 { x.n.call(e) }
func (x executor) Hangup(call uint64)                 { x.n.hangs(call) }
func (x executor) Dial(_ wire.PeerID, addrs []string) { x.n.w.dial(x.n, indexOf(addrs[0])) }
func (x executor) Discover()                          {} // it has another way to find peers
func (x executor) Reserve(wire.PeerID)                {} // all nodes of a simulated world reach each other
func (x executor) Release(wire.PeerID)                {}
func (x executor) Keep(wire.PeerID)                   {} // no node here has too many connections
func (x executor) Drop(peer wire.PeerID, _ string)    { x.n.w.disconnect(x.n, x.n.w.byID[peer]) }
func (x executor) Disconnect(peer wire.PeerID)        { x.n.w.disconnect(x.n, x.n.w.byID[peer]) }
func (x executor) Reconnect(peer wire.PeerID)         { x.n.w.disconnect(x.n, x.n.w.byID[peer]) }

func (x executor) Reply(handle uint64, r replica.Reply) { x.n.answer(handle, r.Response, r.Payload) }

// arithmetic are the pure functions, remembered for all nodes of a world.
type arithmetic struct{ n *Node }

// CheckPayload implements replica.Arithmetic.
func (x arithmetic) CheckPayload(d outer.Delta, payload []byte) error {
	return x.n.w.folder.check(x.n.w, d, payload)
}

// Fold implements replica.Arithmetic.
func (x arithmetic) Fold(p int, prev *outer.Tip, set []outer.Contribution) (*outer.Tip, outer.Result, error) {
	return x.n.fold(p, prev, set)
}

// Intern implements replica.Arithmetic.
func (x arithmetic) Intern(tip *outer.Tip) *outer.Tip { return x.n.w.folder.intern(tip) }

// fold folds for the node itself, or, while it serves a stream, for another one.
func (n *Node) fold(p int, prev *outer.Tip, set []outer.Contribution) (*outer.Tip, outer.Result, error) {
	tip, folded, err := n.w.folder.fold(n.w, p, prev, set)
	switch {
	case err != nil:
		n.broken("core", "%v", err)
	case n.serving:
		n.w.counts.FoldedForOthers++
	default:
		tip = n.computed(p, tip)
		n.w.checkFold(n, p, tip, len(set), folded)
	}
	return tip, outer.Result{Folded: folded}, err
}

// Check implements replica.Watcher. What a full disk costs shows in what the machine
// makes of it.
func (x executor) Check(string, error) {}

// Fail implements replica.Watcher.
func (x executor) Fail(err error) { x.n.broken("core", "%v", err) }

// Saw implements replica.Watcher.
func (x executor) Saw(event any) {
	n := x.n
	switch e := event.(type) {
	case gossip.Event:
		n.w.checks.noticed(n, e)
	case gossip.Misbehaved, gossip.StateDiffers, core.Verdict, core.Refused:
		n.w.checkBlame(n, e)
	case core.Revoked:
		n.revoked(e)
	case core.MarksKnown:
		n.keyOnly = false
	case core.MayStep:
		if n.may && !e.Yes {
			n.w.checks.ends(n.w)
		}
		n.may = e.Yes
	case core.Finished:
		n.finished, n.endedAt = true, n.w.now
	case replica.TipFolded:
		n.countRefold(e.Want)
	case replica.FoldFailed:
		n.foldFailed(e)
	case replica.Adopted:
		n.adopted(e)
	case replica.Installed:
		n.installed(e)
	case replica.Retained:
		n.w.counts.PayloadsDropped += e.Dropped
	case replica.NotInstalled:
		if errors.Is(e.Err, core.ErrUnfit) && n.w.liars() == 0 {
			n.broken("core", "%v", e.Err)
		}
	}
}

func (n *Node) countRefold(w rounds.WantFold) {
	if w.Start < n.machine.Rounds().Fragment(w.Fragment).Tip().Round {
		n.Refolds++
	}
}

// foldFailed: a snapshot may overtake a fold, a disk may be full or
// damaged. Every base that a fold begins at is kept, unless it changed in memory.
func (n *Node) foldFailed(e replica.FoldFailed) {
	if errors.Is(e.Err, core.ErrOvertaken) {
		return
	}
	n.countRefold(e.Want)
	if errors.Is(e.Err, replica.ErrNoBase) && !n.damage.corrupted {
		n.broken("core", "base %d of fragment %d was not kept", e.Want.Start, e.Want.Fragment)
	}
}

// adopted keeps the book and checks what the local parameters stand on.
func (n *Node) adopted(e replica.Adopted) {
	a, loss := e.Adopt, e.Loss
	n.book.lostHere[a.Fragment] += loss.Lost.Tokens
	if e.MayRepair() {
		n.damage.repairs++
	}
	n.contributes(a.Seqs(outer.Folded))
	returned, left := a.Seqs(outer.Returned), a.Seqs(outer.Discarded, outer.Dropped)
	n.Unfolds += len(a.Seqs(outer.Unfolded))
	n.Returns += len(returned)
	n.Discards += len(left)
	n.book.records(discarded, n.disk.OwnIDs(slices.Concat(left, loss.Gone)))
	n.book.records(current, n.disk.OwnIDs(a.Seqs(outer.Regained)))
	n.book.returns(n.disk.OwnIDs(returned))
	n.w.history.bytes(a.Tip.State[:])
	n.w.checkLocal(n, a, a.LosesUnpublished() || loss.Found != nil)
	n.w.checkTaken(n, a)
}

func (n *Node) installed(e replica.Installed) {
	for p, tokens := range e.Left.Final {
		n.book.gone[p] += tokens
		n.book.records(forgotten, e.Left.Own[p])
	}
	n.Installs++
	n.book.rebased = n.book.rebased || n.book.trained > 0
	n.taken = slices.Clone(e.Tips)
}

// ledger is the node's disk, with the world looking on.
type ledger struct {
	replica.Ledger
	n *Node
}

// PutDelta keeps one copy of a payload of another that many nodes have.
func (l ledger) PutDelta(id wire.Digest, h *wire.SignedHeader, payload []byte) error {
	l.n.w.checks.proven[h.Header.Author] = true
	return l.Ledger.PutDelta(id, h, l.n.w.folder.shared(id, payload))
}

// PutOwn has the world know what was published.
func (l ledger) PutOwn(e core.StoreOwn) error {
	n := l.n
	err := l.Ledger.PutOwn(e)
	if err == nil {
		delete(n.drafts, e.Seq)
		n.w.checkSigned(n, e.ID, e.Header)
		n.book.publishes(e.ID, e.Header.Header, n.clock())
		n.w.counts.Deltas++
	}
	return err
}

// Install has the world know of own deltas whose fate the snapshot does not tell.
func (l ledger) Install(fragments []replica.InstalledFragment) error {
	if !l.n.disk.Full {
		l.n.recordUnseen(fragments)
	}
	return l.Ledger.Install(fragments)
}

// watched is the node's learner, with an oracle beside it that knows of local parameters by
// other means, and the liar that it may have.
type watched struct {
	n     *Node
	saved []core.Saved // what this life began with
}

// Draft implements replica.Learner, as do the methods below.
func (l watched) Draft(p int) (outer.Draft, error) {
	n := l.n
	d, err := n.learner.Draft(p)
	if err != nil {
		if !errors.Is(err, outer.ErrDamaged) {
			n.broken("core", "draft: %v", err)
		}
		return d, err
	}
	n.drafts[d.Seq] = draftWork{p, d.Tokens}
	n.w.recordMisled(n, p, d.Base)
	if n.oracle != nil {
		n.oracle[p].Published(n.w.s.Params, d.Seq, n.decode(p, d.Payload))
	}
	if n.lies() {
		d = n.liar.spoils(p, d)
	}
	return d, nil
}

func (l watched) Return(p int, o outer.Own) error {
	n := l.n
	if err := n.learner.Return(p, o); err != nil {
		return err
	}
	n.Unwritten++
	delete(n.drafts, o.Seq)
	if n.oracle != nil {
		n.oracle[p].Returned([]uint64{o.Seq})
	}
	return nil
}

func (l watched) Follow(a outer.Adopt) (outer.Loss, error) { return l.n.learner.Follow(a) }

func (l watched) Lost(p int) (outer.Loss, error) { return l.n.learner.Lost(p) }

func (l watched) Stepped(tokens int, closed []uint32) { l.n.learner.Stepped(tokens, closed) }

func (l watched) Restore(p int, own, folded []uint64) error {
	n := l.n
	for i, seq := range own {
		if n.oracle != nil {
			payload, _ := n.disk.Payload(wire.Digest(l.saved[p].Own[i].Delta.ID)) // which a restart has read
			n.oracle[p].Restored(seq, n.decode(p, payload), slices.Contains(folded, seq))
		}
	}
	return n.learner.Restore(p, own, folded)
}

func (n *Node) decode(p int, payload []byte) []float32 {
	q := make([]float32, n.w.plan[p].Len)
	if err := codec.Decode(payload, len(q), q); err != nil {
		n.broken("sim", "own payload: %v", err)
	}
	return q
}
