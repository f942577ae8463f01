package rounds_test

import (
	"errors"
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// revocation is an owner's revocation of a name, from a round on.
func (r *world) revocation(name [32]byte, round uint32) outer.Delta {
	d := outer.Delta{
		ID: outer.ID{250, name[0], byte(round)}, Author: outer.Author{240}, Round: round, Base: round - 1, Steps: 1, Size: 1, Revokes: name,
	}
	r.payloads[d.ID] = []byte("x")
	return d
}

// authors are those of the set of a round.
func (r *world) authors(round uint32) (names []byte) {
	for _, d := range r.m.Fragment(0).Set(round) {
		names = append(names, d.Author[0])
	}
	return names
}

func specKeptOut(t *testing.T, _ *spectest.Spec) {
	for _, repair := range []bool{false, true} {
		r := newWorld(t, nil)
		r.closeTo(2)
		r.take(5, 3)
		invited := r.delta(6, 3)
		invited.Invite = [32]byte{66}
		for _, d := range []outer.Delta{invited, r.revocation([32]byte{5}, 2), r.revocation([32]byte{66}, 3)} {
			if err := r.give(d, repair); err != nil {
				t.Fatal(err)
			}
		}
		r.take(7, 3)
		r.closeTo(4)
		if got := r.authors(3); !slices.Equal(got, []byte{7, 240}) {
			t.Errorf("the set of round 3 is of %v", got)
		}
		for _, d := range []outer.Delta{r.delta(5, 2), r.delta(5, 4), invited} {
			r.refusedWith(rounds.ErrRevoked, d, repair)
		}
		if err := r.give(r.delta(5, 1), true); err != nil {
			t.Errorf("of the round before: %v", err)
		}
		if got := r.authors(1); !slices.Equal(got, []byte{1, 5}) {
			t.Errorf("the set of round 1 is of %v", got)
		}
		r.pass(2000)
		if tip := r.m.Fragment(0).Tip(); tip.Round != 4 || len(tip.Revoked) != 2 {
			t.Errorf("the tip of round %d has the names %v", tip.Round, tip.Revoked)
		}
	}
}

func specRevocationsFirst(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	revocations := []outer.Delta{r.revocation([32]byte{5}, 1), r.revocation([32]byte{6}, 1)}
	priorities := []outer.Priority{outer.PriorityOf(outer.Digest{9}, revocations[0]), outer.PriorityOf(outer.Digest{9}, revocations[1])}
	if priorities[0].Compare(priorities[1]) >= 0 {
		t.Error("their ids do not order them")
	}
	for author := range byte(200) {
		if priorities[1].Compare(outer.PriorityOf(outer.Digest{9}, r.delta(author, 1))) >= 0 {
			t.Errorf("author %d comes before", author)
		}
	}
}

func specManyRevocations(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}})
	for _, name := range []byte{5, 6, 7} {
		if err := r.give(r.revocation([32]byte{name}, 1), false); err != nil {
			t.Error(err)
		}
	}
	if got := r.authors(1); len(got) != 3 {
		t.Errorf("the set is of %v", got)
	}
	r.closeTo(10)
	r.refusedWith(rounds.ErrFinal, r.revocation([32]byte{8}, 2), true)
	r.refusedWith(rounds.ErrParked, r.revocation([32]byte{8}, 10+2+r.p.WindowAccept), false)
}

// A revocation and a delta of one author stand beside each other, in either order, with an equivocation proof or without. A flood of headers
// without payloads keeps none out.
func TestRevocationBesideDeltas(t *testing.T) {
	for _, revokedFirst := range []bool{false, true} {
		r := newWorld(t, nil)
		r.m.SetLive([]outer.Author{{1}, {2}, {3}})
		ds := []outer.Delta{r.delta(240, 1), r.revocation([32]byte{5}, 1)} // of the same author
		if revokedFirst {
			slices.Reverse(ds)
		}
		for _, d := range ds {
			if err := r.give(d, false); err != nil {
				t.Errorf("revocation first %v: %v", revokedFirst, err)
			}
		}
		if got := r.authors(1); !slices.Equal(got, []byte{240, 240}) {
			t.Errorf("revocation first %v: the set is of %v", revokedFirst, got)
		}
		r.m.Exclude(r.now, 0, 1, outer.Author{240})
		if err := r.give(r.revocation([32]byte{6}, 1), false); err != nil {
			t.Errorf("after equivocation proof: %v", err)
		}
		if got := r.authors(1); !slices.Equal(got, []byte{240, 240}) {
			t.Errorf("revocation first %v: after equivocation proof the set is of %v", revokedFirst, got)
		}
		r.refusedWith(rounds.ErrRevoked, r.delta(5, 1), true)
	}
	r := newWorld(t, nil)
	for i := range 600 {
		_ = r.m.Offer(r.now, r.manyth(i), false) // some are too many
	}
	if err := r.give(r.revocation([32]byte{5}, 1), false); err != nil {
		t.Errorf("in a flood: %v", err)
	}
}

// Who takes a snapshot, or starts again, knows whom the chain has revoked: peers that tell it no owner's word bring it nothing of them.
func TestRevokedOfASnapshot(t *testing.T) {
	r := newWorld(t, nil)
	r.closeTo(2)
	if err := r.give(r.revocation([32]byte{5}, 3), false); err != nil {
		t.Fatal(err)
	}
	r.closeTo(4)
	r.pass(2000)
	tip := r.m.Fragment(0).Tip()
	history := r.m.Fragment(0).Links(tip.Round)
	for i := range history {
		history[i].Revoked = nil // no snapshot says it of each round
	}
	joiner := newWorld(t, nil)
	if err := joiner.m.Install(joiner.now, []*outer.Tip{tip}, [][]outer.Link{history}, nil); err != nil {
		t.Fatal(err)
	}
	for _, repair := range []bool{false, true} {
		if err := joiner.m.Offer(joiner.now, joiner.delta(5, 5), repair); !errors.Is(err, rounds.ErrRevoked) {
			t.Errorf("repair %v: %v", repair, err)
		}
	}
	if err := joiner.m.Offer(joiner.now, joiner.delta(6, 5), false); err != nil {
		t.Errorf("of another: %v", err)
	}
}
