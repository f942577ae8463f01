package node

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"atoll/node/store"
	"atoll/optimizer/outer"
)

// another is a folder of another chain of the same run: its rounds lack a delta.
func another(t *testing.T, rounds int) *ledgerWriter {
	l := newLedger(t)
	l.keys = l.keys[:1]
	return l.rounds(rounds)
}

// tipsAndLinks are what a snapshot of a folder's chain brings.
func (l *ledgerWriter) tipsAndLinks(first uint32) (tips []*outer.Tip, links [][]outer.Link) {
	l.t.Helper()
	for p, tip := range l.tips {
		var to []outer.Link
		l.check(l.store.Rounds(p, first, tip.Round, func(round uint32, r store.Round) error {
			to = append(to, linkOf(round, r))
			return nil
		}))
		tips, links = append(tips, tip), append(links, to)
	}
	return tips, links
}

func (l *ledgerWriter) recorded(fragment int) (rounds []uint32) {
	l.t.Helper()
	l.check(l.store.Rounds(fragment, 1, maxRound, func(round uint32, _ store.Round) error {
		rounds = append(rounds, round)
		return nil
	}))
	return rounds
}

// Tips of another chain replace bases and records of all fragments; a restart
// begins with them.
func TestKeepInstalled(t *testing.T) {
	l, other := newLedger(t).rounds(2).bases().rounds(4).bases(), another(t, 5)
	defer l.close()
	defer other.close()
	n := l.loader()
	tips, links := other.tipsAndLinks(4)
	l.check(n.keepInstalled(tips, links))
	if n.tips.epoch != 1 {
		t.Errorf("epoch %d", n.tips.epoch)
	}
	got, saved, _ := l.load()
	for p := range tips {
		if got[p].State != tips[p].State || saved[p].Closed != 5 || !slices.Equal(l.recorded(p), []uint32{4, 5}) || !slices.Equal(l.diskBases(p), []uint32{5}) {
			t.Errorf("fragment %d: tip %d, closed %d, records %v, bases %v", p, got[p].Round, saved[p].Closed, l.recorded(p), l.diskBases(p))
		}
	}
}

// Records below tips of the own chain stay.
func TestKeepInstalledOfTheOwnChain(t *testing.T) {
	l := newLedger(t).rounds(6)
	defer l.close()
	n := l.loader()
	tips, links := l.tipsAndLinks(3)
	l.check(n.keepInstalled(tips, links))
	for p := range tips {
		if got := l.recorded(p); !slices.Equal(got, []uint32{1, 2, 3, 4, 5, 6}) {
			t.Errorf("fragment %d: records %v", p, got)
		}
	}
	genesis := make([][]outer.Link, len(tips))
	for p, tip := range l.g.Tips() {
		tips[p], genesis[p] = tip, []outer.Link{{Chain: tip.Chain, State: tip.State}}
	}
	l.check(n.keepInstalled(tips, genesis))
	if got := l.recorded(0); len(got) != 0 {
		t.Errorf("records at genesis: %v", got)
	}
}

// An error in the middle leaves the chain that was, on disk and in memory, in
// all fragments.
func TestKeepInstalledIsAllOrNothing(t *testing.T) {
	l, other := newLedger(t).rounds(2).bases().rounds(2).bases(), another(t, 5)
	defer l.close()
	defer other.close()
	n := l.loader()
	tips, links := other.tipsAndLinks(4)
	old := l.tips
	l.check(os.RemoveAll(filepath.Join(l.dir, "tmp"))) // no file can be written
	if n.keepInstalled(tips, links) == nil {
		t.Fatal("installed without writing")
	}
	l.check(os.Mkdir(filepath.Join(l.dir, "tmp"), 0o700))
	if n.tips.epoch != 0 {
		t.Error("folds of the chain that stays were ended")
	}
	got, saved, _ := l.load()
	for p := range old {
		if got[p].State != old[p].State || saved[p].Closed != 4 || !slices.Equal(saved[p].Bases, []uint32{2, 4}) {
			t.Errorf("fragment %d: tip %d, closed %d, bases %v", p, got[p].Round, saved[p].Closed, saved[p].Bases)
		}
		if _, err := n.tips.get(p, 2); err != nil {
			t.Error(err)
		}
	}
}
