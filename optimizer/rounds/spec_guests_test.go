package rounds_test

import (
	"slices"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// guest is the n-th of many deltas of guests for a round.
func (r *world) guest(n int, round uint32) outer.Delta {
	d := r.manyth(n + 1)
	payload := r.payloads[r.delta(1, 1).ID]
	d.Round, d.Base, d.Guest = round, round-1, true
	d.ID[30], d.ID[31] = byte(round), 1
	r.payloads[d.ID] = payload
	return d
}

// Guests neither ring nor close: not with deltas for the round after the next, not by being many, and no round waits for
// what they announced.
func specGuestsCloseNothing(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}})
	for n := range 6 {
		for round := uint32(1); round <= 2; round++ {
			if err := r.give(r.guest(n, round), true); err != nil {
				t.Fatal(err)
			}
		}
	}
	r.pass(100_000)
	if closed := r.m.Fragment(0).Closed(); closed != 0 {
		t.Fatalf("guests closed %d rounds", closed)
	}
	if err := r.m.Offer(r.now, r.guest(7, 2), false); err != nil {
		t.Fatal(err)
	}
	for author := byte(1); author <= 2; author++ {
		r.take(author, 1)
	}
	if closed := r.m.Fragment(0).Closed(); closed != 1 {
		t.Errorf("%d rounds closed after all members answered", closed)
	}
}

// Guests park nothing by gossip, and by repair as others.
func specGuestsParked(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	if err := r.m.Offer(r.now, r.guest(0, 3), false); err != rounds.ErrParked {
		t.Errorf("by gossip: %v", err)
	}
	if err := r.m.Offer(r.now, r.guest(0, 3), true); err != nil {
		t.Errorf("by repair: %v", err)
	}
}

// A set has Answerers deltas of guests, those whose places come first, whatever members it has and in whatever order they
// came.
func specGuestsRoom(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	var all []outer.Delta
	for n := range 3 * r.p.Answerers {
		d := r.guest(n, 1)
		if err := r.give(d, true); err != nil && err != rounds.ErrFull {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	r.take(1, 1)
	place := func(d outer.Delta) outer.Place { return outer.PlaceOf(outer.Digest{}, d) }
	slices.SortFunc(all, func(a, b outer.Delta) int { return place(a).Compare(place(b)) })
	set := r.m.Fragment(0).Set(1)
	for i, d := range all {
		if in := slices.ContainsFunc(set, func(x outer.Delta) bool { return x.ID == d.ID }); in != (i < r.p.Answerers) {
			t.Errorf("guest %d by place is in the set: %v", i, in)
		}
	}
	if len(set) != r.p.Answerers+1 {
		t.Errorf("a set of %d", len(set))
	}
	if err := r.m.Offer(r.now, all[len(all)-1], false); err != rounds.ErrFull {
		t.Errorf("the last guest: %v", err)
	}
}

// Headers of guests whose payloads never come leave room for members.
func specGuestsUnheld(t *testing.T, _ *spectest.Spec) {
	r, n := newWorld(t, nil), 0
	for r.m.Offer(r.now, r.guest(n, 1), false) == nil && n < 2000 {
		n++
	}
	if n != r.p.Answerers {
		t.Errorf("%d headers of guests without payloads by gossip", n)
	}
	if err := r.m.Offer(r.now, r.delta(1, 1), false); err != nil {
		t.Errorf("a member after them: %v", err)
	}
}

// A guest that has made its steps waits for a bell, and answers it whoever else is called.
func specGuestAnswers(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, func(p *outer.Params) { p.Answerers = 2 })
	r.m = rounds.New(rounds.Config{Params: r.p, Self: self, Learner: true, Guest: true}, []*outer.Tip{r.bases[0]})
	r.m.SetLive([]outer.Author{{1}, {2}, {3}, self})
	r.m.SetIdle([]outer.Author{self})
	for range 2 * r.p.H {
		r.m.Stepped(r.now, 1)
		r.execute()
	}
	if r.drafts != 0 {
		t.Fatal("a guest rang")
	}
	r.take(2, 1)
	if r.drafts != 1 {
		t.Errorf("%d drafts after a bell", r.drafts)
	}
}
