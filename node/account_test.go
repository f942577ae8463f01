package node

import (
	"log/slog"
	"testing"
	"time"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/authors"
	"atoll/node/clock"
	"atoll/node/core"
	"atoll/node/inspect/ledgertest"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// What earlier processes trained and no disk has a delta of is in the account of each later process, and stays the same there.
func TestLossesOutliveProcesses(t *testing.T) {
	t.Parallel()
	const lost = 500
	w := ledgertest.New(t).Rounds(2).Bases()
	log, err := w.Store.OpenStepLog()
	must(t, err)
	must(t, log.Append(store.Step{Number: 1, Tokens: lost}))
	must(t, log.Close())
	dir, text, trained := w.Close(), toyText(t), uint64(lost)
	for process := range 2 {
		m := launch(t, Config{Dir: dir, Data: text, Pace: time.Hour})
		m.until("it has taken a step", func(s status.Snapshot) bool { return s.TokensTrained > trained })
		s := m.leave()
		trained = s.TokensTrained
		a := s.Account
		for p := range s.Fragments {
			sum := a.OwnFolded[p] + a.OwnInFlight[p] + a.OwnUnpublished[p] + a.OwnDiscarded[p] + a.OwnLostHere[p] + a.OwnLostBefore[p]
			if sum != trained || a.OwnLostBefore[p] != lost {
				t.Errorf("process %d, fragment %d: %d tokens trained, the account has %d of them, of which %d are lost: %+v", process, p, trained, sum, a.OwnLostBefore[p], a)
			}
		}
	}
}

// An own delta is found where the disk has it, once: folded by a record, or in flight. One that was lost and is folded after all
// is lost no more.
func TestLostIsWhatIsNowhere(t *testing.T) {
	const trained = 700
	w := ledgertest.New(t).Rounds(2)
	defer w.Close()
	n := newViewer()
	n.view, n.plan, n.trained, n.self = newView(len(w.Plan), w.Genesis.OuterParams()), w.Plan, trained, wire.PeerIDOf(w.Keys[0])
	saved := make([]core.Saved, len(w.Plan))
	for p := range w.Plan {
		var err error
		n.view.ledger[p], err = authors.Count(w.Store, p, w.Genesis.OuterParams(), nil)
		must(t, err)
		recorded, flying := w.Delta(p, 2, 0, w.Keys[0]).Delta, w.Delta(p, 3, 0, w.Keys[0]).Delta // a record folds the first
		saved[p].Own = []rounds.OwnDelta{{Seq: 1, Delta: recorded}, {Seq: 2, Delta: flying}}
	}
	n.findLost(saved)
	for p, lost := range n.view.lostBefore {
		if lost != trained-2*100-100 {
			t.Errorf("fragment %d: %d of %d tokens are lost", p, lost, trained)
		}
		for folded, want := range map[uint64]uint64{200: 400, 300: 300, 600: 0, 700: 0} {
			a := status.Account{OwnFolded: make([]uint64, 2), OwnInFlight: []uint64{100, 100}, OwnUnpublished: make([]uint64, 2), OwnDiscarded: make([]uint64, 2), OwnLostHere: make([]uint64, 2)}
			a.OwnFolded[p] = folded
			if got := n.lostBefore(p, a); got != want {
				t.Errorf("fragment %d: %d tokens lost with %d folded, want %d", p, got, folded, want)
			}
		}
	}
	n.findLost(nil)
	if lost := n.view.lostBefore[0]; lost != trained-2*100 {
		t.Errorf("%d of %d tokens are lost where no own delta is in flight", lost, trained)
	}
}

// A snapshot that was taken when the loop was over takes own deltas out of the chain. The account of the end has them.
func TestLastSnapshotIsAccountedFor(t *testing.T) {
	w := ledgertest.New(t)
	defer w.Close()
	n := &node{log: slog.New(slog.DiscardHandler), clock: clock.New(), inbox: newMailbox[func(core.Time)]()}
	n.view = newView(len(w.Plan), w.Genesis.OuterParams())
	run, self := w.Genesis.RunID(), wire.PeerIDOf(w.Keys[0])
	n.machine = core.New(core.Config{
		Params: w.Genesis.OuterParams(), Plan: w.Plan, Key: w.Keys[0], Run: run, Learner: true,
		Gossip: gossip.Config{Self: self, Key: w.Keys[0], Run: run, WindowAccept: w.Genesis.OuterParams().WindowAccept, WindowUnion: w.Genesis.Outer.Window},
	}, w.Tips)
	var tips []*outer.Tip
	var history [][]outer.Link
	for p := range w.Plan {
		before := core.LinkOf(w.Tips[p], nil)
		fold := func(c outer.Contribution) (*outer.Tip, []outer.Link) {
			tip, res, err := outer.Fold(w.Genesis.OuterParams(), w.Plan[p], w.Tips[p], 1, []outer.Contribution{c})
			must(t, err)
			return tip, []outer.Link{before, core.LinkOf(tip, res.Folded)}
		}
		own := w.Delta(p, 1, 0, w.Keys[0])
		tip, links := fold(own)
		_, err := n.machine.Restore(0, p, rounds.Restored{
			Tip: tip, History: links, Bases: []uint32{1}, Own: []rounds.OwnDelta{{Seq: 1, Delta: own.Delta}}, Mark: 1, Closed: 1,
		}, nil)
		must(t, err)
		tip, links = fold(w.Delta(p, 1, 1, w.Keys[1]))
		tips, history = append(tips, tip), append(history, links)
	}
	n.machine.Effects()
	n.inbox.put(func(now core.Time) {
		must(t, n.machine.Rounds().Install(now, tips, history, nil))
		n.machine.Tick(now)
	})
	n.countLast()
	for p, discarded := range n.view.discarded {
		if a := n.machine.Rounds().Fragment(p).Account(); discarded != 100 || a.Discarded.Tokens != 100 {
			t.Errorf("fragment %d: %d tokens are shown as discarded, the machine has %+v", p, discarded, a)
		}
	}
}
