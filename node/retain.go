package node

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"atoll/node/core"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// retention keeps the ledger within its budget. It belongs to the loop.
type retention struct {
	at   time.Time // when it was last looked at
	busy bool
	said bool // that the budget is too small
}

// retainEvery is how often the ledger is measured: it grows by megabytes a
// minute, and to add it up takes a second for a million deltas.
const retainEvery = 30 * time.Second

// retain drops payloads that nobody can ask for any more, where the ledger takes
// more than it may: those of final rounds up to the oldest kept base, from which
// `atoll verify` then replays.
func (n *node) retain() {
	if n.cfg.KeepBytes == 0 || n.retention.busy || time.Since(n.retention.at) < retainEvery {
		return
	}
	n.retention.busy, n.retention.at = true, time.Now()
	limit := n.droppable()
	n.work.goRun(func(context.Context) {
		kept, err := n.keepVerifiable(limit)
		n.check("drop old payloads", err)
		n.post(func(core.Time) { n.retained(kept, err) })
	})
}

// droppable is Machine.Droppable of each fragment.
func (n *node) droppable() []uint32 {
	limit := make([]uint32, len(n.plan))
	for p := range limit {
		limit[p] = n.machine.Droppable(p)
	}
	return limit
}

// keepVerifiable is Retain within what leaves bases on disk to replay from: all of those that are
// there, as a restart takes the oldest. Own deltas that an adoption under way may read stay.
func (n *node) keepVerifiable(limit []uint32) (store.Kept, error) {
	for p := range limit {
		bases, err := n.store.Bases(p)
		if err != nil {
			return store.Kept{}, err
		}
		oldest := uint32(0)
		if len(bases) > 0 {
			oldest = slices.Min(bases)
		}
		limit[p] = min(limit[p], oldest)
	}
	return n.store.Retain(n.cfg.KeepBytes, limit, n.owned.ids())
}

func (n *node) retained(kept store.Kept, err error) {
	n.retention.busy = false
	if err != nil {
		return
	}
	if kept.Dropped > 0 {
		n.log.Info("dropped payloads of final rounds", "payloads", kept.Dropped, "left", kept.Total())
	}
	if over := kept.Total() > n.cfg.KeepBytes; over && !n.retention.said {
		n.retention.said = true
		n.view.event(n, "disk", "", fmt.Sprintf("the ledger takes %s, of which nothing may go: what the last %d rounds need is more than the %s of --keep",
			status.Bytes(float64(kept.Total())), n.genesis.Outer.WindowUnion, status.Bytes(float64(n.cfg.KeepBytes))))
	}
}

// forgetFinal takes own deltas that are final off the list that a restart reads. Those that were
// discarded may be regained until they are forgotten.
func (n *node) forgetFinal(a outer.Adopt) {
	seqs, gone := a.Final(), slices.Concat(a.Forgotten, a.Returned)
	if len(seqs) == 0 || n.train == nil {
		return
	}
	n.work.disk.put(func() {
		for _, seq := range seqs {
			own, ok := n.owned.get(seq)
			if !ok {
				continue
			}
			if err := n.store.ForgetOwn(own.id); !errors.Is(err, store.ErrNotFound) {
				n.check("forget a final own delta", err)
			}
		}
		n.train.commands.put(func(*outer.Learner) { n.owned.drop(gone) }) // after the adoption that needs them
	})
}
