package replica

import (
	"fmt"
	"sync"

	"atoll/gossip/wire"
)

// ownDeltas maps the numbers of own deltas to what the ledger calls them, for
// reading payloads back and for the account.
type ownDeltas struct {
	mu    sync.Mutex
	bySeq map[uint64]ownDelta
}

// ownDelta is an own delta in the ledger.
type ownDelta struct {
	id     wire.Digest
	tokens uint64
}

func (o *ownDeltas) put(seq uint64, d ownDelta) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bySeq == nil {
		o.bySeq = map[uint64]ownDelta{}
	}
	o.bySeq[seq] = d
}

func (o *ownDeltas) get(seq uint64) (ownDelta, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	d, ok := o.bySeq[seq]
	return d, ok
}

// ids are the ids of some own deltas, as far as they are known.
func (o *ownDeltas) ids(seqs []uint64) (ids []wire.Digest) {
	for _, seq := range seqs {
		if d, known := o.get(seq); known {
			ids = append(ids, d.id)
		}
	}
	return ids
}

// all are those that somebody may ask for.
func (o *ownDeltas) all() map[wire.Digest]bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	ids := make(map[wire.Digest]bool, len(o.bySeq))
	for _, d := range o.bySeq {
		ids[d.id] = true
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

// OwnTokens is the sum of the tokens of some own deltas. Any goroutine may ask.
func (r *Replica) OwnTokens(seqs []uint64) (sum uint64) {
	for _, seq := range seqs {
		d, _ := r.own.get(seq)
		sum += d.tokens
	}
	return sum
}

// OwnPayload reads back the payload of an own delta, for the learner. Any goroutine
// may ask.
func (r *Replica) OwnPayload(seq uint64) ([]byte, error) {
	d, ok := r.own.get(seq)
	if !ok {
		return nil, fmt.Errorf("own delta %d is not in the ledger", seq)
	}
	return r.ledger.Payload(d.id)
}
