package node

import (
	"errors"
	"fmt"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// lostBase says that a kept base cannot be read.
type lostBase struct {
	fragment int
	round    uint32
	err      error
}

func (e *lostBase) Error() string {
	return fmt.Sprintf("base of fragment %d round %d: %v", e.fragment, e.round, e.err)
}

func (e *lostBase) Unwrap() error { return e.err }

// lostPayload says that the payload of a delta of the ledger cannot be read.
type lostPayload struct {
	id  wire.Digest
	err error
}

func (e *lostPayload) Error() string { return fmt.Sprintf("ledger: %v", e.err) }

func (e *lostPayload) Unwrap() error { return e.err }

// lost drops what err says the disk has damaged and tells the machine, which
// fetches a payload again and folds from an older base. Other errors may pass
// and change nothing.
func (n *node) lost(err error) {
	if errors.Is(err, store.ErrIndex) {
		n.fail(err)
		return
	}
	if base := (*lostBase)(nil); errors.As(err, &base) && errors.Is(err, outer.ErrDamaged) {
		n.post(func(now core.Time) {
			n.view.damaged(n, err)
			n.machine.Damaged(now, base.fragment)
		})
		return
	}
	if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrNotFound) {
		return
	}
	var payload *lostPayload
	var base *lostBase
	switch {
	case errors.As(err, &payload):
		n.check("drop damaged payload", n.store.DropPayload(payload.id))
		n.post(func(now core.Time) {
			n.view.event(n, "damaged", "", fmt.Sprintf("%v: fetches it again; check the disk of %s", err, n.cfg.Dir))
			n.machine.Lost(now, payload.id)
		})
	case errors.As(err, &base):
		n.check("drop damaged base", n.tips.drop(base.fragment, base.round))
		n.post(func(now core.Time) {
			n.view.event(n, "damaged", "", fmt.Sprintf("%v: folds again from an older one; check the disk of %s", err, n.cfg.Dir))
			n.machine.LostBase(now, base.fragment, base.round)
		})
	}
}
