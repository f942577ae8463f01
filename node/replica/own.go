package replica

import (
	"fmt"
	"sync"

	"atoll/gossip/wire"
)

// ownDeltas maps the numbers of own deltas to what the ledger calls them, for
// reading payloads back.
type ownDeltas struct {
	mu    sync.Mutex
	bySeq map[uint64]wire.Digest
}

func (o *ownDeltas) put(seq uint64, id wire.Digest) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bySeq == nil {
		o.bySeq = map[uint64]wire.Digest{}
	}
	o.bySeq[seq] = id
}

func (o *ownDeltas) get(seq uint64) (wire.Digest, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	id, ok := o.bySeq[seq]
	return id, ok
}

// ids are the ids of some own deltas, as far as they are known.
func (o *ownDeltas) ids(seqs []uint64) (ids []wire.Digest) {
	for _, seq := range seqs {
		if id, known := o.get(seq); known {
			ids = append(ids, id)
		}
	}
	return ids
}

// all are those that somebody may ask for.
func (o *ownDeltas) all() map[wire.Digest]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := make(map[wire.Digest]bool, len(o.bySeq))
	for _, id := range o.bySeq {
		ids[id] = true
	}
	return ids
}

// drop forgets own deltas that nobody asks for any more.
func (o *ownDeltas) drop(seqs []uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, seq := range seqs {
		delete(o.bySeq, seq)
	}
}

// OwnPayload reads back the payload of an own delta, for the learner. Any goroutine
// may ask.
func (r *Replica) OwnPayload(seq uint64) ([]byte, error) {
	id, ok := r.own.get(seq)
	if !ok {
		return nil, fmt.Errorf("own delta %d is not in the ledger", seq)
	}
	return r.ledger.Payload(id)
}
