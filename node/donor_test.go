package node

import (
	"context"
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

// donations closes rounds up to the given one in every fragment, keeps their
// tips and returns a round machine that has closed them.
func (l *ledgerWriter) donations(bases *tips, closed uint32) *rounds.Machine {
	l.t.Helper()
	history := make([][]outer.Link, len(l.plan))
	for p := range l.plan {
		for l.tips[p].Round < closed {
			l.round(p)
		}
		bases.put(p, l.tips[p])
		l.check(l.store.Rounds(p, 1, closed, func(round uint32, r store.Round) error {
			history[p] = append(history[p], linkOf(round, r))
			return nil
		}))
	}
	m := rounds.New(l.g.Outer, outer.Author{}, false, l.g.Tips())
	if closed > 0 {
		l.check(m.Install(1, l.tips, history))
	}
	return m
}

// offer makes the manifest of what the rounds have.
func (l *ledgerWriter) offer(d *donor, bases *tips, m *rounds.Machine) wire.Manifest {
	l.t.Helper()
	var wants []core.Donation
	for p := range l.plan {
		wants = append(wants, core.Donate(l.g.Outer, m, p))
	}
	raw, err := d.make(l.t.Context(), l.keys[0], l.g.RunID(), bases, wants, true)
	l.check(err)
	manifest, err := wire.OpenManifest(l.g.RunID(), raw)
	l.check(err)
	return manifest
}

func TestDonorOfGenesis(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	var d donor
	bases := l.newTips()
	for _, f := range l.offer(&d, bases, l.donations(bases, 0)).Fragments {
		if f.Round != 0 || len(f.Chunks) != 0 {
			t.Errorf("a run that has not begun: %+v", f)
		}
	}
}

func TestDonorGivesWhatJoinersCanRead(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	var d donor
	bases := l.newTips()
	m := l.offer(&d, bases, l.donations(bases, 4))
	for p, f := range m.Fragments {
		var blob []byte
		for _, id := range f.Chunks {
			chunk, ok := d.chunk(id)
			if !ok || wire.Sum(chunk) != id {
				t.Fatalf("chunk %v: held %v", id, ok)
			}
			blob = append(blob, chunk...)
		}
		tip, links, err := core.DecodeSnapshot(blob, f, l.plan[p], l.g.Outer)
		if err != nil || tip.State != l.tips[p].State || len(links) != 4 {
			t.Errorf("fragment %d: %d links, %v", p, len(links), err)
		}
	}
	if _, ok := d.chunk(wire.Digest{}); ok {
		t.Error("it has a chunk that nobody made")
	}
}

func TestDonorSharesAndRenewsManifests(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	var d donor
	bases := l.newTips()
	rounds := l.donations(bases, 4)
	if _, ok := d.fresh(rounds); ok {
		t.Error("fresh before there was one")
	}
	l.offer(&d, bases, rounds)
	if raw, ok := d.fresh(rounds); !ok || !slices.Equal(raw, d.manifest) {
		t.Error("a second joiner does not get the same")
	}
	if _, ok := d.fresh(l.donations(bases, 4+manifestRounds)); !ok {
		t.Error("renewed after few rounds")
	}
	later := l.donations(bases, 5+manifestRounds)
	if _, ok := d.fresh(later); ok {
		t.Error("not renewed after many rounds")
	}
	d.wants[0].Links[3].Chain[0] ^= 1
	if _, ok := d.fresh(rounds); ok {
		t.Error("not renewed when a late delta has changed the chain")
	}
	d.wants[0].Links[3].Chain[0] ^= 1
	d.made = d.made.Add(-2 * manifestFresh)
	if _, ok := d.fresh(rounds); ok {
		t.Error("not renewed when it is old")
	}
}

// donorNode is a node, as far as it gives tips, whose rounds have closed four of each
// fragment and whose bases are gone.
func (l *ledgerWriter) donorNode() *node {
	l.t.Helper()
	n := l.loader()
	n.key, n.clock, n.work, n.inbox, n.handles = l.keys[0], newClock(), newWorkers(), newMailbox[func(core.Time)](), map[uint64]asker{}
	n.machine = core.New(core.Config{
		Params: l.g.Outer, Plan: l.plan, Key: n.key, Run: n.run,
		Gossip: gossip.Config{Self: wire.PeerIDOf(n.key), Key: n.key, Run: n.run},
	}, l.g.Tips())
	history := make([][]outer.Link, len(l.plan))
	for p := range l.plan {
		for range 4 {
			l.round(p)
		}
		l.check(l.store.Rounds(p, 1, 4, func(round uint32, r store.Round) error {
			history[p] = append(history[p], linkOf(round, r))
			return nil
		}))
	}
	l.check(n.machine.Rounds().Install(1, l.tips, history))
	return n
}

// A base that is dropped between the choice and the reading of it is no reason to
// send a joiner away: the donor chooses again, so many times.
func TestDonorChoosesAgain(t *testing.T) {
	for back, want := range map[bool]wire.Status{true: wire.OK, false: wire.NotFound} {
		l := newLedger(t)
		n := l.donorNode()
		answers := make(chan reply, 1)
		n.handles[1] = asker{t.Context(), answers}
		n.replyManifest(1, nil)
		tries := 0
		for ; len(answers) == 0; tries++ {
			<-n.inbox.ready
			for p := 0; back && p < len(l.tips); p++ {
				n.tips.put(p, l.tips[p])
			}
			n.takeInbox()
		}
		if r := <-answers; wire.Status(r.response[0]) != want || back != (tries < maxDonorTries) {
			t.Errorf("bases come back %v: %v after %d tries", back, wire.Status(r.response[0]), tries)
		}
		n.work.stop()
		l.close()
	}
}

// Chunks of two manifests are held: those not asked for lately go first, so that
// a slow joiner can finish.
func TestDonorForgetsWhatNobodyTakes(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	var d donor
	bases := l.newTips()
	first := l.offer(&d, bases, l.donations(bases, 4))
	second := l.offer(&d, bases, l.donations(bases, 8))
	taken, left := first.Fragments[0].Chunks[0], first.Fragments[1].Chunks[0]
	if _, ok := d.chunk(taken); !ok {
		t.Error("a slow joiner cannot finish")
	}
	l.offer(&d, bases, l.donations(bases, 12))
	if _, ok := d.chunk(left); ok {
		t.Error("chunks of two manifests ago that nobody took are still held")
	}
	if _, ok := d.chunk(taken); !ok {
		t.Error("chunks that somebody takes are gone")
	}
	if _, ok := d.chunk(second.Fragments[1].Chunks[0]); !ok {
		t.Error("chunks of the last manifest are gone")
	}
	held := 0
	for _, b := range d.blobs {
		held += b.size()
	}
	if held != d.bytes || held > donatedSets*d.set {
		t.Errorf("%d bytes held, %d counted, at most %d", held, d.bytes, donatedSets*d.set)
	}
}

// restored is a round machine with two kept bases, the second of which is the
// newest tip, and the deltas between them.
func (l *ledgerWriter) restored(base, closed uint32) *rounds.Machine {
	l.t.Helper()
	m := rounds.New(l.g.Outer, outer.Author{}, false, l.g.Tips())
	for p, tip := range l.tips {
		s := rounds.Restored{Tip: tip, Bases: []uint32{base, closed}, Closed: closed}
		l.check(l.store.Rounds(p, 1, closed, func(round uint32, r store.Round) error {
			s.History = append(s.History, linkOf(round, r))
			return nil
		}))
		l.check(l.store.Headers(p, base+1, closed, func(id wire.Digest, h wire.SignedHeader) error {
			s.Held = append(s.Held, core.DeltaOf(id, h.Header))
			return nil
		}))
		m.Restore(1, p, s)
	}
	return m
}

// at asks a donor for the tips of given rounds.
func (l *ledgerWriter) at(d *donor, bases *tips, machine *rounds.Machine, at ...uint32) (wire.Manifest, error) {
	l.t.Helper()
	var wants []core.Donation
	for p := range l.plan {
		wants = append(wants, core.DonateAt(l.g.Outer, machine, p, at[p]))
	}
	raw, err := d.make(l.t.Context(), l.keys[0], l.g.RunID(), bases, wants, false)
	if err != nil {
		return wire.Manifest{}, err
	}
	m, err := wire.OpenManifest(l.g.RunID(), raw)
	l.check(err)
	return m, nil
}

// Two donors, one of them some rounds further, cut the same chunks of a round;
// one that does not hold it says so, and gives what it has.
func TestDonorsOfOneRoundAgree(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	var d, e donor
	bases := l.newTips()
	rounds := l.donations(bases, 4)
	first := l.offer(&d, bases, rounds)
	l.donations(bases, 6)
	ahead, err := l.at(&e, bases, l.restored(4, 6), 4, 4)
	if err != nil {
		t.Fatal(err)
	}
	for p, f := range ahead.Fragments {
		if f.Round != 4 || f.Closed != 6 || !slices.Equal(f.Chunks, first.Fragments[p].Chunks) {
			t.Errorf("fragment %d: round %d closed %d, chunks equal %v", p, f.Round, f.Closed, slices.Equal(f.Chunks, first.Fragments[p].Chunks))
		}
	}
	part, err := l.at(&e, bases, l.restored(4, 6), 4, 3)
	if err != nil || part.Fragments[0].Round != 4 || len(part.Fragments[1].Chunks) != 0 {
		t.Errorf("%+v, %v", part.Fragments, err)
	}
	for _, rounds := range [][]uint32{{3, 3}, {7, 7}, {60, 60}} {
		if _, err := l.at(&e, bases, l.restored(4, 6), rounds...); !errors.Is(err, core.ErrNothingToGive) {
			t.Errorf("rounds %v: %v", rounds, err)
		}
	}
}

// The tip of a round whose base is gone is folded again from the one below it.
func TestDonorFoldsAgain(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	var d, e donor
	bases := l.newTips()
	l.donations(bases, 4)
	first := l.offer(&d, bases, l.donations(bases, 5))
	l.donations(bases, 6)
	for p := range l.plan {
		l.check(bases.drop(p, 5))
	}
	m, err := l.at(&e, bases, l.restored(4, 6), 5, 5)
	if err != nil {
		t.Fatal(err)
	}
	for p, f := range m.Fragments {
		if !slices.Equal(f.Chunks, first.Fragments[p].Chunks) {
			t.Errorf("fragment %d: other chunks than the donor that has the base", p)
		}
	}
}

// Whoever asks for other rounds each time does not keep a donor folding: between
// two such manifests it rests, and gives only what it has.
func TestDonorRestsBetweenFolds(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	var d donor
	bases := l.newTips()
	l.donations(bases, 4)
	l.donations(bases, 6)
	rounds := l.restored(4, 6)
	if _, err := l.at(&d, bases, rounds, 5, 5); err != nil {
		t.Fatal(err)
	}
	d.rested = time.Now().Add(time.Hour)
	if m, err := l.at(&d, bases, rounds, 5, 5); err != nil || m.Fragments[0].Round != 5 {
		t.Errorf("what was folded for another, while it rests: %+v, %v", m.Fragments, err)
	}
	d.blobs = nil
	if _, err := l.at(&d, bases, rounds, 5, 5); !errors.Is(err, core.ErrNothingToGive) {
		t.Errorf("while it rests: %v", err)
	}
	if m, err := l.at(&d, bases, rounds, 4, 5); err != nil || m.Fragments[0].Round != 4 || len(m.Fragments[1].Chunks) != 0 {
		t.Errorf("what it has, while it rests: %+v, %v", m.Fragments, err)
	}
}

// Nothing is made for a stream that is gone, and nothing twice for askers that
// waited for each other.
func TestDonorMakesNothingInVain(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	var d donor
	bases := l.newTips()
	rounds := l.donations(bases, 4)
	gone, leave := context.WithCancel(t.Context())
	leave()
	wants := []core.Donation{core.Donate(l.g.Outer, rounds, 0), core.Donate(l.g.Outer, rounds, 1)}
	if _, err := d.make(gone, l.keys[0], l.g.RunID(), bases, wants, true); !errors.Is(err, context.Canceled) || len(d.blobs) != 0 {
		t.Errorf("for an asker that is gone: %v, %d blobs", err, len(d.blobs))
	}
	first := l.offer(&d, bases, rounds)
	d.made, d.blobs = time.Now().Add(time.Hour), nil // another was made while this one waited
	if second := l.offer(&d, bases, rounds); !slices.Equal(second.Fragments[0].Chunks, first.Fragments[0].Chunks) || len(d.blobs) != 0 {
		t.Error("made twice")
	}
}

// In the smallest union window there is always something to give.
func TestDonorInASmallWindow(t *testing.T) {
	g := toyGenesis(1 << 40)
	g.Outer.WindowAccept, g.Outer.WindowUnion = 1, 1
	l := newLedgerOf(t, g)
	defer l.close()
	bases := l.newTips()
	for closed := uint32(1); closed < 7; closed++ {
		rounds := l.donations(bases, closed)
		for p := range l.plan {
			if d := core.Donate(l.g.Outer, rounds, p); len(d.Links) == 0 || d.Links[len(d.Links)-1].Round != d.Round {
				t.Errorf("closed %d: %+v", closed, d)
			}
		}
	}
}

func TestDonorWithoutBase(t *testing.T) {
	l := newLedger(t)
	defer l.close()
	var d donor
	bases := l.newTips()
	rounds := l.donations(bases, 3)
	wants := []core.Donation{core.Donate(l.g.Outer, rounds, 0), core.Donate(l.g.Outer, rounds, 1)}
	l.check(bases.drop(1, 3))
	if _, err := d.make(l.t.Context(), l.keys[0], l.g.RunID(), bases, wants, true); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}
