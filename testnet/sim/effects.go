package sim

import (
	"errors"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
	"atoll/tensor/codec"
)

// carry does one thing that the machine wants done, as package node does.
func (n *Node) carry(e core.Effect) {
	switch e := e.(type) {
	case gossip.Publish:
		if !n.lies() || !n.liar.says(e.Bytes) {
			n.publish(e.Bytes)
		}
	case gossip.Event:
		n.w.checks.noticed(n, e)
	case gossip.Call:
		n.call(e)
	case gossip.Dial:
		n.w.dial(n, indexOf(e.Addr))
	case gossip.Drop:
		n.w.disconnect(n, n.w.byID[e.Peer])
	case gossip.Reconnect:
		n.w.disconnect(n, n.w.byID[e.Peer])
	case gossip.Reply, gossip.ReplyPayload, gossip.ReplyGenesis, gossip.ReplyManifest, gossip.ReplyChunk:
		n.reply(e)
	case gossip.Fetching:
		n.later(diskMs, func() { n.disk.putFetching(e.At) })
	case gossip.StoreHeader:
		n.later(diskMs, func() { n.disk.putHeader(e.Header.Header.ID(n.w.run), e.Header.Header) })
	case gossip.StoreChunk:
		n.later(diskMs, func() { n.storeChunk(e) })
	case core.StoreOwn:
		n.later(diskMs, func() { n.storeOwn(e) })
	case core.StoreDelta:
		n.later(diskMs, func() { n.storeDelta(e) })
	case core.StoreEvidence:
		n.later(diskMs, func() { n.disk.putEvidence(e.Evidence) })
	case core.InstallTips:
		n.later(diskMs+foldMs, func() { n.install(e) })
	case core.RaiseMark:
		n.disk.raiseMark(e.Fragment, e.Round)
	case core.MarksKnown:
		n.keyOnly = false
	case core.TakeBack:
		n.command(func() { n.takeBack(e) })
	case core.MayStep:
		n.may = e.Yes
	case core.Finished:
		n.finished = true
	case gossip.Misbehaved, gossip.StateDiffers, core.Verdict, core.Refused:
		n.w.checkBlame(n, e)
	default:
		n.carryOuter(e)
	}
}

func (n *Node) carryOuter(e core.Effect) {
	switch e := e.(type) {
	case rounds.WantDraft:
		n.command(func() { n.draft(e.Fragment) })
	case outer.Adopt:
		n.command(func() { n.adopt(e) })
		n.later(diskMs, func() { n.disk.forgetFinal(e.Final()) })
	case rounds.WantFold:
		epoch := n.epoch
		n.later(foldMs, func() { n.fold(e, epoch) })
	case rounds.DropBase:
		epoch := n.epoch
		n.later(foldMs, func() {
			if epoch == n.epoch {
				n.disk.dropBase(e.Fragment, e.Round)
			}
		})
	default:
		if !core.News(e) {
			n.broken("sim", "nothing carries out a %T: %+v", e, e)
		}
	}
}

func (n *Node) draft(p int) {
	d, err := n.learner.Draft(p)
	if errors.Is(err, outer.ErrDamaged) {
		n.machine.DraftFailed(n.clock(), p)
		n.machine.Damaged(n.clock(), p)
		return
	}
	if err != nil {
		if !n.w.s.Params.Overwrite { // with it an adoption may have been faster
			n.broken("core", "draft: %v", err)
		}
		n.machine.DraftFailed(n.clock(), p)
		return
	}
	n.drafts[d.Seq] = draftWork{p, d.Tokens}
	if n.shadow != nil {
		n.shadow[p].Published(n.w.s.Params, d.Seq, n.decode(p, d.Payload))
	}
	if n.lies() {
		d = n.liar.spoils(p, d)
	}
	n.machine.Drafted(n.clock(), d)
}

func (n *Node) takeBack(e core.TakeBack) {
	if err := n.learner.TakeBack(e.Fragment, e.Seq); err != nil {
		n.broken("core", "%v", err)
		return
	}
	n.TakenBack++
	delete(n.drafts, e.Seq)
	if n.shadow != nil {
		n.shadow[e.Fragment].Returned([]uint64{e.Seq})
	}
}

func (n *Node) decode(p int, payload []byte) []float32 {
	q := make([]float32, n.w.plan[p].Len)
	if err := codec.Decode(payload, len(q), q); err != nil {
		n.broken("sim", "own payload: %v", err)
	}
	return q
}

func (n *Node) adopt(a outer.Adopt) {
	loss, err := n.learner.Follow(a)
	if a.Discards() || !loss.None() {
		n.book.dropped[a.Fragment] += loss.Dropped.Tokens
		n.machine.Healed(n.clock(), a.Fragment, loss)
		n.damage.repairs++
	}
	if err != nil {
		n.broken("core", "%v", err)
		return
	}
	n.closed[a.Fragment] = a.Tip.Round
	n.contributes(a.Fold)
	n.Unfolds += len(a.Unfold)
	n.Returns += len(a.Returned)
	n.book.settles(givenUp, n.disk.ownIDs(slices.Concat(a.Discarded, a.Dropped, loss.Gone)))
	n.book.settles(standing, n.disk.ownIDs(a.Regained))
	n.book.returns(n.disk.ownIDs(a.Returned))
	n.Discards += len(a.Discarded) + len(a.Dropped)
	n.w.history.bytes(a.Tip.State[:])
	n.w.checkTheta(n, a, a.Discards() || loss.Found != nil)
	n.w.checkTaken(n, a)
}

// fold carries out a WantFold from the kept bases, beside training.
func (n *Node) fold(e rounds.WantFold, epoch int) {
	tip, fits := n.disk.bases[e.Fragment][e.Start], epoch == n.epoch
	if tip == nil && fits {
		n.broken("core", "base %d of fragment %d was not kept", e.Start, e.Fragment)
	}
	if tip == nil || !fits { // overtaken by tips taken whole
		n.machine.FoldFailed(n.clock(), e.Fragment, e.Job)
		return
	}
	if e.Start < n.machine.Rounds().Tip(e.Fragment).Round {
		n.Refolds++
	}
	if !n.w.s.Lean && !tip.Sound() {
		n.disk.dropBase(e.Fragment, e.Start)
		n.machine.LostBase(n.clock(), e.Fragment, e.Start)
		n.machine.FoldFailed(n.clock(), e.Fragment, e.Job)
		return
	}
	made, ok := n.foldAll(e, tip)
	if !ok {
		n.machine.FoldFailed(n.clock(), e.Fragment, e.Job)
		return
	}
	states := make([]outer.Digest, len(made))
	for i, t := range made {
		states[i] = t.State
	}
	last := made[len(made)-1]
	n.disk.truncate(e.Fragment, last.Round)
	if err := n.machine.Folded(n.clock(), e.Fragment, e.Job, last, states); err != nil {
		n.broken("core", "%v", err)
	}
}

// foldAll makes and keeps the tips of a WantFold. It reports false where the
// disk has not, or does not take, what is needed.
func (n *Node) foldAll(e rounds.WantFold, tip *outer.Tip) (made []*outer.Tip, ok bool) {
	for i, set := range e.Sets {
		round := e.Start + uint32(i) + 1
		contributions, ok := n.read(set)
		if !ok {
			return nil, false
		}
		next, folded, err := n.w.folder.fold(n.w, e.Fragment, tip, contributions)
		if err != nil {
			n.broken("core", "%v", err)
			return nil, false
		}
		tip = n.computed(e.Fragment, next)
		made = append(made, tip)
		n.w.checkFold(n, e.Fragment, tip, set, folded)
		if e.Keeps(round) && !n.disk.keepBase(e.Fragment, tip) {
			return nil, false
		}
		n.disk.keepRound(e.Fragment, tip, folded)
	}
	return made, true
}

// read gets the payloads of a set from the disk. One that is damaged is said to
// be lost, and fetched again.
func (n *Node) read(set []outer.Delta) (contributions []outer.Contribution, ok bool) {
	contributions = make([]outer.Contribution, 0, len(set))
	for _, d := range set {
		payload := n.disk.payload(wire.Digest(d.ID))
		if payload == nil {
			n.disk.drop(wire.Digest(d.ID))
			n.later(0, func() { n.machine.Lost(n.clock(), wire.Digest(d.ID)) })
			return nil, false
		}
		contributions = append(contributions, outer.Contribution{Delta: d, Payload: payload})
	}
	return contributions, true
}

func (n *Node) storeOwn(e core.StoreOwn) {
	if !n.disk.putOwn(e) {
		n.machine.OwnNotStored(n.clock(), e)
		return
	}
	delete(n.drafts, e.Seq)
	n.w.checkSigned(n, e.ID, e.Header)
	n.book.publishes(e.ID, e.Header.Header, n.clock())
	n.w.counts.Deltas++
	n.later(1, func() { n.machine.StoredOwn(n.clock(), e) })
}

func (n *Node) storeDelta(e core.StoreDelta) {
	d := core.DeltaOf(e.ID, e.Header.Header)
	if err := n.w.folder.check(n.w, d, e.Payload); err != nil {
		n.machine.Invalid(n.clock(), e.ID, err)
		return
	}
	if !n.disk.put(e.ID, e.Header, n.w.folder.shared(e.ID, e.Payload)) {
		n.machine.NotStored(n.clock(), e.ID)
		return
	}
	n.machine.Stored(n.clock(), e.ID)
}
