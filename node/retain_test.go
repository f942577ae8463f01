package node

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/inspect"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// Over its budget a node drops payloads of final rounds up to its oldest base:
// the ledger says from which round on it is whole, and a replay begins there.
func TestRetention(t *testing.T) {
	g := toyGenesis(1 << 40)
	g.Outer.WindowAccept, g.Outer.WindowUnion = 2, 4
	l := newLedgerOf(t, g).rounds(4).bases().rounds(8).bases()
	n := l.running()
	n.cfg.KeepBytes = 1
	limit := n.droppable()
	if !slices.Equal(limit, []uint32{4, 4}) {
		t.Fatalf("may drop up to %v", limit)
	}
	kept, err := n.keepVerifiable(limit)
	if err != nil || kept.Dropped != 4*2*2 || kept.Payloads == 0 || kept.Bases == 0 {
		t.Fatalf("%+v, %v", kept, err)
	}
	n.retained(kept, nil)
	n.retained(kept, nil)
	if e := n.lastEvent(); len(n.view.events) != 1 || !strings.Contains(e.Text, "more than the 1 B of --keep") {
		t.Errorf("events %+v", n.view.events)
	}
	dir := l.close()
	v, err := inspect.Verify(t.Context(), dir)
	if err != nil || fmt.Sprint(v.From) != "[4 4]" || v.FromGenesis {
		t.Errorf("replay: %+v, %v", v, err)
	}
	view, err := inspect.Ledger(dir)
	if err != nil || view.Fragments[0].HeldFrom != 5 || view.Fragments[1].HeldFrom != 5 || len(view.Deltas) != 2*2*12 {
		t.Errorf("ledger: %+v, %v", view.Fragments, err)
	}
}

// Without a base on disk at or above them, payloads stay.
func TestRetentionNeedsABase(t *testing.T) {
	l := newLedger(t).rounds(6)
	defer l.close()
	n := l.loader()
	n.cfg.KeepBytes = 1
	if kept, err := n.keepVerifiable([]uint32{5, 5}); err != nil || kept.Dropped != 0 {
		t.Errorf("%+v, %v", kept, err)
	}
	l.bases()
	if kept, err := n.keepVerifiable([]uint32{5, 0}); err != nil || kept.Dropped != 5*2 {
		t.Errorf("%+v, %v", kept, err)
	}
}

// Own deltas that are final leave the list that a restart reads.
func TestFinalOwnDeltasAreForgotten(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	n := l.loader()
	n.work = newWorkers()
	n.train = &training{commands: newMailbox[learnerCommand]()}
	payload := []byte("progress")
	for seq := range uint64(4) {
		h := wire.SignHeader(l.keys[0], n.run, wire.Header{Fragment: 0, Round: uint32(seq) + 1, Base: uint32(seq), Steps: 4, Tokens: 100, Precision: 1, Codec: uint8(l.g.Outer.Codec), Size: uint32(len(payload)), Payload: wire.Sum(payload)})
		id := h.Header.ID(n.run)
		l.check(l.store.PutOwn(id, h, payload, store.OwnMeta{Seq: seq}))
		n.owned.put(seq, ownRef{id, 100})
	}
	n.forgetFinal(outer.Adopt{Forgotten: []uint64{0, 9}, Returned: []uint64{2}, Discarded: []uint64{3}})
	l.check(l.store.PutBase(0, 4, []byte("base")))
	n.cfg.KeepBytes = 1
	if kept, err := n.keepVerifiable([]uint32{4}); err != nil || kept.Dropped != 0 {
		t.Errorf("%+v, %v: the adoption under way may read what was dropped", kept, err)
	}
	n.work.stop()
	for _, do := range n.train.commands.take() {
		do(nil)
	}
	own, err := l.store.Own()
	l.check(err)
	if len(own) != 1 || own[0].Seq != 1 || n.owned.tokens([]uint64{0, 2}) != 0 {
		t.Errorf("own deltas %+v, %d tokens", own, n.owned.tokens([]uint64{0, 2}))
	}
	if kept, err := n.keepVerifiable([]uint32{4}); err != nil || kept.Dropped != 2 {
		t.Errorf("%+v, %v: both that are final may go then", kept, err)
	}
	if n.owned.tokens([]uint64{1, 3}) != 200 {
		t.Error("one in flight or one that may be regained is not known any more")
	}
}
