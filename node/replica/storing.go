package replica

import (
	"errors"

	"atoll/gossip"
	"atoll/node/core"
)

// storeOwn makes an own delta durable; only then is it announced. What cannot be
// made durable never leaves: it is returned to the learner.
func (r *Replica) storeOwn(e core.StoreOwn) {
	err := r.ledger.PutOwn(e)
	r.watcher.Check("keep own delta", err)
	switch {
	case err == nil:
		r.own.put(e.Seq, e.ID)
		r.exec.Announce(func(now core.Time) { r.machine.StoredOwn(now, e, nil) })
	case errors.Is(err, ErrFatal): // machine and disk disagree about what was signed
		r.watcher.Fail(err)
	default:
		r.exec.Post(func(now core.Time) { r.machine.StoredOwn(now, e, err) })
	}
}

// storeDelta checks that a payload decodes and keeps it.
func (r *Replica) storeDelta(e core.StoreDelta) {
	bad := r.arithmetic.CheckPayload(core.DeltaOf(e.ID, e.Header.Header, nil), e.Payload)
	var err error
	if bad == nil {
		err = r.ledger.PutDelta(e.ID, e.Header, e.Payload)
		r.watcher.Check("store delta", err)
	}
	r.exec.Post(func(now core.Time) {
		if bad != nil {
			r.machine.Invalid(now, e.ID, bad)
			return
		}
		if err == nil {
			r.watcher.Saw(PayloadOnDisk{e})
		}
		r.machine.StoredDelta(now, e.ID, err)
	})
}

// storeChunk keeps a chunk of a snapshot, or tells that it is still missing.
func (r *Replica) storeChunk(e gossip.StoreChunk) {
	err := r.ledger.PutChunk(e.Digest, e.Bytes)
	r.watcher.Check("store chunk", err)
	r.exec.Post(func(now core.Time) {
		r.chunksAt = r.exec.Elapsed()
		if err != nil {
			r.machine.ChunkNotStored(now, e.Digest)
		}
	})
}

// DropOldChunks drops the chunks of snapshots that are of no use any more. It belongs to
// the loop; some calls a minute are enough.
func (r *Replica) DropOldChunks() {
	if r.chunksAt < 0 || r.exec.Elapsed()-r.chunksAt < r.policy.ChunksStayMs || r.machine.View().NeedsChunks() {
		return
	}
	r.chunksAt = -1
	r.write("drop chunks", func() error { return errors.Join(r.ledger.DropChunks(), r.ledger.PutFetching(nil)) })
}
