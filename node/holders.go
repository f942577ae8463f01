package node

import (
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"atoll/gossip"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/core"
)

// holders tells which delta a gossip message announces, by the id of the message: a peer that has the message
// will have the payload. It also keeps who said so of a message that has not come yet.
type holders struct {
	deltas *simplelru.LRU[wire.Digest, wire.Digest]   // of messages that came; zero for one that announces none
	early  *simplelru.LRU[wire.Digest, []wire.PeerID] // by messages that did not
}

const (
	// maxAnnounced is how many messages are remembered: more than a run says in the seconds in which payloads are fetched.
	maxAnnounced = 4096
	// maxEarlyMessages bounds what peers have said they have of messages that did not come. Whoever makes some up
	// takes the place of others' news, and payloads are then asked of their authors alone.
	maxEarlyMessages = 1024
	// maxEarlyHolders is how many peers are kept for one of them: the author, and as many as payloads are asked of beside it
	// (maxSources).
	maxEarlyHolders = 9
)

func newHolders() holders {
	return holders{lru[wire.Digest](maxAnnounced), lru[[]wire.PeerID](maxEarlyMessages)}
}

// lru is a map that forgets what was used least recently.
func lru[V any](size int) *simplelru.LRU[wire.Digest, V] {
	l, err := simplelru.NewLRU[wire.Digest, V](size, nil)
	if err != nil {
		panic(err) // for a size below 1 only
	}
	return l
}

// came records what a message announces, and returns the peers that have it already.
func (h *holders) came(id, delta wire.Digest) []wire.PeerID {
	h.deltas.Add(id, delta)
	had, _ := h.early.Peek(id)
	h.early.Remove(id)
	return had
}

// has records that a peer has a message, and returns the delta that it announces: zero if there is none, or
// none is known yet.
func (h *holders) has(id wire.Digest, peer wire.PeerID) (delta wire.Digest) {
	if delta, came := h.deltas.Get(id); came {
		return delta
	}
	had, _ := h.early.Get(id)
	if len(had) < maxEarlyHolders && !slices.Contains(had, peer) {
		h.early.Add(id, append(had, peer))
	}
	return wire.Digest{}
}

// announced records what a message announces, and which peers have it beside the one that it came from.
func (n *node) announced(now core.Time, id wire.Digest, msg wire.Message) {
	var delta wire.Digest
	if msg.Header != nil {
		delta = msg.Header.Header.ID(n.run)
	}
	for _, peer := range n.holders.came(id, delta) {
		n.forwarded(now, delta, peer)
	}
}

// has records another peer that has the delta which a message announces. A delta that was refused has an id
// that nobody wants.
func (n *node) has(now core.Time, e p2p.Has) {
	n.forwarded(now, n.holders.has(e.ID, e.From), e.From)
}

func (n *node) forwarded(now core.Time, delta wire.Digest, from wire.PeerID) {
	if delta != (wire.Digest{}) {
		n.machine.Step(now, gossip.Forwarded{From: from, ID: delta})
	}
}
