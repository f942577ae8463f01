package core_test

import (
	"fmt"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// disk is what survives a crash.
type disk struct {
	payloads map[wire.Digest][]byte
	headers  map[wire.Digest]wire.SignedHeader
	own      []ownRecord
	marks    []uint32
	bases    []map[uint32]*outer.Tip
	rounds   []map[uint32]outer.Link
	chunks   map[wire.Digest][]byte
}

type ownRecord struct {
	seq  uint64
	id   wire.Digest
	life int
}

func newDisk(fragments int) *disk {
	d := &disk{
		payloads: map[wire.Digest][]byte{}, headers: map[wire.Digest]wire.SignedHeader{},
		chunks: map[wire.Digest][]byte{}, marks: make([]uint32, fragments),
	}
	for range fragments {
		d.bases = append(d.bases, map[uint32]*outer.Tip{})
		d.rounds = append(d.rounds, map[uint32]outer.Link{})
	}
	return d
}

func (d *disk) put(id wire.Digest, h wire.SignedHeader, payload []byte) {
	d.headers[id], d.payloads[id] = h, payload
}

// ownPayload reads an own delta back for the learner: the newest of that seq.
func (d *disk) ownPayload(seq uint64) ([]byte, error) {
	for _, o := range slices.Backward(d.own) {
		if o.seq == seq {
			return d.payloads[o.id], nil
		}
	}
	return nil, fmt.Errorf("own delta %d is not on disk", seq)
}

func (d *disk) keepRound(p int, tip *outer.Tip, folded []outer.ID) {
	d.rounds[p][tip.Round] = outer.Link{
		Round: tip.Round, Chain: tip.Chain, State: tip.State, Tokens: tip.Tokens, EndRound: tip.EndRound,
		Folded: sortedIDs(folded),
	}
}

func sortedIDs(ids []outer.ID) []outer.ID {
	ids = slices.Clone(ids)
	slices.SortFunc(ids, func(a, b outer.ID) int { return slices.Compare(a[:], b[:]) })
	return ids
}

// restart forgets the bases of a fragment, which may be of another chain.
func (d *disk) restart(p int, tip *outer.Tip, links []outer.Link) {
	d.bases[p] = map[uint32]*outer.Tip{tip.Round: tip}
	for r := range d.rounds[p] {
		if r > tip.Round {
			delete(d.rounds[p], r)
		}
	}
	for _, l := range links {
		d.rounds[p][l.Round] = l
	}
}

// load is what a restart finds. Only bases of rounds divisible by spacing are
// on disk, as memory holds the others.
func (n *node) load(spacing uint32) []outer.Restored {
	genesis := n.w.genesis()
	saved := make([]outer.Restored, len(genesis))
	for p := range saved {
		d, s := n.disk, &saved[p]
		for r := range d.bases[p] {
			if r%spacing != 0 && len(d.bases[p]) > 1 {
				delete(d.bases[p], r)
			}
		}
		if len(d.bases[p]) == 0 {
			d.bases[p][0] = genesis[p]
		}
		for r := range d.bases[p] {
			s.Bases = append(s.Bases, r)
		}
		slices.Sort(s.Bases)
		s.Tip = d.bases[p][s.Bases[len(s.Bases)-1]]
		s.History = d.history(p, s.Tip, n.w.cfg.params.WindowUnion)
		s.Mark, s.Closed = d.marks[p], s.Tip.Round
		for r := range d.rounds[p] {
			s.Closed = max(s.Closed, r)
		}
		s.Held, s.Own = d.held(p, s.Bases[0]), d.ownOf(p, s.Closed, n.w.cfg.params.WindowUnion)
	}
	return saved
}

// history are the links that lead to a tip, without a gap.
func (d *disk) history(p int, tip *outer.Tip, union uint32) []outer.Link {
	end := outer.Link{Round: tip.Round, Chain: tip.Chain, State: tip.State, Tokens: tip.Tokens, EndRound: tip.EndRound}
	links := []outer.Link{end}
	for r := tip.Round; r+union > tip.Round; r-- {
		l, ok := d.rounds[p][r]
		if !ok {
			break
		}
		if r == tip.Round {
			links[0] = l
			continue
		}
		links = slices.Insert(links, 0, l)
	}
	return links
}

func (d *disk) held(p int, base uint32) []outer.Delta {
	var held []outer.Delta
	for id, h := range d.headers {
		if int(h.Header.Fragment) == p && h.Header.Round > base {
			held = append(held, core.DeltaOf(id, h.Header))
		}
	}
	slices.SortFunc(held, func(a, b outer.Delta) int { return slices.Compare(a.ID[:], b.ID[:]) })
	return held
}

func (d *disk) ownOf(p int, closed, union uint32) []outer.OwnDelta {
	var own []outer.OwnDelta
	for _, o := range d.own {
		h := d.headers[o.id].Header
		if int(h.Fragment) == p && h.Round+union > closed {
			own = append(own, outer.OwnDelta{Seq: o.seq, Delta: core.DeltaOf(o.id, h)})
		}
	}
	return own
}

// crash kills a node: all but its disk is gone.
func (n *node) crash() {
	n.stop()
	n.life++
	n.hung, n.backlog = false, nil
}

// restartNode boots a crashed node from its disk.
func (n *node) restartNode() {
	for p := range n.w.plan {
		n.lost += n.learner.Account(p).Total().Tokens
	}
	n.boot(n.load(4))
	for p := range n.w.plan {
		n.lost -= n.learner.Account(p).Total().Tokens
	}
	n.w.connectAll()
}

// restore gives machine and learner what the disk had.
func (n *node) restore(saved []outer.Restored) {
	for p, s := range saved {
		headers := map[wire.Digest]wire.SignedHeader{}
		for _, d := range s.Held {
			headers[wire.Digest(d.ID)] = n.disk.headers[wire.Digest(d.ID)]
		}
		folded, err := n.machine.Restore(n.w.now, p, s, headers)
		if err != nil {
			n.w.fatalf("node %d: %v", n.index, err)
		}
		var own []outer.Own
		for _, o := range s.Own {
			in := slices.Contains(folded, o.Seq)
			own = append(own, outer.Own{Seq: o.Seq, Base: o.Delta.Base, Steps: o.Delta.Steps, Tokens: o.Delta.Tokens, Folded: in})
			if payload, _ := n.disk.ownPayload(o.Seq); !in {
				n.shadow[p].restored(o.Seq, n.decode(p, payload))
			} else {
				n.shadow[p].folded[o.Seq] = n.decode(p, payload)
			}
		}
		if err := n.learner.Restore(p, own); err != nil {
			n.w.fatalf("node %d: %v", n.index, err)
		}
	}
}
