package show

import (
	"log/slog"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/authors"
	"atoll/node/core"
	"atoll/node/inspect/ledgertest"
	"atoll/node/status"
	"atoll/optimizer/rounds"
)

// An own delta is found where the disk has it, once: folded by a record, or in flight. One that was lost and is folded after all
// is lost no more.
func TestLostIsWhatIsNowhere(t *testing.T) {
	const trained = 700
	w := ledgertest.New(t).Rounds(2)
	defer w.Close()
	v := New(slog.New(slog.DiscardHandler), nil, wire.PeerIDOf(w.Keys[0]), len(w.Plan), w.Genesis.OuterParams())
	saved := make([]core.Saved, len(w.Plan))
	for p := range w.Plan {
		var err error
		v.ledger[p], err = authors.Count(w.Store, p, w.Genesis.OuterParams(), nil)
		w.Check(err)
		recorded, flying := w.Delta(p, 2, 0, w.Keys[0]).Delta, w.Delta(p, 3, 0, w.Keys[0]).Delta // a record folds the first
		saved[p].Own = []rounds.OwnDelta{{Seq: 1, Delta: recorded}, {Seq: 2, Delta: flying}}
	}
	v.FindLost(saved, trained)
	for p, lost := range v.lostBefore {
		if lost != trained-2*100-100 {
			t.Errorf("fragment %d: %d of %d tokens are lost", p, lost, trained)
		}
		for folded, want := range map[uint64]uint64{200: 400, 300: 300, 600: 0, 700: 0} {
			a := status.Account{OwnFolded: make([]uint64, 2), OwnInFlight: []uint64{100, 100}, OwnUnpublished: make([]uint64, 2), OwnDiscarded: make([]uint64, 2), OwnLostHere: make([]uint64, 2)}
			a.OwnFolded[p] = folded
			if got := v.lostBeforeOf(p, trained, a); got != want {
				t.Errorf("fragment %d: %d tokens lost with %d folded, want %d", p, got, folded, want)
			}
		}
	}
	v.FindLost(nil, trained)
	if lost := v.lostBefore[0]; lost != trained-2*100 {
		t.Errorf("%d of %d tokens are lost where no own delta is in flight", lost, trained)
	}
}
