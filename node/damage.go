package node

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/genesis"
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

// keptGenesis is the genesis file of the folder, nil if there is none. One that
// is damaged is set aside where peers can give it again.
func (n *node) keptGenesis() ([]byte, error) {
	raw, err := store.LoadGenesis(n.cfg.Dir)
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	_, err = genesis.Decode(raw)
	if err == nil {
		return raw, nil
	}
	path := filepath.Join(n.cfg.Dir, genesisFile)
	if n.cfg.Link.Run == (wire.RunID{}) || len(n.cfg.addrs()) == 0 {
		return nil, fmt.Errorf("%s is damaged: %w: start once with the join link, so that a peer gives it again, or copy it from another node of the run", path, err)
	}
	if err := os.Rename(path, path+".damaged"); err != nil {
		return nil, fmt.Errorf("set the damaged genesis aside: %w", err)
	}
	n.log.Warn("the genesis file is damaged: asks the peers of the link for it", "file", path, "err", err)
	return nil, nil
}

// genesisFile is where store.SaveGenesis keeps the genesis.
const genesisFile = "genesis"

// tellDamage says what the start found damaged and went on without.
func (n *node) tellDamage() {
	if bad := n.steplog.Sum().Damaged; bad > 0 {
		n.view.event(n, "damaged", "", fmt.Sprintf("%d records of the step log are damaged and not counted; check the disk of %s", bad, n.cfg.Dir))
	}
}

// lostOwn says whether the payload of an own delta cannot be read, and then
// forgets that the delta is an own one.
func (n *node) lostOwn(o core.OwnRecord) (bool, error) {
	_, err := n.store.Payload(o.ID)
	if !errors.Is(err, store.ErrCorrupt) && !errors.Is(err, store.ErrNotFound) {
		return false, err
	}
	n.view.event(n, "damaged", "", fmt.Sprintf("own %v: %d tokens are lost unless a peer holds it; check the disk of %s", err, o.Header.Tokens, n.cfg.Dir))
	return true, errors.Join(n.store.DropPayload(o.ID), n.store.ForgetOwn(o.ID))
}
