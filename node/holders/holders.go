// Package holders tells which peers have the payload of a delta, from the messages that they say they have.
package holders

import (
	"slices"

	"github.com/hashicorp/golang-lru/v2/simplelru"

	"atoll/gossip/wire"
)

// Holders tells which delta a gossip message announces, by the id of the message: a peer that has the message
// will have the payload. It also keeps who said so of a message that has not come yet.
type Holders struct {
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

// New knows of no message.
func New() Holders {
	return Holders{lru[wire.Digest](maxAnnounced), lru[[]wire.PeerID](maxEarlyMessages)}
}

// lru is a map that forgets what was used least recently.
func lru[V any](size int) *simplelru.LRU[wire.Digest, V] {
	l, err := simplelru.NewLRU[wire.Digest, V](size, nil)
	if err != nil {
		panic(err) // for a size below 1 only
	}
	return l
}

// Came records what a message announces, and returns the peers that have it already.
func (h *Holders) Came(id, delta wire.Digest) []wire.PeerID {
	h.deltas.Add(id, delta)
	had, _ := h.early.Peek(id)
	h.early.Remove(id)
	return had
}

// Has records that a peer has a message, and returns the delta that it announces: zero if there is none, or
// none is known yet.
func (h *Holders) Has(id wire.Digest, peer wire.PeerID) (delta wire.Digest) {
	if delta, came := h.deltas.Get(id); came {
		return delta
	}
	had, _ := h.early.Get(id)
	if len(had) < maxEarlyHolders && !slices.Contains(had, peer) {
		h.early.Add(id, append(had, peer))
	}
	return wire.Digest{}
}
