package node

import (
	"log/slog"
	"slices"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// loader is a node as far as load needs it.
func (l *ledgerWriter) loader() *node {
	l.t.Helper()
	return &node{
		log: slog.New(slog.DiscardHandler), cfg: Config{Dir: l.dir}, genesis: l.g, run: l.g.RunID(), plan: l.plan,
		store: l.store, tips: l.newTips(), view: newView(len(l.plan), l.g.Outer.WindowUnion),
	}
}

func (l *ledgerWriter) load() ([]*outer.Tip, []core.Saved, *node) {
	l.t.Helper()
	n := l.loader()
	tips, saved, err := n.load()
	l.check(err)
	return tips, saved, n
}

func TestLoadNothing(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	tips, saved, _ := l.load()
	if saved != nil || tips[0].State != l.tips[0].State {
		t.Errorf("an empty folder has %+v", saved)
	}
}

func TestLoad(t *testing.T) {
	l := newLedger(t).rounds(4).bases().rounds(2)
	defer l.close()
	l.check(l.store.RaiseMark(1, 9))
	tips, saved, n := l.load()
	for p, s := range saved {
		if tips[p].Round != 4 || s.Closed != 6 || !slices.Equal(s.Bases, []uint32{0, 4}) || len(s.Held) != 12 || len(s.Headers) != 12 {
			t.Errorf("fragment %d: tip %d, closed %d, bases %v, %d held", p, tips[p].Round, s.Closed, s.Bases, len(s.Held))
		}
		if last := s.History[len(s.History)-1]; len(s.History) != 5 || last.Chain != tips[p].Chain || len(last.Folded) != 2 {
			t.Errorf("fragment %d: history %+v", p, s.History)
		}
		if got := n.view.ledger[p]; got.deltas != 12 || got.total[wire.PeerIDOf(l.keys[1])] != 6*200 {
			t.Errorf("fragment %d: ledger %+v", p, got.total)
		}
	}
	if saved[0].Mark != 0 || saved[1].Mark != 9 {
		t.Errorf("marks %d %d", saved[0].Mark, saved[1].Mark)
	}
}

// A node that was stopped before it had folded anything keeps genesis as a base. A
// later start needs the link of it, too, to fold the first rounds again.
func TestLoadWithGenesisOnDisk(t *testing.T) {
	l := newLedger(t)
	for p, tip := range l.tips {
		l.check(l.store.PutBase(p, 0, tip.Encode()))
	}
	l.rounds(4).bases().rounds(2)
	defer l.close()
	_, saved, _ := l.load()
	for p, s := range saved {
		if !slices.Equal(s.Bases, []uint32{0, 4}) || s.History[0].Round != 0 || len(s.History) != 5 {
			t.Errorf("fragment %d: bases %v, %d links from round %d on", p, s.Bases, len(s.History), s.History[0].Round)
		}
	}
}

// A node that was killed after it had signed, before any round closed, must
// still know that it has signed.
func TestLoadMarkOfTheFirstRound(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	l.check(l.store.RaiseMark(0, 1))
	if _, saved, _ := l.load(); saved == nil || saved[0].Mark != 1 {
		t.Errorf("saved %+v", saved)
	}
}

// Bases that do not belong to the recorded chain are no ground to build on.
func TestLoadDropsBasesThatDoNotFit(t *testing.T) {
	l := newLedger(t).rounds(2).bases().rounds(2)
	defer l.close()
	stale := *l.tips[0]
	stale.Tokens++
	l.check(l.store.PutBase(0, 4, stale.Encode())) // of a fold that was not recorded
	stale.Round = 9
	l.check(l.store.PutBase(0, 9, stale.Encode())) // of a round that was not recorded
	l.base(1)
	l.damageBase("1-4-")
	tips, saved, _ := l.load()
	for p := range tips {
		if tips[p].Round != 2 || !slices.Equal(saved[p].Bases, []uint32{0, 2}) || saved[p].Closed != 4 {
			t.Errorf("fragment %d: tip %d, bases %v, closed %d", p, tips[p].Round, saved[p].Bases, saved[p].Closed)
		}
		if got := l.diskBases(p); !slices.Equal(got, []uint32{2}) {
			t.Errorf("fragment %d: on disk %v", p, got)
		}
	}
}
