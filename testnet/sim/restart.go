package sim

import (
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// load is what a restart finds on its disk: nil if that is nothing.
func (n *Node) load() []core.Saved {
	saved, err := core.Load(n.disk, n.id, n.w.s.Params, n.w.genesis)
	if err != nil {
		n.broken("core", "%v", err)
	}
	for p, s := range saved {
		if s.Bases[0] == 0 {
			n.disk.bases[p][0] = n.w.genesis[p]
		}
	}
	return saved
}

// restore gives machine and learner what the disk had.
func (n *Node) restore(saved []core.Saved) {
	if saved == nil {
		return
	}
	for _, e := range n.disk.evidence {
		n.machine.Evidence(n.clock(), e)
	}
	for p, s := range saved {
		folded, err := n.machine.Restore(n.clock(), p, s.Restored, s.Headers)
		if err == nil {
			err = n.learner.Restore(p, n.ownWork(p, s.Own, folded))
		}
		if err != nil {
			n.broken("core", "restore fragment %d: %v", p, err)
			return
		}
	}
}

// ownWork is what the learner is told of own deltas that a restart found.
func (n *Node) ownWork(p int, own []rounds.OwnDelta, folded []uint64) []outer.Own {
	work := core.OwnWork(own, folded)
	for i, o := range own {
		if n.shadow != nil {
			n.shadow[p].Restored(o.Seq, n.decode(p, n.disk.deltas[wire.Digest(o.Delta.ID)].bytes), work[i].Folded)
		}
	}
	return work
}

// empty says that nothing of the run is on the disk.
func (d *disk) empty() bool {
	for p := range d.rounds {
		if len(d.rounds[p]) > 0 || d.marks[p] > 0 {
			return false
		}
	}
	return len(d.deltas) == 0
}
