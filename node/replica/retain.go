package replica

import (
	"slices"

	"atoll/node/core"
)

// retainEveryMs is how often the ledger is looked at: it grows by megabytes a minute.
const retainEveryMs = 30_000

// retention keeps the ledger within its budget. It belongs to the loop.
type retention struct {
	at   int64 // when it was last looked at; 0 = never
	busy bool
}

// Where the ledger takes more than it may, Retain drops payloads that nobody can ask
// for any more. They are of final rounds up to the oldest kept base, from which
// `atoll verify` then replays. What else is known of such rounds goes into the archive.
// Retain belongs to the loop and may be called at any time.
func (r *Replica) Retain() {
	now := r.exec.Elapsed()
	if r.retention.busy || r.retention.at > 0 && now-r.retention.at < retainEveryMs {
		return
	}
	r.retention = retention{at: max(now, 1), busy: true}
	limit := make([]uint32, len(r.plan))
	for p := range limit {
		limit[p] = r.machine.View().Droppable(p)
	}
	r.exec.Serve(0, func(func() bool) {
		kept, err := r.shrink(limit)
		r.exec.Post(func(core.Time) {
			r.retention.busy = false
			if err == nil && r.policy.KeepBytes > 0 {
				r.watcher.Saw(Retained{kept, r.policy.KeepBytes})
			}
		})
	})
}

// shrink drops payloads and archives rounds up to limits, which it lowers to what stays verifiable. Damaged payloads
// keep no round out of the archive.
func (r *Replica) shrink(limit []uint32) (kept Kept, err error) {
	if err := r.verifiable(limit); err != nil {
		r.watcher.Check("drop old payloads", err)
		return kept, err
	}
	if r.policy.KeepBytes > 0 {
		// Own deltas that an adoption under way may read stay.
		kept, err = r.ledger.Retain(r.policy.KeepBytes, limit, r.own.all())
	}
	r.watcher.Check("drop old payloads", err)
	r.watcher.Check("archive old rounds", r.ledger.Archive(limit))
	return kept, err
}

// verifiable lowers limits to what leaves bases on disk to replay from: all of those
// that are there, as a restart takes the oldest.
func (r *Replica) verifiable(limit []uint32) error {
	for p := range limit {
		kept, err := r.ledger.Bases(p)
		if err != nil {
			return err
		}
		oldest := uint32(0)
		if len(kept) > 0 {
			oldest = slices.Min(kept)
		}
		limit[p] = min(limit[p], oldest)
	}
	return nil
}
