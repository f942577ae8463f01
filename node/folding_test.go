package node

import (
	"context"
	"errors"
	"slices"
	"testing"

	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// heldBases are the rounds of a fragment's bases in memory.
func heldBases(t *tips, fragment int) (rounds []uint32) {
	for k := range t.held {
		if k.fragment == fragment {
			rounds = append(rounds, k.round)
		}
	}
	slices.Sort(rounds)
	return rounds
}

func (l *ledgerWriter) newTips() *tips {
	l.t.Helper()
	bases, err := newTips(l.g.Outer, l.plan, l.store, l.g.Tips, func(err error) { l.t.Error(err) })
	l.check(err)
	return bases
}

// advance folds empty rounds on a tip: n rounds, all kept.
func (l *ledgerWriter) advance(bases *tips, fragment, n int) {
	l.t.Helper()
	for range n {
		next, _, err := outer.Fold(l.g.Outer, l.plan[fragment], l.tips[fragment], l.tips[fragment].Round+1, nil)
		l.check(err)
		bases.put(fragment, next)
		l.tips[fragment] = next
	}
}

func (l *ledgerWriter) diskBases(fragment int) []uint32 {
	l.t.Helper()
	rounds, err := l.store.Bases(fragment)
	l.check(err)
	return rounds
}

func TestTipsKeepEveryFourthOnDisk(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	bases := l.newTips()
	l.advance(bases, 0, 9)
	if got := l.diskBases(0); !slices.Equal(got, []uint32{4, 8}) {
		t.Errorf("on disk: %v", got)
	}
	for round := uint32(1); round <= 9; round++ {
		if tip, err := bases.get(0, round); err != nil || tip.Round != round {
			t.Errorf("round %d: %v", round, err)
		}
	}
	if _, err := bases.get(1, 4); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("a base of another fragment: %v", err)
	}
	l.check(bases.drop(0, 4))
	l.check(bases.drop(0, 9))
	l.check(bases.drop(0, 9)) // again: nothing
	if got := l.diskBases(0); !slices.Equal(got, []uint32{8}) {
		t.Errorf("on disk after the drop: %v", got)
	}
	if _, err := bases.get(0, 9); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("dropped base: %v", err)
	}
}

func TestTipsShrinkToTheirBudget(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	bases := l.newTips()
	bases.budget = 5 * tipBytes(l.tips[0])
	l.advance(bases, 0, 12)
	if got := heldBases(bases, 0); slices.Contains(got, 4) || slices.Contains(got, 8) || !slices.Contains(got, 11) {
		t.Errorf("in memory: %v", got)
	}
	var sum int64
	for _, tip := range bases.held {
		sum += tipBytes(tip)
	}
	if sum != bases.bytes {
		t.Errorf("%d bytes counted, %d held", bases.bytes, sum)
	}
	if tip, err := bases.get(0, 4); err != nil || tip.Round != 4 {
		t.Errorf("read back: %v", err)
	}
}

// What stopping wrote for a round that usually stays in memory is replaced and
// dropped like any other.
func TestTipsReplaceWhatIsOnDisk(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	l.advance(l.newTips(), 0, 2)
	old := *l.tips[0]
	l.check(l.store.PutBase(0, 2, old.Encode()))
	bases := l.newTips()
	other := old
	other.Tokens++
	bases.put(0, &other)
	blob, err := l.store.Base(0, 2)
	l.check(err)
	if tip, err := outer.DecodeTip(blob, l.plan[0], l.g.Outer); err != nil || tip.Tokens != other.Tokens {
		t.Errorf("on disk: %+v, %v", tip, err)
	}
	l.check(bases.drop(0, 2))
	if got := l.diskBases(0); len(got) != 0 {
		t.Errorf("on disk after the drop: %v", got)
	}
}

func TestTipsRestart(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	bases := l.newTips()
	l.advance(bases, 0, 9)
	l.advance(bases, 1, 4)
	bases.restart(l.tips)
	var sum int64
	for p, tip := range l.tips {
		if got := heldBases(bases, p); !slices.Equal(got, []uint32{tip.Round}) || !bases.onDisk(tipKey{p, tip.Round}) {
			t.Errorf("fragment %d has %v in memory, its tip is of round %d", p, got, tip.Round)
		}
		sum += tipBytes(tip)
	}
	if sum != bases.bytes || bases.onDisk(tipKey{0, 8}) {
		t.Errorf("%d bytes counted, %d held; an old base is on disk: %v", bases.bytes, sum, bases.onDisk(tipKey{0, 8}))
	}
}

func TestFoldCarriesOutWhatIsWanted(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	genesis := l.tips[0]
	var sets [][]outer.Delta
	for round := uint32(1); round <= 3; round++ {
		var set []outer.Delta
		for i, key := range l.keys {
			set = append(set, l.delta(0, round, i, key).Delta)
		}
		l.round(0)
		sets = append(sets, set)
	}
	bases := l.newTips()
	bases.put(0, genesis)
	res, err := bases.fold(t.Context(), rounds.WantFold{Fragment: 0, Start: 0, Sets: sets, Keep: []uint32{2}})
	if err != nil {
		t.Fatal(err)
	}
	want := l.tips[0]
	if res.tip.State != want.State || res.tip.Chain != want.Chain || len(res.states) != 3 || res.states[2] != want.State {
		t.Errorf("tip %+v, want chain %x", res.tip.Round, want.Chain)
	}
	if got := heldBases(bases, 0); !slices.Equal(got, []uint32{0, 2, 3}) {
		t.Errorf("kept %v", got)
	}
	for i, r := range res.rounds {
		if len(r.Folded) != 2 || r.Tokens != uint64(300*(i+1)) {
			t.Errorf("record %d: %+v", i, r)
		}
	}
	var sum float64
	for _, share := range res.weights {
		sum += share
	}
	if len(res.weights) != 2 || !near(sum, 1) {
		t.Errorf("shares %v", res.weights)
	}
	ending, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := bases.fold(ending, rounds.WantFold{Fragment: 0, Start: 0, Sets: sets}); !errors.Is(err, context.Canceled) {
		t.Errorf("the node ends: %v", err)
	}
	l.check(l.store.DropPayload(l.firstDelta(0, 2)))
	if _, err := bases.fold(t.Context(), rounds.WantFold{Fragment: 0, Start: 0, Sets: sets}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("payload gone: %v", err)
	}
	if _, err := bases.fold(t.Context(), rounds.WantFold{Fragment: 0, Start: 1, Sets: sets[1:]}); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("no such base: %v", err)
	}
}

// The newest base on disk outlives its use while the disk takes no newer one: a
// restart needs one.
func TestTipsKeepTheNewestOnDisk(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	bases := l.newTips()
	l.advance(bases, 0, 5)
	l.check(bases.release(0, 4, 5))
	if got := l.diskBases(0); !slices.Equal(got, []uint32{4}) || slices.Contains(heldBases(bases, 0), 4) {
		t.Errorf("on disk: %v, in memory %v", got, heldBases(bases, 0))
	}
	l.advance(bases, 0, 3)
	if got := l.diskBases(0); !slices.Equal(got, []uint32{8}) {
		t.Errorf("with a newer one on disk: %v", got)
	}
	l.advance(bases, 0, 4)
	l.check(bases.release(0, 8, 12))
	if got := l.diskBases(0); !slices.Equal(got, []uint32{12}) {
		t.Errorf("not the newest: %v", got)
	}
	l.check(bases.release(0, 12, 11)) // the chain ends before it by now
	if got := l.diskBases(0); len(got) != 0 {
		t.Errorf("above the tip: %v", got)
	}
}
