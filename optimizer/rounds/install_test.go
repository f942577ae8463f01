package rounds

import (
	"slices"
	"testing"

	"atoll/optimizer/outer"
)

// serve is what a joiner takes of a rig's fragments: the tip of a kept base
// and the links to it.
func (g *rig) serve() (tips []*outer.Tip, history [][]outer.Link) {
	for p := range g.plan {
		base := g.m.Fragment(p).Bases()[len(g.m.Fragment(p).Bases())-1]
		tips = append(tips, g.bases[p][base])
		history = append(history, g.m.Fragment(p).Links(base))
	}
	return tips, history
}

// install gives a rig the tips of another.
func (g *rig) install(from *rig) {
	g.t.Helper()
	tips, history := from.serve()
	for p, tip := range tips {
		g.bases[p] = map[uint32]*outer.Tip{tip.Round: tip}
	}
	if err := g.m.Install(g.now, tips, history, nil); err != nil {
		g.t.Fatal(err)
	}
	g.drain()
}

func TestInstall(t *testing.T) {
	source := newRig(t, roundsParams(1))
	source.live(1, 2)
	source.close(9)
	g := newRig(t, roundsParams(1))
	g.payloads = source.payloads
	g.install(source)
	g.expectClosed(9)
	if a := g.lastAdopt(); a.Tip.State != source.m.Fragment(0).Tip().State || a.Seqs(outer.Folded) != nil {
		t.Fatalf("adopted %+v", a)
	}
	if l, ok := g.m.Fragment(0).Link(3); !ok || len(l.Folded) != 1 {
		t.Fatal("the history before the tip is not known")
	}
	g.want(g.offer(source.delta(outer.Author{2}, 0, 9)), ErrFinal) // it has no base below
	for _, r := range []*rig{g, source} {
		r.give(source.delta(outer.Author{3}, 0, 10))
		r.after(r.p.GraceMaxMs)
	}
	if g.m.Fragment(0).Tip().State != source.m.Fragment(0).Tip().State {
		t.Fatal("joiner and snapshot source part")
	}
}

// What follows the tips that were taken can be refolded as elsewhere, whatever
// the round of the tips.
func TestInstalledBaseStaysForTheWindow(t *testing.T) {
	source := newRig(t, roundsParams(1))
	source.live(1, 2)
	source.close(9)
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.payloads = source.payloads
	g.install(source)
	for _, r := range []*rig{g, source} {
		r.close(6)
	}
	late := source.delta(outer.Author{2}, 0, 10)
	for _, r := range []*rig{g, source} {
		r.give(late)
		r.after(r.p.GraceMaxMs)
	}
	if g.m.Fragment(0).Tip().State != source.m.Fragment(0).Tip().State {
		t.Fatal("joiner and snapshot source part over a late delta")
	}
}

// The result of a fold that was asked for before tips were installed is void.
func TestInstallOvertakesAFold(t *testing.T) {
	source := newRig(t, roundsParams(1))
	source.live(1, 2)
	source.close(9)
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.hold = true
	g.give(source.delta(outer.Author{1}, 0, 1))
	g.after(g.p.GraceMaxMs)
	stale := g.wanted[0]
	g.wanted, g.hold = nil, false
	g.install(source)
	old, _, err := outer.Fold(g.p, g.plan[0], g.genesis()[0], 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := g.m.TakeFold(g.now, FoldResult{Fragment: 0, Job: stale.Job, Tip: old, States: make([]outer.Digest, 1)}); err != nil {
		t.Fatal(err)
	}
	g.m.TakeFold(g.now, FoldResult{Fragment: 0, Job: stale.Job, Err: errDisk})
	if g.m.Fragment(0).Tip().State != source.m.Fragment(0).Tip().State || !g.m.Status().Settled {
		t.Fatal("a stale fold moved the tip")
	}
}

// Deltas that arrived before the tips propose the round that is open after them.
func TestInstallKeepsTheProposal(t *testing.T) {
	source := newRig(t, roundsParams(1))
	source.live(1, 2)
	source.close(3)
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.payloads = source.payloads
	g.give(source.delta(outer.Author{1}, 0, 4))
	g.install(source)
	g.after(g.p.GraceMinMs)
	g.expectClosed(4)
}

// Own deltas count as folded where the history names them, and are discarded where
// it lists their round without them.
func TestInstallSettlesOwn(t *testing.T) {
	g := newRig(t, roundsParams(1))
	source := newRig(t, roundsParams(1))
	source.live(1, 2)
	source.payloads = g.payloads
	g.step(8)
	g.publish(0) // folds here at once, as g is alone
	g.step(8)
	second := g.publish(0)
	source.give(source.delta(outer.Author{1}, 0, 1), second)
	source.after(source.p.GraceMaxMs)
	source.close(3)
	g.install(source)
	if a := g.lastAdopt(); !slices.Equal(a.Seqs(outer.Discarded), []uint64{1}) || a.Seqs(outer.Folded) != nil || a.Seqs(outer.Unfolded) != nil {
		t.Fatalf("adopted %+v", a)
	}
	if got := g.m.Fragment(0).Account().InFlight.Tokens; got != 0 {
		t.Fatalf("%d tokens in flight", got)
	}
}

// An own delta in flight of a round that a snapshot does not fold leaves the local parameters: the round is final here. Progress of
// many steps that stayed there would come out of the others' model with the next deltas. It counts
// again where a later tip folds it.
func TestInstallDropsWhatIsInFlight(t *testing.T) {
	g, source := newRig(t, roundsParams(1)), newRig(t, roundsParams(1))
	g.live(1, 2)
	source.live(1, 2)
	source.payloads = g.payloads
	g.hold = true // what closes here is not folded
	g.step(8)
	mine := g.publish(0)
	source.close(3)
	g.install(source)
	if a := g.lastAdopt(); !slices.Equal(a.Seqs(outer.Dropped), []uint64{1}) {
		t.Fatalf("adopted %+v", a)
	}
	if got := g.m.Fragment(0).Account(); got.InFlight.Tokens != 0 || got.Discarded.Tokens != mine.Tokens {
		t.Errorf("of %d tokens: %+v", mine.Tokens, got)
	}
	source.give(mine)
	source.close(5) // by then what came late is folded
	g.install(source)
	if a := g.lastAdopt(); !slices.Equal(a.Seqs(outer.Regained), []uint64{1}) {
		t.Errorf("adopted %+v", a)
	}
}

// Own deltas of rounds after the tips may still be folded: they are in flight.
func TestInstallOfAnEarlierTip(t *testing.T) {
	g := newRig(t, roundsParams(1))
	for range 3 {
		g.step(8)
		g.publish(0)
	}
	source := newRig(t, roundsParams(1))
	source.live(1, 2)
	source.payloads = g.payloads
	source.close(1)
	g.hold = true
	g.install(source)
	if a := g.lastAdopt(); !slices.Equal(a.Seqs(outer.Unfolded), []uint64{2, 3}) || !slices.Equal(a.Seqs(outer.Discarded), []uint64{1}) {
		t.Fatalf("adopted %+v", a)
	}
}

// Between the request for a draft and the draft it may show that the open round is
// signed already, or tips may come that are of older rounds. Nothing is published
// then, for rounds that the others are far from, until they have passed the mark.
func TestNothingIsPublishedBelowTheMark(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.step(8)
	g.expectDrafts(0)
	if !g.mayPublish(0) {
		t.Fatal("may not publish for the open round")
	}
	g.m.RaiseMark(0, 3)
	if g.mayPublish(0) {
		t.Errorf("may publish below the mark with %d closed", g.m.Fragment(0).Closed())
	}
	g.m.SettleDraft(g.now, 0, OwnDelta{}, errDisk)
	g.close(2)
	if g.after(draftRetryMs); len(g.drafts) != 1 || g.mayPublish(0) {
		t.Errorf("%d drafts asked for below the mark", len(g.drafts))
	}
	g.close(1)
	if len(g.drafts) != 2 || !g.mayPublish(0) {
		t.Errorf("%d drafts asked for above the mark", len(g.drafts))
	}
}

// An own delta that was signed just before tips of older rounds came is held all
// the same: others have its header and ask for it.
func TestOwnDeltaIsHeldBelowItsRound(t *testing.T) {
	g, source := newRig(t, roundsParams(1)), newRig(t, roundsParams(1))
	g.close(int(2 * g.p.WindowAccept))
	source.close(1)
	own := g.delta(self, 0, g.m.Fragment(0).Closed()+1)
	g.install(source)
	g.m.SettleDraft(g.now, own.Fragment, OwnDelta{Seq: 1, Delta: own}, nil)
	if _, held := g.m.Fragment(0).Known(own.Round, own.ID); !held {
		t.Errorf("the own delta of round %d is not held with %d closed", own.Round, g.m.Fragment(0).Closed())
	}
}

func TestInstallChecksHistory(t *testing.T) {
	source := newRig(t, roundsParams(2))
	source.live(1)
	source.close(2)
	tips, history := source.serve()
	g := newRig(t, roundsParams(2))
	for _, bad := range []func() error{
		func() error { return g.m.Install(g.now, tips[:1], history, nil) },
		func() error { return g.m.Install(g.now, tips, history[:1], nil) },
		func() error { return g.m.Install(g.now, tips, [][]outer.Link{history[0][:1], history[1]}, nil) },
		func() error { return g.m.Install(g.now, tips, [][]outer.Link{nil, history[1]}, nil) },
	} {
		if bad() == nil {
			t.Error("took tips whose history does not fit")
		}
	}
	if g.m.Fragment(0).Closed() != 0 {
		t.Error("a refused install changed a fragment")
	}
}

// restored is what a rig's disk would hold: bases of rounds divisible by 4.
func (g *rig) restored() Restored {
	f := g.m.frags[0]
	s := Restored{Mark: f.own.mark, Closed: f.chain.closed}
	for _, b := range f.chain.bases {
		if b%4 == 0 {
			s.Bases = append(s.Bases, b)
			s.Tip = g.bases[0][b]
		}
	}
	s.History = g.m.Fragment(0).Links(s.Tip.Round)
	for r := range f.deltas.rounds {
		if r > s.Bases[0] {
			s.Held = append(s.Held, f.deltas.rounds[r].set()...)
		}
	}
	for _, o := range f.own.list {
		s.Own = append(s.Own, OwnDelta{Seq: o.Seq, Delta: g.delta(self, 0, o.round)})
	}
	return s
}

// reboot makes a machine from what another's disk held.
func (g *rig) reboot() *rig {
	h := newRig(g.t, g.p)
	h.now, h.payloads, h.bases = g.now+5, g.payloads, g.bases
	h.m.SetLive(g.m.peerList.live)
	h.m.Restore(h.now, 0, g.restored())
	h.drain()
	return h
}

func TestRestore(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.close(10)
	g.step(8)
	g.publish(0) // round 11 is open, and signed
	h := g.reboot()
	h.expectClosed(10)
	if h.m.Fragment(0).Tip().State != g.m.Fragment(0).Tip().State || !h.m.Status().Settled {
		t.Fatal("another state after the restart")
	}
	h.step(9)
	h.expectDrafts() // round 11 is signed
	h.after(h.p.GraceMaxMs)
	h.expectClosed(11) // its proposal was restored with it
	if d := h.publish(0); d.Round != 12 {
		t.Fatalf("published for round %d", d.Round)
	}
}

// A lone node that had signed the open round and closed nothing goes on.
func TestRestoreOfTheFirstRound(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1)
	g.step(8)
	g.publish(0)
	g.expectClosed(0)
	h := g.reboot()
	h.after(h.p.GraceMaxMs)
	h.expectClosed(1)
}

// Own deltas of the restored tip are named, later ones are settled by the folds.
func TestRestoreOwn(t *testing.T) {
	g := newRig(t, roundsParams(1))
	for range 6 {
		g.step(8)
		g.publish(0)
	}
	g.expectClosed(6) // alone: each closes at once
	h := newRig(t, g.p)
	h.payloads, h.bases, h.now = g.payloads, g.bases, g.now
	if folded := h.m.Restore(h.now, 0, g.restored()); !slices.Equal(folded, []uint64{1, 2, 3, 4}) {
		t.Fatalf("in the restored tip: %v", folded)
	}
	h.drain()
	if a := h.lastAdopt(); !slices.Equal(a.Seqs(outer.Folded), []uint64{5, 6}) {
		t.Fatalf("adopted %+v", a)
	}
}

// A late delta that was stored, and not yet folded when the node stopped, is folded.
func TestRestoreWithLateDelta(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.close(8)
	g.hold = true
	g.give(g.delta(outer.Author{2}, 0, 6))
	h := g.reboot()
	h.after(h.p.GraceMaxMs)
	if l, _ := h.m.Fragment(0).Link(6); len(l.Folded) != 2 {
		t.Fatalf("round 6 folded %d deltas", len(l.Folded))
	}
	h.sameAsReplay()
}

// Equivocation proof that is restored first leaves both deltas of the round out.
func TestRestoreWithEquivocation(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.close(8)
	g.give(g.delta(outer.Author{2}, 0, 6), g.delta(outer.Author{2}, 0, 7))
	g.after(g.p.GraceMaxMs)
	h := newRig(t, g.p)
	h.now, h.payloads, h.bases = g.now+5, g.payloads, g.bases
	h.m.Exclude(h.now, 0, 6, outer.Author{2})
	h.m.Restore(h.now, 0, g.restored())
	h.drain()
	h.after(h.p.GraceMaxMs)
	for r, want := range map[uint32]int{6: 1, 7: 2} {
		if l, _ := h.m.Fragment(0).Link(r); len(l.Folded) != want {
			t.Errorf("round %d folded %d deltas", r, len(l.Folded))
		}
	}
	h.sameAsReplay()
	h.want(h.m.Offer(h.now, g.delta(outer.Author{2}, 0, 6), true), ErrExcluded)
}

// Bases from before the history cannot be linked to it and are not used.
func TestRestoreWithShortHistory(t *testing.T) {
	g := newRig(t, roundsParams(1))
	g.live(1, 2)
	g.close(10)
	s := g.restored()
	s.History = s.History[len(s.History)-1:]
	h := newRig(t, g.p)
	h.payloads, h.bases, h.now = g.payloads, g.bases, g.now
	h.m.Restore(h.now, 0, s)
	h.drain()
	h.expectClosed(10)
	h.want(h.offer(g.delta(outer.Author{2}, 0, 3)), ErrFinal)
	h.give(g.delta(outer.Author{2}, 0, 9))
	h.after(h.p.GraceMaxMs)
}

// A history that begins after the fork does not tell what of the chain before it
// is lost: all that was folded since others last showed the same, unless that was of a
// chain that differs from the one that is taken.
func TestInstallAfterALongFork(t *testing.T) {
	for _, c := range []struct {
		common, first uint32
		want          []uint64
	}{{0, 5, []uint64{1, 2, 3}}, {1, 5, []uint64{2, 3}}, {3, 5, nil}, {1, 2, []uint64{2, 3}}, {2, 2, []uint64{1, 2, 3}}, {3, 2, []uint64{1, 2, 3}}} {
		g := newRig(t, roundsParams(1))
		for range 3 {
			g.step(8)
			g.publish(0)
		}
		source := newRig(t, roundsParams(1))
		source.live(1, 2)
		source.close(6)
		tips, history := source.serve()
		g.bases[0] = map[uint32]*outer.Tip{tips[0].Round: tips[0]}
		g.want(g.m.Install(g.now, tips, [][]outer.Link{history[0][c.first:]}, []uint32{c.common}), nil)
		g.drain()
		if a := g.lastAdopt(); !slices.Equal(a.Seqs(outer.Discarded), c.want) {
			t.Errorf("common up to %d, history from %d on: discarded %v, want %v", c.common, c.first, a.Seqs(outer.Discarded), c.want)
		}
	}
}

// What a chain left out may be folded on it after all: it is found again, and
// what never is, is discarded for good when it is final.
func TestDiscardedMayComeBack(t *testing.T) {
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 4, 8
	g := newRig(t, p)
	var own []outer.Delta
	for range 3 {
		g.step(8)
		own = append(own, g.publish(0))
	}
	source := newRig(t, p)
	source.live(1, 2)
	source.payloads = g.payloads
	source.close(4)
	older := source.bases[0][2] // a base below which nothing changes
	tips := []*outer.Tip{older}
	_, history := source.serve()
	g.bases[0] = map[uint32]*outer.Tip{2: older}
	g.hold = true
	g.want(g.m.Install(g.now, tips, [][]outer.Link{history[0][:3]}, nil), nil)
	g.drain()
	if a := g.lastAdopt(); !slices.Equal(a.Seqs(outer.Discarded), []uint64{1, 2}) || !slices.Equal(a.Seqs(outer.Unfolded), []uint64{3}) {
		t.Fatalf("adopted %+v", a)
	}
	if g.m.Fragment(0).Account().InFlight.Tokens != own[2].Tokens {
		t.Errorf("%d tokens in flight, want those of the third", g.m.Fragment(0).Account().InFlight.Tokens)
	}
	g.hold = false
	for len(g.wanted) > 0 {
		g.fold()
	}
	g.live(1, 2)
	g.close(10)
	var forgotten, returned []uint64
	for _, a := range g.adopts {
		forgotten, returned = append(forgotten, a.Seqs(outer.Forgotten)...), append(returned, a.Seqs(outer.Returned)...)
	}
	slices.Sort(forgotten)
	if !slices.Equal(forgotten, []uint64{1, 2, 3}) || len(returned) > 0 {
		t.Errorf("forgotten %v, returned %v", forgotten, returned)
	}
}

// Nobody here can say whether an own delta in flight that is older than the history of
// another chain was folded there: it is dropped rather than published once more.
func TestInstallDropsWhatMayBeFolded(t *testing.T) {
	for _, handed := range []bool{true, false} {
		installOverOneInFlight(t, handed)
	}
}

func installOverOneInFlight(t *testing.T, handed bool) {
	t.Helper()
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 4, 8
	g := newRig(t, p)
	g.live(1, 2)
	g.hold = true // what closes here is not folded
	g.step(8)
	mine := g.publish(0)
	if handed {
		g.m.HandedOver(g.now, 0, mine.ID)
	}
	source := newRig(t, p)
	source.live(1, 2)
	source.close(6)
	tips, history := source.serve()
	g.bases[0] = map[uint32]*outer.Tip{tips[0].Round: tips[0]}
	g.want(g.m.Install(g.now, tips, [][]outer.Link{history[0][4:]}, nil), nil)
	g.drain()
	a := g.lastAdopt()
	if !handed {
		if len(a.Seqs(outer.Dropped)) > 0 {
			t.Errorf("gave up what nobody else has: %+v", a)
		}
		return
	}
	if !slices.Equal(a.Seqs(outer.Dropped), []uint64{1}) || len(a.Seqs(outer.Returned)) > 0 {
		t.Fatalf("adopted %+v", a)
	}
	if g.m.Fragment(0).Account().InFlight.Tokens != 0 {
		t.Errorf("%d tokens in flight of %d", g.m.Fragment(0).Account().InFlight.Tokens, mine.Tokens)
	}
	g.hold = false
	g.close(6)
	if steps, _ := g.m.Fragment(0).Pending(); steps != 0 {
		t.Errorf("%d steps are to be published once more", steps)
	}
}

// Rounds that close while a fold is under way say nothing of what it will fold: an
// own delta of one of them is not final before a tip is.
func TestNothingIsFinalBeforeItsTip(t *testing.T) {
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 2, 4
	g := newRig(t, p)
	g.live(1)
	g.close(1)
	g.hold = true
	g.give(g.delta(outer.Author{1}, 0, 2))
	g.after(g.p.GraceMaxMs) // the fold of round 2 is under way from here on
	g.step(8)
	g.publish(0) // for round 3
	for r := uint32(3); r <= 10; r++ {
		g.give(g.delta(outer.Author{1}, 0, r))
		g.after(g.p.GraceMaxMs)
	}
	g.fold()
	if a := g.lastAdopt(); a.Tip.Round != 2 || len(a.Seqs(outer.Returned)) > 0 {
		t.Fatalf("adopted %+v", a)
	}
	for len(g.wanted) > 0 {
		g.fold()
	}
	var folded, returned []uint64
	for _, a := range g.adopts {
		folded, returned = append(folded, a.Seqs(outer.Folded)...), append(returned, a.Seqs(outer.Returned)...)
	}
	if !slices.Equal(folded, []uint64{1}) || len(returned) > 0 {
		t.Errorf("folded %v, returned %v", folded, returned)
	}
}
