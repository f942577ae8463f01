package sim

import (
	"maps"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// load is what a restart finds on its disk, as package node reads it.
func (n *Node) load() []outer.Restored {
	d, union := n.disk, n.w.s.Params.WindowUnion
	saved := make([]outer.Restored, len(n.w.plan))
	for p := range saved {
		s := &saved[p]
		s.Tip, s.Bases = d.fitting(p)
		if s.Tip == nil {
			s.Tip, s.Bases = n.w.genesis[p], []uint32{0}
		}
		s.History = d.history(p, s.Tip, s.Bases[0], union)
		s.Mark = d.marks[p]
		for r := range d.rounds[p] {
			s.Closed = max(s.Closed, r)
		}
		s.Held, s.Own = d.held(p), d.ownOf(p, s.Closed, union)
		if s.ReachGenesis(n.w.s.Params, n.w.genesis[p]); s.Bases[0] == 0 {
			d.bases[p][0] = n.w.genesis[p]
		}
	}
	return saved
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

// fitting returns the newest kept tip that its round's record confirms, and the
// rounds of all such bases; the others are dropped.
func (d *disk) fitting(p int) (newest *outer.Tip, rounds []uint32) {
	for _, r := range slices.Sorted(maps.Keys(d.bases[p])) {
		tip := d.bases[p][r]
		if r > 0 && d.rounds[p][r].State != tip.State {
			delete(d.bases[p], r)
			delete(d.written[p], r)
			continue
		}
		newest, rounds = tip, append(rounds, r)
	}
	return newest, rounds
}

// history are the links that lead to a tip, oldest first, without a gap: those of
// the union window, and back to the oldest base.
func (d *disk) history(p int, tip *outer.Tip, oldest, union uint32) []outer.Link {
	end := outer.Link{Round: tip.Round, Chain: tip.Chain, State: tip.State, Tokens: tip.Tokens, EndRound: tip.EndRound}
	if l, ok := d.rounds[p][tip.Round]; ok {
		end.Folded = l.Folded
	}
	links := []outer.Link{end}
	from := min(oldest, tip.Round-min(tip.Round, union))
	for r := tip.Round; r > from && r > 1; r-- {
		l, ok := d.rounds[p][r-1]
		if !ok {
			break
		}
		links = append(links, l)
	}
	slices.Reverse(links)
	return links
}

func (d *disk) held(p int) []outer.Delta {
	var held []outer.Delta
	for id, f := range d.deltas {
		h := f.header
		if int(h.Header.Fragment) == p {
			held = append(held, core.DeltaOf(id, h.Header))
		}
	}
	slices.SortFunc(held, func(a, b outer.Delta) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return held
}

func (d *disk) ownOf(p int, closed, union uint32) []outer.OwnDelta {
	var own []outer.OwnDelta
	for _, o := range d.own {
		h := d.deltas[o.id].header.Header
		if int(h.Fragment) == p && h.Round+union > closed {
			own = append(own, outer.OwnDelta{Seq: o.seq, Delta: core.DeltaOf(o.id, h)})
		}
	}
	return own
}

// restore gives machine and learner what the disk had.
func (n *Node) restore(saved []outer.Restored) {
	if saved == nil {
		return
	}
	for _, e := range n.disk.evidence {
		n.machine.Evidence(n.clock(), e)
	}
	for p, s := range saved {
		headers := map[wire.Digest]wire.SignedHeader{}
		for _, d := range s.Held {
			headers[wire.Digest(d.ID)] = *n.disk.deltas[wire.Digest(d.ID)].header
		}
		folded, err := n.machine.Restore(n.clock(), p, s, headers)
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
func (n *Node) ownWork(p int, own []outer.OwnDelta, folded []uint64) []outer.Own {
	var work []outer.Own
	for _, o := range own {
		in := slices.Contains(folded, o.Seq)
		work = append(work, outer.Own{Seq: o.Seq, Base: o.Delta.Base, Steps: o.Delta.Steps, Tokens: o.Delta.Tokens, Folded: in})
		if n.shadow != nil {
			n.shadow[p].restored(o.Seq, n.decode(p, n.disk.deltas[wire.Digest(o.Delta.ID)].bytes), in)
		}
	}
	return work
}
