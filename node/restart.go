package node

import (
	"bytes"
	"fmt"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// load returns the tips to begin with: the newest base of each fragment, or
// genesis where there is none, and what else the disk holds of the run.
func (n *node) load() (tips []*outer.Tip, saved []core.Saved, err error) {
	tips = n.genesis.Tips()
	saved, err = core.Load(savedDisk{ledger{n.store}, n}, n.self, n.genesis.Outer, tips)
	if err != nil {
		return nil, nil, fmt.Errorf("in %s: %w", n.cfg.Dir, err)
	}
	for p, s := range saved {
		tips[p] = s.Tip
		for _, o := range s.Own {
			n.owned.put(o.Seq, ownRef{wire.Digest(o.Delta.ID), o.Delta.Tokens})
		}
	}
	if saved != nil {
		n.view.ledger, err = n.countLedger()
	}
	return tips, saved, err
}

// savedDisk is a store as a restart reads it.
type savedDisk struct {
	ledger
	n *node
}

// BaseState is Store.BaseDigest.
func (d savedDisk) BaseState(fragment int, round uint32) (outer.Digest, error) {
	state, err := d.Store.BaseDigest(fragment, round)
	return outer.Digest(state), err
}

// Base reads a kept tip and keeps it in memory.
func (d savedDisk) Base(fragment int, round uint32) *outer.Tip {
	tip, err := d.n.tips.get(fragment, round)
	if d.n.check("load base", err); err != nil {
		return nil
	}
	return tip
}

// DropBase drops a kept tip from memory and disk.
func (d savedDisk) DropBase(fragment int, round uint32) error { return d.n.tips.drop(fragment, round) }

// Held is Store.Headers without those of which the payload is not here.
func (d savedDisk) Held(fragment int, from uint32, f func(id wire.Digest, h wire.SignedHeader)) error {
	return d.Headers(fragment, from, maxRound, func(id wire.Digest, h wire.SignedHeader) error {
		if _, held := d.Has(id); held {
			f(id, h)
		}
		return nil
	})
}

// Own notes the numbers of the own deltas of earlier processes.
func (d savedDisk) Own() ([]core.OwnRecord, error) {
	own, err := d.ledger.Own()
	for _, o := range own {
		d.n.firstSeq = max(d.n.firstSeq, o.Seq+1)
	}
	return own, err
}

// LostOwn says whether the disk has damaged the payload of an own delta.
func (d savedDisk) LostOwn(o core.OwnRecord) (bool, error) { return d.n.lostOwn(o) }

func linkOf(round uint32, r store.Round) outer.Link {
	l := outer.Link{Round: round, Chain: outer.Digest(r.Chain), State: outer.Digest(r.State), Tokens: r.Tokens, EndRound: r.EndRound}
	for _, id := range r.Folded {
		l.Folded = append(l.Folded, outer.ID(id))
	}
	slices.SortFunc(l.Folded, func(a, b outer.ID) int { return bytes.Compare(a[:], b[:]) }) // a record has the order of the fold
	return l
}

// restore puts machine and learner back to what the disk had.
func (n *node) restore(saved []core.Saved, l *outer.Learner) error {
	now := n.clock.now()
	evidence, err := n.store.Evidence()
	if err != nil {
		return err
	}
	for _, e := range evidence {
		n.machine.Evidence(now, e)
	}
	for p, s := range saved {
		folded, err := n.machine.Restore(now, p, s.Restored, s.Headers)
		if err != nil {
			return err
		}
		if l == nil {
			continue
		}
		if err := l.Restore(p, core.OwnWork(s.Own, folded)); err != nil {
			return fmt.Errorf("restore own progress on fragment %d: %w", p, err)
		}
	}
	return nil
}
