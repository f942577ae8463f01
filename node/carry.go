package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// carryOut does what the machine wants done, in order, until it wants nothing.
func (n *node) carryOut() {
	for effects := n.machine.Effects(); len(effects) > 0; effects = n.machine.Effects() {
		for _, e := range effects {
			n.carry(e)
		}
	}
}

func (n *node) carry(e core.Effect) {
	switch e := e.(type) {
	case gossip.Publish:
		n.work.sends.put(func() { n.publish(e.Bytes) })
	case gossip.Call:
		n.work.goRun(func(ctx context.Context) { n.call(ctx, e) })
	case gossip.Dial:
		n.work.goRun(func(ctx context.Context) { n.dial(ctx, e.Addr) })
	case gossip.Drop:
		n.work.goRun(func(context.Context) { n.host.Drop(e.Peer, e.Reason) })
	case gossip.Reconnect:
		n.host.Reconnect(e.Peer)
	case gossip.Reply, gossip.ReplyPayload, gossip.ReplyGenesis, gossip.ReplyManifest, gossip.ReplyChunk:
		n.respond(e)
	case gossip.Fetching:
		n.work.disk.put(func() { n.check("remember a fetch", n.store.Put(fetchingKey, wire.Marshal(e.At))) })
	case gossip.StoreHeader:
		n.work.disk.put(func() { n.check("store header", n.store.PutHeader(e.Header.Header.ID(n.run), e.Header)) })
	case gossip.StoreChunk:
		n.chunksAt = time.Now()
		n.work.disk.put(func() { n.storeChunk(e) })
	case core.StoreOwn:
		n.work.disk.put(func() { n.storeOwn(e) })
	case core.StoreDelta:
		n.work.disk.put(func() { n.storeDelta(e) })
	case core.StoreEvidence:
		n.work.disk.put(func() { n.check("store evidence", n.store.PutEvidence(e.Evidence.A, e.Evidence.B)) })
	case core.InstallTips:
		// After the chunks are on disk, and after the folds that it overtakes.
		n.work.disk.put(func() { n.work.folds.put(func() { n.install(e) }) })
	case core.TakeBack:
		n.train.takeBack(e, n.fail)
	case core.RaiseMark:
		n.raiseMark(e)
	case core.MarksKnown:
		n.marksKnown()
	case core.Verdict:
		n.view.verdict(n, e)
	default:
		n.carryOuter(e)
	}
}

func (n *node) carryOuter(e core.Effect) {
	switch e := e.(type) {
	case rounds.WantDraft:
		n.draft(e.Fragment)
	case rounds.WantFold:
		epoch := n.epoch
		n.work.folds.put(func() { n.fold(n.work.folding, e, epoch) })
	case outer.Adopt:
		n.adopt(e)
	case rounds.DropBase:
		epoch, tip := n.epoch, n.machine.Rounds().Tip(e.Fragment).Round
		n.work.folds.put(func() { n.dropBase(e, epoch, tip) })
	case core.MayStep:
		n.duplicate.may = e.Yes
		n.allow(n.clock.now())
	case core.Finished:
		n.finished = true
		now := n.clock.now()
		agreed, _ := n.machine.Gossip().Chains().Agreed(now)
		n.view.finished(n, agreed, n.machine.Gossip().Chains().OtherStates(now))
	default:
		if !core.News(e) {
			n.fatal = fmt.Errorf("nothing carries out a %T of the machine: this program is wrong", e)
			return
		}
		n.view.note(n, e)
	}
}

func (n *node) publish(msg []byte) {
	n.sending("publish")
	if err := n.host.Publish(msg); err != nil {
		n.log.Warn("publish", "err", err)
	}
}

func (n *node) call(ctx context.Context, e gossip.Call) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(e.TimeoutMs)*time.Millisecond)
	defer cancel()
	n.sending("call")
	response, err := n.host.Call(ctx, e.To, e.Request, e.MaxResponse)
	n.post(func(now core.Time) {
		n.view.called(e, len(response))
		n.machine.Step(now, gossip.Answered{Call: e.ID, Response: response, Err: err})
	})
}

// dialTimeout is how long one address may take: longer than a slow handshake
// over a bad link.
const dialTimeout = 15 * time.Second

func (n *node) dial(ctx context.Context, addr string) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	_, err := n.host.Dial(ctx, addr)
	n.post(func(core.Time) {
		n.view.dialled(n, addr, err)
		n.refusedAsDuplicate(addr, err)
	})
}

// draft asks the training thread for a copy of its progress.
func (n *node) draft(fragment int) {
	if n.train == nil {
		return
	}
	n.train.draft(fragment, func(d outer.Draft, err error) {
		n.post(func(now core.Time) {
			if err != nil {
				n.log.Error("encode own progress", "fragment", fragment, "err", err)
				n.machine.DraftFailed(now, fragment)
				n.draftDamaged(now, fragment, err)
				return
			}
			n.machine.Drafted(now, d)
		})
	})
}

// fold runs on the fold queue, beside training, until ctx ends: the next start
// folds what the ledger has.
func (n *node) fold(ctx context.Context, w rounds.WantFold, epoch uint64) {
	res, err := n.foldAndKeep(ctx, w, epoch)
	if errors.Is(err, context.Canceled) {
		return
	}
	n.lost(err)
	n.post(func(now core.Time) {
		if err != nil {
			n.log.Error("fold", "err", err)
			n.machine.FoldFailed(now, w.Fragment, w.Job)
			return
		}
		n.view.folded(w, res)
		if err := n.machine.Folded(now, w.Fragment, w.Job, res.tip, res.states); err != nil {
			n.fatal = err
		}
	})
}

// foldAndKeep folds and writes the rounds to the ledger. Rounds after them are
// those that a late delta put past the end of the fragment.
func (n *node) foldAndKeep(ctx context.Context, w rounds.WantFold, epoch uint64) (foldResult, error) {
	if epoch != n.tips.epoch {
		return foldResult{}, fmt.Errorf("fold fragment %d: %w", w.Fragment, core.ErrOvertaken)
	}
	res, err := n.tips.fold(ctx, w)
	if err == nil {
		n.keepRounds(w.Fragment, span{first: w.Start + 1, rounds: res.rounds})
	}
	return res, err
}

func (n *node) dropBase(e rounds.DropBase, epoch uint64, tip uint32) {
	if epoch == n.tips.epoch {
		n.check("drop base", n.tips.release(e.Fragment, e.Round, tip))
	}
}

func (n *node) adopt(a outer.Adopt) {
	if n.train != nil {
		n.train.adopt(a, n.healed, n.fail)
	}
	n.view.adopted(n, a)
	n.forgetFinal(a)
}

// draftDamaged does what a draft needs that damage stopped.
func (n *node) draftDamaged(now core.Time, fragment int, err error) {
	switch {
	case errors.Is(err, outer.ErrDamaged):
		n.view.damaged(n, err)
		n.machine.Damaged(now, fragment)
	case errors.Is(err, outer.ErrUnread):
		n.view.event(n, "damaged", n.self.String(), fmt.Sprintf("%v: gives up what was unpublished beside it; check the disk of %s", err, n.cfg.Dir))
		n.machine.Renew(now, fragment)
	}
}

// healed runs on the training thread, when it has got over a damaged tip or own
// delta.
func (n *node) healed(a outer.Adopt, loss outer.Loss) {
	n.post(func(now core.Time) {
		n.view.healed(n, a, loss)
		n.machine.Healed(now, a.Fragment, loss)
	})
}

// install puts the chunks of a manifest together.
func (n *node) install(e core.InstallTips) {
	m := e.Manifest
	tips, links, err := n.assemble(m)
	var left core.Left
	if err == nil {
		left, err = n.keepInstalled(tips, links, e.Common, e.Closed)
	}
	if err != nil {
		n.notInstalled(m, err)
		return
	}
	epoch := n.tips.epoch
	ledger, err := n.countLedger()
	n.check("count the ledger", err)
	n.post(func(now core.Time) {
		n.epoch = epoch
		if ledger != nil {
			n.view.ledger = ledger
			n.credit()
		}
		n.view.left(n, m.Author, left)
		n.log.Info("install tips", "from", m.Author, "round", m.Fragments[0].Round, "closed", m.Fragments[0].Closed)
		if err := n.machine.Installed(now, tips, links); err != nil {
			n.fatal = err // the disk is on another chain than the machine: a restart begins there
		}
	})
}

// notInstalled has other tips fetched where these do not fit. Whatever else went
// wrong is this disk's doing: the chunks stay, and what it lacks of them is
// fetched again when it may have room.
func (n *node) notInstalled(m wire.Manifest, err error) {
	unfit := errors.Is(err, core.ErrUnfit)
	if unfit {
		n.log.Error("install tips", "from", m.Author, "err", err)
		n.check("drop chunks", n.store.DropChunks())
	} else {
		n.check("install tips", err)
	}
	n.post(func(now core.Time) {
		if unfit {
			n.machine.InstallFailed(now)
		} else {
			n.machine.TipsNotStored(now)
		}
	})
}

func (n *node) assemble(m wire.Manifest) ([]*outer.Tip, [][]outer.Link, error) {
	return core.Assemble(m, n.plan, n.genesis.Outer, func(d wire.Digest) ([]byte, error) {
		chunk, err := n.store.Chunk(d)
		if errors.Is(err, store.ErrCorrupt) {
			n.check("drop damaged chunk", n.store.DropChunk(d))
		}
		return chunk, err
	})
}

// keepInstalled writes tips taken whole, and the links that lead to them, to
// disk, so that a restart begins there. Nothing may ever mix fragments of two
// chains, so the order is:
//
//  1. the tips of all fragments, in files that nothing names yet;
//  2. one commit of the index, which names them, drops all other bases and
//     changes the records over, in all fragments;
//  3. the tips in memory, and the epoch, which ends folds of the old chain.
//
// A crash or an error before the commit leaves the old chain with all its
// bases; a crash after it, the new chain. The files of old bases go last.
func (n *node) keepInstalled(tips []*outer.Tip, history [][]outer.Link, common, closed []uint32) (left core.Left, err error) {
	if left, err = n.leaveChain(history, common, closed); err != nil {
		return left, err
	}
	fragments := make([]store.Installed, len(tips))
	for p, tip := range tips {
		if fragments[p], err = n.installed(p, tip, history[p]); err != nil {
			return left, err
		}
		fragments[p].Forget = left.Forget[p]
	}
	if err := n.store.Install(fragments); err != nil {
		return left, err
	}
	n.tips.restart(tips)
	n.tips.epoch++
	clear(n.unrecorded)
	return left, nil
}

// installed is what the store keeps of one fragment. Older records stay if the
// links continue them.
func (n *node) installed(p int, tip *outer.Tip, links []outer.Link) (store.Installed, error) {
	in := store.Installed{Round: tip.Round, Tip: tip.Encode(), First: links[0].Round}
	same, err := core.Continues(ledger{n.store}, p, links)
	if err != nil {
		return in, err
	}
	if same {
		in.Keep = in.First
	}
	if in.First == 0 { // genesis has no record
		in.First, links = 1, links[1:]
	}
	for _, l := range links {
		in.Rounds = append(in.Rounds, storedRound(l))
	}
	return in, nil
}

// countLedger counts the authors of the chain in the records.
func (n *node) countLedger() ([]authorTokens, error) {
	ledger := make([]authorTokens, len(n.plan))
	for p := range ledger {
		var err error
		if ledger[p], err = countAuthors(n.store, p, n.genesis.Outer.WindowUnion); err != nil {
			return nil, err
		}
	}
	return ledger, nil
}

func storedRound(l outer.Link) store.Round {
	r := store.Round{Chain: wire.Digest(l.Chain), State: wire.Digest(l.State), Tokens: l.Tokens, EndRound: l.EndRound}
	for _, id := range l.Folded {
		r.Folded = append(r.Folded, wire.Digest(id))
	}
	return r
}
