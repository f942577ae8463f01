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

// room is how many deltas of guests a set has.
func (r *world) room() int { return max(1, r.p.LearnersPerRound/4) }

// Guests neither propose nor close rounds: not with deltas for the round after the next, not by being many, and no round waits for
// what they announced.
func specGuestsCloseNothing(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}})
	for n := range r.room() {
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
	for n := 7; ; n++ { // one whose priority is in the set, and whose payload never comes
		if err := r.m.Offer(r.now, r.guest(n, 1), false); err == nil {
			break
		}
	}
	for author := byte(1); author <= 2; author++ {
		r.take(author, 1)
	}
	if closed := r.m.Fragment(0).Closed(); closed != 1 {
		t.Errorf("%d rounds closed after all members published", closed)
	}
}

// Gossip brings deltas of guests for the two rounds that are open, repair those of all.
func specGuestsInTime(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.closeTo(1)
	for round, want := range map[uint32]error{1: rounds.ErrLate, 2: nil, 3: nil, 4: rounds.ErrParked} {
		if err := r.m.Offer(r.now, r.guest(int(round), round), false); err != want {
			t.Errorf("round %d by gossip: %v, want %v", round, err, want)
		}
		if err := r.m.Offer(r.now, r.guest(int(round), round), true); err != nil {
			t.Errorf("round %d by repair: %v", round, err)
		}
	}
}

// A set has some deltas of guests, those of the first priorities, whatever members it has and in whatever order they
// came. What has no room is forgotten, except one.
func specGuestsRoom(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	var all []outer.Delta
	for n := range 8 * r.room() {
		d := r.guest(n, 1)
		if err := r.give(d, true); err != nil && err != rounds.ErrFull {
			t.Fatal(err)
		}
		all = append(all, d)
	}
	r.take(1, 1)
	priority := func(d outer.Delta) outer.Priority { return outer.PriorityOf(outer.Digest{}, d) }
	slices.SortFunc(all, func(a, b outer.Delta) int { return priority(a).Compare(priority(b)) })
	set := r.m.Fragment(0).Set(1)
	knows := 0
	for i, d := range all {
		if in := slices.ContainsFunc(set, func(x outer.Delta) bool { return x.ID == d.ID }); in != (i < r.room()) {
			t.Errorf("guest %d by priority is in the set: %v", i, in)
		}
		if known, _ := r.m.Fragment(0).Known(1, d.ID); known {
			knows++
		}
	}
	if knows > r.room()+1 {
		t.Errorf("%d deltas of guests are kept", knows)
	}
	if len(set) != r.room()+1 {
		t.Errorf("a set of %d", len(set))
	}
	if err := r.m.Offer(r.now, all[len(all)-1], false); err != rounds.ErrFull {
		t.Errorf("the last guest: %v", err)
	}
}

// Keys with priority over all that came cost a round no more than a few payloads.
func specGuestsSought(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	var all []outer.Delta
	for n := range 1000 {
		all = append(all, r.guest(n, 1))
	}
	priority := func(d outer.Delta) outer.Priority { return outer.PriorityOf(outer.Digest{}, d) }
	slices.SortFunc(all, func(a, b outer.Delta) int { return priority(b).Compare(priority(a)) })
	taken := 0
	for _, d := range all {
		if r.give(d, false) == nil {
			taken++
		}
	}
	if taken != 4*r.room() {
		t.Errorf("%d of keys in descending order of priorities are taken", taken)
	}
	if err := r.give(r.guest(2000, 1), true); err != nil && err != rounds.ErrFull {
		t.Errorf("by repair: %v", err)
	}
}

// Headers of guests whose payloads never come leave room for members, and for what a member brings of guests.
func specGuestsUnheld(t *testing.T, _ *spectest.Spec) {
	r, n := newWorld(t, nil), 0
	for r.m.Offer(r.now, r.guest(n, 1), false) == nil && n < 2000 {
		n++
	}
	if n != 4*r.room() {
		t.Errorf("%d headers of guests without payloads by gossip", n)
	}
	for i := range 3 * n {
		if err := r.m.Offer(r.now, r.guest(3000+i, 1), true); err != nil {
			t.Fatalf("by repair: %v", err)
		}
	}
	known := 0
	for i := range 3 * n {
		if is, _ := r.m.Fragment(0).Known(1, r.guest(3000+i, 1).ID); is {
			known++
		}
	}
	if first, _ := r.m.Fragment(0).Known(1, r.guest(0, 1).ID); first || known != n {
		t.Errorf("the oldest is known: %v; %d of those by repair", first, known)
	}
	if err := r.m.Offer(r.now, r.delta(1, 1), false); err != nil {
		t.Errorf("a member after them: %v", err)
	}
}

// What a key signs twice as a guest are two deltas, and neither they nor an equivocation proof against it keep out what it makes as a member.
func specGuestSignsTwice(t *testing.T, _ *spectest.Spec) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	one, other := r.guest(1, 1), r.guest(2, 1)
	own := r.delta(1, 1)
	one.Author, other.Author = own.Author, own.Author
	for _, d := range []outer.Delta{one, other, own} {
		if err := r.give(d, false); err != nil {
			t.Fatalf("%+v: %v", d, err)
		}
	}
	r.m.Exclude(r.now, 0, 1, own.Author)
	if set := r.m.Fragment(0).Set(1); len(set) != 2 || !set[0].Guest || !set[1].Guest {
		t.Errorf("the set is %+v", set)
	}
}

// A guest that has made its steps waits for a proposal, and publishes for the round after, if there is room for it.
func specGuestPublishes(t *testing.T, _ *spectest.Spec) {
	published := map[bool]bool{}
	for _, others := range []int{0, 3, 10, 30, 100, 250} {
		r := newWorld(t, func(p *outer.Params) { p.LearnersPerRound = 2 })
		r.m = rounds.New(rounds.Config{Params: r.p, Self: self, Learner: true, Guest: true}, []*outer.Tip{r.bases[0]})
		r.m.SetLive([]outer.Author{{1}, {2}, {3}, self})
		r.m.SetIdle([]outer.Author{self})
		var guests []outer.Author
		before := 0
		priorityOf := func(a outer.Author) outer.Priority {
			return outer.PriorityOf(outer.Digest{}, outer.Delta{Author: a, Round: 2, Guest: true})
		}
		for n := range others {
			guests = append(guests, outer.Author{7, byte(n)})
			if priorityOf(guests[n]).Compare(priorityOf(self)) < 0 {
				before++
			}
		}
		r.m.SetGuests(guests)
		for range 2 * r.p.H {
			r.m.Stepped(r.now, 1)
			r.execute()
		}
		if r.drafts != 0 {
			t.Fatal("a guest proposed a round")
		}
		r.take(2, 1)
		if in := before < r.room(); in != (r.drafts == 1) {
			t.Errorf("%d guests have priority over it: %d drafts after a proposal", before, r.drafts)
		} else {
			published[in] = true
		}
		if round, may := r.m.RoundOfDraft(0); r.drafts == 1 && (!may || round != 2) {
			t.Errorf("it signs for round %d, may %v", round, may)
		}
	}
	if !published[true] || !published[false] {
		t.Errorf("published: %v", published)
	}
}

// A guest keeps its own delta where others of its class come first, and goes on.
func TestOwnGuestOverflows(t *testing.T) {
	r := newWorld(t, nil)
	r.m.SetLive([]outer.Author{{1}, {2}, {3}})
	own := r.own(1, 1)
	own.Guest = true
	r.m.SettleDraft(r.now, 0, rounds.OwnDelta{Seq: 1, Delta: own}, nil)
	for n := range 200 {
		if err := r.give(r.guest(n, 1), true); err != nil && err != rounds.ErrFull {
			t.Fatal(err)
		}
	}
	if known, held := r.m.Fragment(0).Known(1, own.ID); !known || !held {
		t.Errorf("the own delta is known: %v, held: %v", known, held)
	}
}
