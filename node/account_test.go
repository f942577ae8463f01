package node

import (
	"log/slog"
	"testing"
	"time"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/clock"
	"atoll/node/core"
	"atoll/node/inspect/ledgertest"
	"atoll/node/mailbox"
	"atoll/node/show"
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

// A snapshot that was taken when the loop was over takes own deltas out of the chain. The account of the end has them.
func TestLastSnapshotIsAccountedFor(t *testing.T) {
	w := ledgertest.New(t)
	defer w.Close()
	n := &node{log: slog.New(slog.DiscardHandler), clock: clock.New(), inbox: mailbox.New[func(core.Time)]()}
	run, self := w.Genesis.RunID(), wire.PeerIDOf(w.Keys[0])
	n.screen = show.New(n.log, nil, self, len(w.Plan), w.Genesis.OuterParams())
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
	n.inbox.Put(func(now core.Time) {
		must(t, n.machine.Rounds().Install(now, tips, history, nil))
		n.machine.Tick(now)
	})
	n.countLast()
	a := n.accountOf(w.Plan)
	for p, discarded := range a.OwnDiscarded {
		if a := n.machine.Rounds().Fragment(p).Account(); discarded != 100 || a.Discarded.Tokens != 100 {
			t.Errorf("fragment %d: %d tokens are shown as discarded, the machine has %+v", p, discarded, a)
		}
	}
}

// accountOf is the account of a node without a network.
func (n *node) accountOf(layout outer.Plan) status.Account {
	m := n.machine
	return show.Snapshot(show.View{Layout: layout, Members: n.members, Machine: m.View(), Rounds: m.Rounds(), Chains: m.Gossip().Chains(), Screen: n.screen}).Account
}
