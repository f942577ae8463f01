package node

import (
	"fmt"
	"sync"

	"atoll/gossip/wire"
)

// owned maps the seqs of own deltas to what the ledger calls them, for reading
// payloads back and for the account.
type owned struct {
	mu  sync.Mutex
	ref map[uint64]ownRef
}

// ownRef is an own delta in the ledger.
type ownRef struct {
	id     wire.Digest
	tokens uint64
}

func (o *owned) put(seq uint64, ref ownRef) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ref == nil {
		o.ref = map[uint64]ownRef{}
	}
	o.ref[seq] = ref
}

func (o *owned) get(seq uint64) (ownRef, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	ref, ok := o.ref[seq]
	return ref, ok
}

// ids are those of all own deltas that somebody may ask for.
func (o *owned) ids() map[wire.Digest]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := make(map[wire.Digest]bool, len(o.ref))
	for _, ref := range o.ref {
		ids[ref.id] = true
	}
	return ids
}

// drop forgets own deltas that nobody asks for any more.
func (o *owned) drop(seqs []uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, seq := range seqs {
		delete(o.ref, seq)
	}
}

// tokens are those of some own deltas together.
func (o *owned) tokens(seqs []uint64) (sum uint64) {
	for _, seq := range seqs {
		ref, _ := o.get(seq)
		sum += ref.tokens
	}
	return sum
}

// ownPayload reads back the payload of an own delta, for the learner.
func (n *node) ownPayload(seq uint64) ([]byte, error) {
	own, ok := n.owned.get(seq)
	if !ok {
		return nil, fmt.Errorf("own delta %d is not in the ledger of %s", seq, n.cfg.Dir)
	}
	return n.store.Payload(own.id)
}
