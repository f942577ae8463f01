package rounds

import (
	"encoding/binary"
	"errors"
	"slices"
	"testing"

	"atoll/optimizer/outer"
	"pgregory.net/rapid"
)

// fullRig is a rig whose rounds fold so many deltas.
func fullRig(t rapid.TB, p outer.Params, most int) *rig {
	return newRigOf(t, Config{Params: p, MostDeltas: most})
}

// byPriority are deltas in the order of their priorities in a run without a name.
func byPriority(ds []outer.Delta) []outer.Delta {
	out := slices.Clone(ds)
	slices.SortFunc(out, func(a, b outer.Delta) int {
		return outer.PriorityOf(outer.Digest{}, a).Compare(outer.PriorityOf(outer.Digest{}, b))
	})
	return out
}

// crowd are deltas of so many authors for one round.
func (g *rig) crowd(n int, rnd uint32) (ds []outer.Delta) {
	for i := range n {
		ds = append(ds, g.delta(outer.Author{7, byte(i), byte(i >> 8)}, 0, rnd))
	}
	return ds
}

// idsOf are the sorted names of deltas.
func idsOf(ds []outer.Delta) (ids []outer.ID) {
	for _, d := range ds {
		ids = append(ids, d.ID)
	}
	slices.SortFunc(ids, outer.CompareIDs)
	return ids
}

// best is the set of a round that holds the deltas, in this order.
func best(most int, ds ...outer.Delta) []outer.Delta {
	r := newRound(most, most)
	for _, d := range ds {
		if r.find(d.ID) == nil {
			r.insert(entry{delta: d, priority: outer.PriorityOf(outer.Digest{}, d)})
			r.hold(r.find(d.ID))
		}
	}
	return r.set()
}

// A union of deltas has the same set as the union of their sets, in whatever order deltas come.
// So two nodes that reconcile their sets agree, and need not know what each of them left out.
func TestBestOfTwoSets(t *testing.T) {
	g := newRig(t, roundsParams(1))
	all := g.crowd(24, 1)
	rapid.Check(t, func(t *rapid.T) {
		most := rapid.IntRange(1, 8).Draw(t, "most")
		draw := func(name string) []outer.Delta {
			return rapid.Permutation(all).Draw(t, name)[:rapid.IntRange(0, len(all)).Draw(t, "of "+name)]
		}
		a, b := draw("a"), draw("b")
		union := idsOf(best(most, slices.Concat(a, b)...))
		if tops := idsOf(best(most, slices.Concat(best(most, a...), best(most, b...))...)); !slices.Equal(union, tops) {
			t.Fatalf("the best of the union are %x, of both sets %x", union, tops)
		}
		both := slices.Concat(a, b)
		slices.SortFunc(both, func(x, y outer.Delta) int { return outer.CompareIDs(x.ID, y.ID) })
		want := byPriority(slices.CompactFunc(both, func(x, y outer.Delta) bool { return x.ID == y.ID }))
		if want := idsOf(want[:min(most, len(want))]); !slices.Equal(union, want) {
			t.Fatalf("the best are %x, by their priorities %x", union, want)
		}
	})
}

// fullStory is what happens to a machine whose rounds are small: headers and payloads,
// losses, equivocation proofs, and restarts from what its disk has.
type fullStory struct {
	*rig
	most     int
	known    map[outer.ID]outer.Delta // on the disk
	excluded map[outer.Author]bool
}

func (s *fullStory) happens(t *rapid.T, d outer.Delta) {
	switch rapid.IntRange(0, 9).Draw(t, "what") {
	case 0:
		s.m.Payload(s.now, 0, d.Round, d.ID, PayloadLost)
		if _, held := s.m.Fragment(0).Known(d.Round, d.ID); !held {
			delete(s.known, d.ID)
		}
		s.drain()
	case 1:
		s.after(rapid.Int64Range(1, 2000).Draw(t, "ms"))
	case 2:
		s.restart()
	default:
		s.comes(d)
	}
}

// comes brings a delta as repair does.
func (s *fullStory) comes(d outer.Delta) {
	if err := s.m.Offer(s.now, d, true); err != nil && !errors.Is(err, ErrFull) && !errors.Is(err, ErrExcluded) && !errors.Is(err, ErrParked) && !errors.Is(err, ErrRevoked) {
		s.t.Fatalf("delta of round %d: %v", d.Round, err)
	}
	s.held(d)
	if _, held := s.m.Fragment(0).Known(d.Round, d.ID); held {
		s.known[d.ID] = d
	}
}

// restart begins anew from genesis with the deltas on the disk.
func (s *fullStory) restart() {
	closed := s.m.Fragment(0).Closed()
	g := fullRig(s.t, s.p, s.most)
	g.payloads, g.now = s.payloads, s.now
	for a := range s.excluded {
		for rnd := uint32(1); rnd <= 3; rnd++ {
			g.m.Exclude(g.now, 0, rnd, a)
		}
	}
	genesis := g.bases[0][0]
	r := Restored{Tip: genesis, History: []outer.Link{{State: genesis.State}}, Bases: []uint32{0}, Closed: closed}
	for _, id := range idsOf(s.all()) {
		r.Held = append(r.Held, s.known[id])
	}
	g.m.Restore(g.now, 0, r)
	s.rig = g
	g.drain()
}

func (s *fullStory) all() (ds []outer.Delta) {
	for _, d := range s.known {
		ds = append(ds, d)
	}
	return ds
}

// Any order of arrival of more deltas than rounds take, with losses, equivocation proofs, revocations and restarts
// in between, gives the same bits.
func TestFullRoundsInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		const rounds = 3
		p := roundsParams(1)
		most := rapid.IntRange(1, 4).Draw(t, "most")
		var all []outer.Delta
		var bad []outer.Author
		tell := func() *fullStory {
			s := &fullStory{rig: fullRig(t, p, most), most: most, known: map[outer.ID]outer.Delta{}, excluded: map[outer.Author]bool{}}
			if all == nil {
				for rnd := uint32(1); rnd <= rounds; rnd++ {
					all = append(all, s.crowd(7, rnd)...)
				}
				all = append(all, s.drawRevocations(t, all)...)
				bad = []outer.Author{all[0].Author, all[3].Author}[:rapid.IntRange(0, 2).Draw(t, "excluded")]
			}
			for _, d := range all {
				if s.delta(d.Author, 0, d.Round); d.Revocation() {
					s.payloads[d.ID] = []byte("x")
				}
			}
			for i, d := range rapid.Permutation(all).Draw(t, "order") {
				s.happens(t, d)
				if i < len(bad) {
					s.exclude(bad[i])
				}
			}
			for _, d := range all { // repair brings what is missing
				s.comes(d)
			}
			s.m.CloseTo(s.now, 0, rounds)
			for _, d := range all {
				s.comes(d)
			}
			s.settle()
			s.sameAsReplay()
			return s
		}
		a, b := tell(), tell()
		if a.m.Fragment(0).Tip().State != b.m.Fragment(0).Tip().State {
			t.Fatal("states differ")
		}
		revoked := map[[32]byte]bool{}
		for rnd := uint32(1); rnd <= rounds; rnd++ {
			honest := slices.DeleteFunc(byPriority(all), func(d outer.Delta) bool { return d.Round != rnd || slices.Contains(bad, d.Author) })
			for _, d := range honest[:most] {
				revoked[d.Revokes] = d.Revocation()
			}
			honest = slices.DeleteFunc(honest, func(d outer.Delta) bool { return revoked[d.Author] })
			if got, want := idsOf(a.m.Fragment(0).Set(rnd)), idsOf(honest[:min(most, len(honest))]); !slices.Equal(got, want) {
				t.Fatalf("round %d folds %x, first by their priorities are %x", rnd, got, want)
			}
		}
	})
}

// drawRevocations draws up to three revocations of authors of deltas, by one owner.
func (s *fullStory) drawRevocations(t *rapid.T, all []outer.Delta) (revocations []outer.Delta) {
	for i := range rapid.IntRange(0, 3).Draw(t, "revocations") {
		rnd := rapid.Uint32Range(1, 3).Draw(t, "round")
		revocations = append(revocations, outer.Delta{
			ID: outer.ID{250, byte(i), byte(rnd)}, Author: outer.Author{240}, Round: rnd, Base: rnd - 1, Steps: 1, Size: 1,
			Revokes: rapid.SampledFrom(all).Draw(t, "of").Author,
		})
	}
	return revocations
}

// exclude leaves an author out of all rounds.
func (s *fullStory) exclude(a outer.Author) {
	s.excluded[a] = true
	for rnd := uint32(1); rnd <= 3; rnd++ {
		s.m.Exclude(s.now, 0, rnd, a)
	}
	for id, d := range s.known {
		if d.Author == a {
			delete(s.known, id)
		}
	}
	s.drain()
}

// before are deltas of round 1 with priority over the machine's own.
func (g *rig) before(n int) (ds []outer.Delta) {
	own := outer.PriorityOf(outer.Digest{}, outer.Delta{Author: self, Round: 1})
	for i := uint16(0); len(ds) < n; i++ {
		a := outer.Author{2}
		binary.BigEndian.PutUint16(a[1:], i)
		if outer.PriorityOf(outer.Digest{}, outer.Delta{Author: a, Round: 1}).Compare(own) < 0 {
			ds = append(ds, g.delta(a, 0, 1))
		}
	}
	return ds
}

// An own delta that a full round keeps out is not lost: it counts as in flight, no round and
// no leave waits for it, an equivocation proof can bring it back in, and its work returns to the learner
// when the round is final, as for a delta that came too late.
func TestOwnDeltaOfAFullRound(t *testing.T) {
	p := roundsParams(1)
	p.WindowAccept, p.WindowUnion = 2, 4
	for name, late := range map[string]bool{"it was full before": false, "better ones come later": true} {
		g := fullRig(t, p, 3)
		first := g.before(3)
		g.live(2)
		if !late {
			g.give(first...)
		}
		g.step(p.H)
		d := g.publish(0)
		if late {
			g.give(first...)
		}
		g.after(p.GraceMaxMs)
		g.expectClosed(1)
		if known, held := g.m.Fragment(0).Known(1, d.ID); !known || !held || slices.Contains(idsOf(g.m.Fragment(0).Set(1)), d.ID) {
			t.Fatalf("%s: known %v, held %v, set %x", name, known, held, idsOf(g.m.Fragment(0).Set(1)))
		}
		want := Account{InFlight: outer.Work{Steps: uint64(d.Steps), Tokens: d.Tokens}}
		if got := g.m.Fragment(0).Account(); got != want || len(g.m.Fragment(0).InFlight()) != 1 {
			t.Errorf("%s: the account is %+v, want %+v", name, got, want)
		}
		if !g.m.AllHanded(g.now) {
			t.Errorf("%s: a leave waits until somebody takes it, and nobody will", name)
		}
		if tip := g.m.Fragment(0).Tip(); tip.Tokens != 3*first[0].Tokens || g.m.Fragment(0).Projected(g.now) != tip.Tokens {
			t.Errorf("%s: %d tokens folded, %d projected", name, tip.Tokens, g.m.Fragment(0).Projected(g.now))
		}
		g.close(4)
		if last := g.lastAdopt(); len(last.Changes) != 1 || last.Changes[0].Fate != outer.Returned {
			t.Fatalf("%s: when the round is final the learner hears %+v", name, last.Changes)
		}
		if steps, tokens := g.m.Fragment(0).Pending(); steps != d.Steps || tokens != d.Tokens {
			t.Errorf("%s: %d steps and %d tokens are unpublished", name, steps, tokens)
		}
	}

	g := fullRig(t, p, 3)
	g.live(2)
	first := g.before(3)
	g.give(first...)
	g.step(p.H)
	d := g.publish(0)
	g.after(p.GraceMaxMs)
	g.m.Exclude(g.now, 0, 1, first[1].Author)
	g.drain()
	g.after(p.GraceMaxMs)
	if last := g.lastAdopt(); len(last.Changes) != 1 || last.Changes[0].Fate != outer.Folded || !slices.Contains(idsOf(g.m.Fragment(0).Set(1)), d.ID) {
		t.Errorf("with an equivocation proof against another the learner hears %+v", last.Changes)
	}
}

// What a round has no room for is forgotten, and the core is told. A header that comes back
// is known again. Own deltas are never forgotten.
func TestRoundForgets(t *testing.T) {
	g := fullRig(t, roundsParams(1), 4)
	var forgot []outer.ID
	g.learner = func(e Effect) {
		if f, ok := e.(Forgot); ok {
			forgot = append(forgot, f.ID)
		}
	}
	g.step(g.p.H)
	own := g.publish(0)
	worst := byPriority(g.before(maxOverflow + 5 + 4))
	slices.Reverse(worst)
	for _, d := range worst { // each takes the place of another
		g.want(g.m.Offer(g.now, d, true), nil)
		g.held(d)
	}
	r := g.m.frags[0].deltas.rounds[1]
	if r.have() != 4 || r.members.overflow != maxOverflow || len(forgot) != 6 || !slices.Equal(forgot[:6], namesOf(worst[:6])) {
		t.Fatalf("%d in the set, %d overflow, forgot %x, want %x", r.have(), r.members.overflow, forgot, namesOf(worst[:6]))
	}
	if _, held := g.m.Fragment(0).Known(1, own.ID); !held {
		t.Error("the own delta is forgotten")
	}
	g.want(g.m.Offer(g.now, worst[0], true), ErrFull)

	forgot = nil
	h := newRig(t, roundsParams(1))
	h.learner = g.learner
	many := h.crowd(maxAwaited+2, 1)
	h.want(h.offer(many[0]), nil)
	for _, d := range many[1:] {
		h.want(h.m.Offer(h.now, d, true), nil)
		h.drain()
	}
	if !slices.Equal(forgot, namesOf(many[:2])) {
		t.Fatalf("forgot %x, want what gossip brought, then the oldest: %x", forgot, namesOf(many[:2]))
	}
	h.want(h.m.Offer(h.now, many[1], true), nil)
	h.held(many[1])
	if _, held := h.m.Fragment(0).Known(1, many[1].ID); !held {
		t.Error("a header that comes back is not known again")
	}
}

// Equivocation proof comes once, to some before the payload and to others after it. However many were left
// out before, all leave out the same.
func TestEquivocationBeforeOrAfterThePayload(t *testing.T) {
	for _, first := range []bool{true, false} {
		g := newRig(t, roundsParams(1))
		d := g.delta(outer.Author{9}, 0, 1)
		for _, d := range g.crowd(maxEntries+100, 1) {
			g.want(g.m.Offer(g.now, d, true), nil)
			g.m.Exclude(g.now, 0, 1, d.Author)
		}
		g.want(g.m.Offer(g.now, d, true), nil)
		if first {
			g.m.Exclude(g.now, 0, 1, d.Author)
			g.m.Payload(g.now, 0, 1, d.ID, PayloadHeld)
			g.want(g.m.Offer(g.now, d, true), ErrExcluded)
		} else {
			g.held(d)
			g.m.Exclude(g.now, 0, 1, d.Author)
		}
		if set := g.m.Fragment(0).Set(1); !g.m.Excluded(d.Author) || len(set) != 0 {
			t.Errorf("equivocation proof first %v: the set has %d deltas", first, len(set))
		}
	}
}

// namesOf are the names of deltas, in their order.
func namesOf(ds []outer.Delta) (ids []outer.ID) {
	for _, d := range ds {
		ids = append(ids, d.ID)
	}
	return ids
}

// A set is full at maxEntries, and its order is by priority: to come first wins nothing.
func TestFloodTakesNoRound(t *testing.T) {
	g := newRig(t, roundsParams(1))
	crowd := byPriority(g.crowd(maxEntries+200, 1))
	late := crowd[:100]
	for _, d := range crowd[100:] {
		if err := g.m.Offer(g.now, d, true); err != nil && !errors.Is(err, ErrFull) {
			t.Fatal(err)
		}
		g.m.Payload(g.now, 0, 1, d.ID, PayloadHeld)
	}
	for _, d := range late {
		g.want(g.m.Offer(g.now, d, false), nil)
		g.m.Payload(g.now, 0, 1, d.ID, PayloadHeld)
	}
	if got, want := idsOf(g.m.Fragment(0).Set(1)), idsOf(crowd[:maxEntries]); !slices.Equal(got, want) {
		t.Errorf("the set has %d deltas, and not the first by their priorities", len(got))
	}
}
