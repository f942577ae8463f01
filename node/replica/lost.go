package replica

import (
	"errors"
	"fmt"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// ErrOwnLost says that the disk has damaged the payload of an own delta.
var ErrOwnLost = errors.New("own work is lost unless a peer holds it")

// ErrNoBase says that a fold failed as the base it begins at cannot be read.
var ErrNoBase = errors.New("the base is not there")

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

// Is says that a lostBase is ErrNoBase.
func (e *lostBase) Is(target error) bool { return target == ErrNoBase }

// lostPayload says that the payload of a delta of the ledger cannot be read.
type lostPayload struct {
	id  wire.Digest
	err error
}

func (e *lostPayload) Error() string { return fmt.Sprintf("ledger: %v", e.err) }

func (e *lostPayload) Unwrap() error { return e.err }

// lost drops what err says was damaged and tells the machine, which fetches a
// payload again and folds from an older base. Other errors may pass and change
// nothing.
func (r *Replica) lost(err error) {
	var payload *lostPayload
	var base *lostBase
	switch {
	case errors.Is(err, ErrFatal):
		r.watcher.Fail(err)
	case errors.As(err, &base) && errors.Is(err, outer.ErrDamaged):
		r.exec.Post(func(now core.Time) {
			r.watcher.Saw(Damaged{err})
			r.machine.Damaged(now, base.fragment, rounds.DamagedTip, 0)
		})
	case !errors.Is(err, ErrGone):
	case errors.As(err, &payload):
		r.watcher.Check("drop damaged payload", r.ledger.DropPayload(payload.id))
		r.exec.Post(func(now core.Time) {
			r.watcher.Saw(Damaged{err})
			r.machine.Lost(now, payload.id)
		})
	case errors.As(err, &base):
		r.watcher.Check("drop damaged base", r.bases.drop(base.fragment, base.round))
		r.exec.Post(func(now core.Time) {
			r.watcher.Saw(Damaged{err})
			r.machine.Damaged(now, base.fragment, rounds.DamagedBase, base.round)
		})
	}
}

func isGone(err error) bool { return errors.Is(err, ErrGone) }
