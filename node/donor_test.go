package node

import (
	"errors"
	"slices"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// donations closes rounds up to the given one in every fragment, keeps their
// tips and returns a round machine that has closed them.
func (l *ledgerWriter) donations(bases *tips, closed uint32) *outer.Rounds {
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
	rounds := outer.NewRounds(l.g.Outer, outer.Author{}, false, l.g.Tips())
	if closed > 0 {
		l.check(rounds.Install(1, l.tips, history))
	}
	return rounds
}

// offer makes the manifest of what the rounds have.
func (l *ledgerWriter) offer(d *donor, bases *tips, rounds *outer.Rounds) wire.Manifest {
	l.t.Helper()
	var wants []donation
	for p := range l.plan {
		wants = append(wants, donate(rounds, p))
	}
	raw, err := d.make(l.keys[0], l.g.RunID(), bases, wants)
	l.check(err)
	m, err := wire.OpenManifest(l.g.RunID(), raw)
	l.check(err)
	return m
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
	first := l.offer(&d, bases, rounds)
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
	d.wants[0].links[3].Chain[0] ^= 1
	if _, ok := d.fresh(rounds); ok {
		t.Error("not renewed when a late delta has changed the chain")
	}
	d.wants[0].links[3].Chain[0] ^= 1
	d.made = d.made.Add(-2 * manifestFresh)
	if _, ok := d.fresh(rounds); ok {
		t.Error("not renewed when it is old")
	}
	second := l.offer(&d, bases, later)
	old, fresh := first.Fragments[0].Chunks[0], second.Fragments[0].Chunks[0]
	if _, ok := d.chunk(old); !ok {
		t.Error("a slow joiner cannot finish")
	}
	l.offer(&d, bases, l.donations(bases, 15))
	if _, ok := d.chunk(old); ok {
		t.Error("chunks of two manifests ago are still held")
	}
	if _, ok := d.chunk(fresh); !ok {
		t.Error("chunks of the last manifest are gone")
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
			if d := donate(rounds, p); len(d.links) == 0 || d.links[len(d.links)-1].Round != d.round {
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
	wants := []donation{donate(rounds, 0), donate(rounds, 1)}
	l.check(bases.drop(1, 3))
	if _, err := d.make(l.keys[0], l.g.RunID(), bases, wants); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("error %v", err)
	}
}
