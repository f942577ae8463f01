package node

import (
	"errors"
	"slices"
	"testing"
	"time"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// running is a node restored from the folder, as far as its loop folds.
func (l *ledgerWriter) running() *node {
	l.t.Helper()
	tips, saved, n := l.load()
	n.clock, n.inbox = newClock(), newMailbox[func(core.Time)]()
	n.machine = core.New(core.Config{Params: l.g.Outer, Plan: l.plan, Key: l.keys[0], Run: n.run, Alone: true,
		Gossip: gossip.Config{Self: wire.PeerIDOf(l.keys[0]), Key: l.keys[0], Run: n.run}}, tips)
	l.check(n.restore(saved, nil))
	return n
}

// foldsWanted are the folds of a fragment among the machine's effects.
func (n *node) foldsWanted(fragment int) (folds []rounds.WantFold) {
	for _, e := range n.machine.Effects() {
		if w, ok := e.(rounds.WantFold); ok && w.Fragment == fragment {
			folds = append(folds, w)
		}
	}
	return folds
}

// foldOnce carries out the one fold that the machine wants of fragment 0 and lets
// the loop take what came of it.
func foldOnce(t *testing.T, n *node) {
	t.Helper()
	folds := n.foldsWanted(0)
	if len(folds) != 1 || folds[0].Start != 4 || len(folds[0].Sets) != 2 {
		t.Fatalf("wants %+v", folds)
	}
	n.fold(t.Context(), folds[0], n.tips.epoch)
	for _, do := range n.inbox.take() {
		do(n.clock.now())
	}
}

// A payload that the disk has damaged is forgotten, shown, and no longer held:
// repair brings it again.
func TestDamagedPayloadIsLost(t *testing.T) {
	l := newLedger(t).rounds(4).bases().rounds(2)
	defer l.close()
	n := l.running()
	id := l.firstDelta(0, 6)
	l.flip(id)
	foldOnce(t, n)
	if header, payload := l.store.Has(id); !header || payload {
		t.Errorf("in the ledger: header %v, payload %v", header, payload)
	}
	held := slices.ContainsFunc(n.machine.Rounds().Set(0, 6), func(d outer.Delta) bool { return d.ID == outer.ID(id) })
	if held || len(n.machine.Rounds().Set(0, 6)) != 1 {
		t.Error("the machine still holds it")
	}
	if e := n.lastEvent(); e.Kind != "damaged" {
		t.Errorf("event %+v", e)
	}
	if n.fatal != nil {
		t.Error(n.fatal)
	}
}

// A base that the disk has damaged is forgotten, and what was to be folded from
// it is folded from an older one.
func TestDamagedBaseIsLost(t *testing.T) {
	l := newLedger(t).rounds(2).bases().rounds(2).bases().rounds(2).bases()
	defer l.close()
	n := l.running()
	now := n.clock.now()
	n.machine.Lost(now, l.firstDelta(0, 5)) // the rounds from there on have to be folded again
	now += time.Hour.Milliseconds()
	n.machine.Tick(now)
	l.damageBase("0-4-")
	foldOnce(t, n)
	if got := l.diskBases(0); !slices.Equal(got, []uint32{2, 6}) {
		t.Errorf("bases on disk: %v", got)
	}
	if got := n.machine.Rounds().Bases(0); slices.Contains(got, 4) || !slices.Contains(got, 2) {
		t.Errorf("bases of the machine: %v", got)
	}
	if e := n.lastEvent(); e.Kind != "damaged" {
		t.Errorf("event %+v", e)
	}
	n.machine.Tick(now + time.Hour.Milliseconds())
	if folds := n.foldsWanted(0); len(folds) != 1 || folds[0].Start != 2 {
		t.Errorf("then wants %+v", folds)
	}
}

// An error that may pass costs nothing.
func TestPassingErrorLosesNothing(t *testing.T) {
	l := newLedger(t).rounds(1)
	defer l.close()
	n := l.loader()
	id := l.firstDelta(0, 1)
	n.inbox = newMailbox[func(core.Time)]()
	n.lost(&lostPayload{id, errors.New("too many open files")})
	n.lost(core.ErrOvertaken)
	n.lost(nil)
	if _, held := l.store.Has(id); !held || !n.inbox.empty() {
		t.Error("a payload was dropped")
	}
	n.lost(&lostPayload{id, store.ErrCorrupt})
	if _, held := l.store.Has(id); held || n.inbox.empty() {
		t.Error("a damaged payload was kept")
	}
}

// An anchor that memory has damaged is not folded from: the machine hears of it,
// and the next fold begins at what the disk has.
func TestDamagedMemoryIsLost(t *testing.T) {
	l := newLedger(t).rounds(4).bases().rounds(2)
	defer l.close()
	n := l.running()
	tip := n.machine.Rounds().Tip(0)
	n.tips.put(0, tip)
	tip.Anchor[0]++
	foldOnce(t, n)
	if e := n.lastEvent(); e.Kind != "memory damaged" {
		t.Errorf("event %+v", e)
	}
	n.machine.Tick(n.clock.now() + time.Hour.Milliseconds())
	for _, w := range n.foldsWanted(0) {
		n.fold(t.Context(), w, n.tips.epoch)
	}
	for _, do := range n.inbox.take() {
		do(n.clock.now())
	}
	if healed := n.machine.Rounds().Tip(0); healed == tip || !healed.Sound() {
		t.Errorf("the tip is of round %d, sound %t", healed.Round, healed.Sound())
	}
}

// Nothing but arithmetic is needed to have the tips of genesis again.
func TestDamagedGenesisIsMadeAnew(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	bases := l.newTips()
	tip := l.g.Tips()[0]
	bases.put(0, tip)
	tip.Anchor[0]++
	if _, err := bases.get(0, 0); !errors.Is(err, outer.ErrDamaged) {
		t.Errorf("a damaged tip: %v", err)
	}
	if again, err := bases.get(0, 0); err != nil || again.State != tip.State || !again.Sound() {
		t.Errorf("made anew: %v", err)
	}
}
