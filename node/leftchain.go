package node

import (
	"errors"
	"fmt"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// leaveChain says what of this node's own work stays behind with the chain on its disk
// when the links of others take the place of its own.
func (n *node) leaveChain(history [][]outer.Link, common, closed []uint32) (core.Left, error) {
	records, err := ledger{n.store}.Own()
	if err != nil {
		return core.Left{}, err
	}
	return core.LeaveChain(ledger{n.store}, n.self, n.genesis.Outer.WindowUnion, history, common, closed, records)
}

// ledger is a store as core reads it.
type ledger struct{ *store.Store }

// Rounds is Store.Rounds with records as links.
func (l ledger) Rounds(fragment int, from, to uint32, f func(outer.Link) error) error {
	return l.Store.Rounds(fragment, from, to, func(round uint32, r store.Round) error { return f(linkOf(round, r)) })
}

// Own is Store.Own as core wants it.
func (l ledger) Own() ([]core.OwnRecord, error) {
	own, err := l.Store.Own()
	records := make([]core.OwnRecord, len(own))
	for i, o := range own {
		records[i] = core.OwnRecord{Seq: o.Seq, ID: o.ID, Header: o.Header.Header}
	}
	return records, err
}

// Header is Store.Header, where not to know one is no error.
func (l ledger) Header(id wire.Digest) (h wire.Header, known bool, err error) {
	signed, err := l.Store.Header(id)
	if errors.Is(err, store.ErrNotFound) {
		return h, false, nil
	}
	return signed.Header, err == nil, err
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
	rounds := n.machine.Gossip().Chains().Common()
	if slices.Equal(rounds, n.commonKept) {
		return
	}
	n.commonKept = rounds
	n.work.disk.put(func() { n.check("keep common rounds", n.store.Put(commonKey, wire.Marshal(rounds))) })
}

// left tells what was left behind with a chain.
func (v *view) left(n *node, donor wire.PeerID, c core.Left) {
	deltas, tokens := 0, uint64(0)
	for p := range c.Own {
		v.discarded[p] += c.Final[p]
		deltas += len(c.Own[p])
		tokens += c.Tokens[p]
	}
	tokens /= uint64(max(len(c.Own), 1)) // each step's tokens are in every fragment's deltas
	if deltas > 0 {
		v.event(n, "left a chain", donor.String(), fmt.Sprintf("%d own deltas, about %d tokens, were folded only on the chain left for that of this peer; `atoll ledger` lists them", deltas, tokens))
	}
}
