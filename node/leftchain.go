package node

import (
	"errors"
	"fmt"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// leftChain is what of this node's own work was folded on a chain that it leaves
// for another, and is not folded there. Repair may still bring some of it in.
type leftChain struct {
	own    [][]wire.Digest // ids, per fragment
	forget [][]wire.Digest // those and others that a restart must not take for in flight, per fragment
	tokens []uint64        // of them, per fragment
	final  []uint64        // tokens of those that the machine has forgotten: older than its window
}

// add compares the records of a fragment with the links that lead to the tip
// which takes its place. What the links do not reach is of the chain that is left
// from the last round on that others are known to have had in common.
func (c *leftChain) add(n *node, p int, links []outer.Link, common uint32, own []store.OwnDelta) error {
	c.own, c.forget = append(c.own, nil), append(c.forget, nil)
	c.tokens, c.final = append(c.tokens, 0), append(c.final, 0)
	from, err := n.leftFrom(p, links[0], common)
	if err != nil {
		return err
	}
	closed, err := n.store.LastRound(p)
	if err != nil {
		return err
	}
	if from <= links[0].Round {
		if err := c.addOlder(n, p, links[0].Round, own); err != nil {
			return err
		}
	}
	last := links[len(links)-1].Round
	return n.store.Rounds(p, from, last, func(round uint32, r store.Round) error {
		for _, id := range r.Folded {
			h, err := n.store.Header(id)
			if err != nil && !errors.Is(err, store.ErrNotFound) {
				return err
			}
			if err != nil || h.Header.Author != n.self || folds(links, round, id) {
				continue
			}
			c.lose(p, id, h.Header.Tokens)
			if round+n.genesis.Outer.WindowUnion <= closed {
				c.final[p] += h.Header.Tokens
			}
		}
		return nil
	})
}

func (c *leftChain) lose(p int, id wire.Digest, tokens uint64) {
	c.own[p], c.forget[p] = append(c.own[p], id), append(c.forget[p], id)
	c.tokens[p] += tokens
}

// addOlder adds the own deltas of a fragment that are older than the links. Those
// in flight are given up: nobody here can say whether the other chain folds them.
// Those that were folded left the parameters then, and their records go with the
// chain, so that a restart could not know it.
func (c *leftChain) addOlder(n *node, p int, before uint32, own []store.OwnDelta) error {
	for _, o := range own {
		h := o.Header.Header
		if int(h.Fragment) != p || h.Round >= before {
			continue
		}
		record, err := n.store.Round(p, h.Round)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return err
		}
		if slices.Contains(record.Folded, o.ID) {
			c.forget[p] = append(c.forget[p], o.ID)
		} else {
			c.lose(p, o.ID, h.Tokens)
		}
	}
	return nil
}

// leftFrom is the first round of the records that may not be on the new chain.
func (n *node) leftFrom(p int, first outer.Link, common uint32) (uint32, error) {
	if first.Round == 0 {
		return 1, nil
	}
	old, err := n.store.Round(p, first.Round)
	switch {
	case err != nil && !errors.Is(err, store.ErrNotFound):
		return 0, err
	case err == nil && outer.Digest(old.Chain) == first.Chain:
		return first.Round + 1, nil
	}
	return min(common, first.Round) + 1, nil
}

// folds says whether one of the links names a delta.
func folds(links []outer.Link, round uint32, id wire.Digest) bool {
	first := links[0].Round
	return round >= first && round-first < uint32(len(links)) && slices.Contains(links[round-first].Folded, outer.ID(id))
}

// commonKey is where the rounds are kept up to which others are known to have
// folded the same, so that a restart in a partition knows what it began with.
const commonKey = "common"

// common are those rounds, one a fragment.
func (n *node) common() []uint32 {
	rounds := make([]uint32, len(n.plan))
	var kept []uint32
	if b, err := n.store.Get(commonKey); err == nil && wire.Unmarshal(b, &kept) == nil {
		copy(rounds, kept)
	}
	return rounds
}

// keepCommon writes them when they have moved.
func (n *node) keepCommon() {
	rounds := n.machine.Gossip().Common()
	if slices.Equal(rounds, n.commonKept) {
		return
	}
	n.commonKept = rounds
	n.work.disk.put(func() { n.check("keep common rounds", n.store.Put(commonKey, wire.Marshal(rounds))) })
}

// left tells what was left behind with a chain.
func (v *view) left(n *node, donor wire.PeerID, c leftChain) {
	deltas, tokens := 0, uint64(0)
	for p := range c.own {
		v.discarded[p] += c.final[p]
		deltas += len(c.own[p])
		tokens += c.tokens[p]
	}
	tokens /= uint64(max(len(c.own), 1)) // each step's tokens are in every fragment's deltas
	if deltas > 0 {
		v.event(n, "left a chain", donor.String(), fmt.Sprintf("%d own deltas, about %d tokens, were folded only on the chain left for that of this peer; `atoll ledger` lists them", deltas, tokens))
	}
}
