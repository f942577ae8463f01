package replica

import (
	"errors"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// install puts the chunks of a snapshot together, in place of the tips held here.
// Nothing may ever mix fragments of two chains, so the order is:
//
//  1. one commit of the ledger, which names the new tips, drops all other bases
//     and changes the records over, in all fragments;
//  2. the tips in memory, and the epoch, which ends folds of the old chain.
//
// A crash or an error before the commit leaves the old chain with all its
// bases; a crash after it, the new chain.
func (r *Replica) install(e core.InstallSnapshot) {
	from := e.Manifest.Author
	tips, links, err := core.Assemble(e.Manifest, r.plan, r.params, r.ledger.Chunk)
	if err != nil {
		r.notInstalled(from, err)
		return
	}
	for p, tip := range tips {
		tips[p] = r.arithmetic.Intern(tip)
	}
	left, err := r.changeChain(tips, links, e.Common, e.Closed)
	if err != nil {
		r.notInstalled(from, err)
		return
	}
	epoch, authors := r.bases.epoch, r.authors()
	r.exec.Post(func(now core.Time) {
		r.epoch = epoch
		r.watcher.Saw(Installed{from, tips, left})
		r.credit(authors)
		if err := r.machine.Installed(now, tips, links, nil); err != nil {
			r.watcher.Fail(err) // the disk is on another chain than the machine: a restart begins there
		}
	})
}

// changeChain writes a snapshot, and the links that lead to it.
func (r *Replica) changeChain(tips []*outer.Tip, links [][]outer.Link, common, closed []uint32) (core.Left, error) {
	own, err := r.ledger.Own()
	if err != nil {
		return core.Left{}, err
	}
	left, err := core.LeaveChain(r.ledger, r.self, r.params.WindowUnion, links, common, closed, own)
	if err != nil {
		return left, err
	}
	fragments := make([]InstalledFragment, len(tips))
	for p, tip := range tips {
		keep, err := core.Continues(r.ledger, p, links[p])
		if err != nil {
			return left, err
		}
		fragments[p] = InstalledFragment{Tip: tip, Links: links[p], Keep: keep, Forget: left.Forget[p]}
	}
	if err := r.ledger.Install(fragments); err != nil {
		return left, err
	}
	r.bases.restart(tips)
	r.bases.epoch++
	clear(r.waiting)
	return left, nil
}

// notInstalled has another snapshot fetched where this one does not fit. Anything else that went
// wrong is this disk's doing: the chunks stay, and what it lacks of them is
// fetched again when it may have room.
func (r *Replica) notInstalled(from wire.PeerID, err error) {
	if errors.Is(err, core.ErrUnfit) {
		r.watcher.Check("drop chunks", r.ledger.DropChunks())
	} else {
		r.watcher.Check("install a snapshot", err)
	}
	r.exec.Post(func(now core.Time) {
		r.watcher.Saw(NotInstalled{from, err})
		if err := r.machine.Installed(now, nil, nil, err); err != nil {
			r.watcher.Fail(err)
		}
	})
}

// authors are the authors of the deltas in the ledger, in the order in which they were folded first: places go by that, which
// are for a few (G-4.4). To read them takes a second for a million deltas.
func (r *Replica) authors() (authors []wire.PeerID) {
	r.watcher.Check("read the authors of the ledger", r.ledger.Authors(func(a wire.PeerID) { authors = append(authors, a) }))
	return authors
}

// credit tells the machine who has contributed, in that order.
func (r *Replica) credit(authors []wire.PeerID) {
	for _, a := range authors {
		r.machine.Credit(a)
	}
}
