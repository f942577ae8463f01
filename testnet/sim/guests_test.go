package sim

import (
	"testing"
)

// hosted is a run of about so many rounds that folds as new runs do, of members and, after them, honest guests.
func hosted(members, guests, rounds int, seed uint64) Scenario {
	s := Small(members+guests, 0, nil, seed)
	p := &s.Params
	p.Budget = uint64(members*rounds*p.H) * TokensPerStep // what guests make is no part of it
	for i := range guests {
		s.Founders[members+i].Guest = true
	}
	return s
}

// calmRounds are enough where nothing is drawn.
const calmRounds = 20

// settledOf are what members and guests of a world made that is neither pending nor in flight at its end, and what of it is
// folded.
func settledOf(t *testing.T, w *World, guests bool) (made, settled, folded float64) {
	t.Helper()
	reports, whole := w.Reports()
	if !whole {
		t.Fatal("nobody has the whole chain")
	}
	for _, r := range reports {
		if w.nodes[r.Index].spec.Guest == guests {
			made += float64(r.Trained)
			settled += float64(r.Trained) - r.Tokens.Pending - r.Tokens.InFlight
			folded += r.Tokens.Folded
		}
	}
	return made, settled, folded
}

// What guests make is folded, except what the end finds with them. It ends no run: members make the budget.
func TestGuestsWorkIsFolded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, hosted(5, 8, calmRounds, 1))
	w.Finish()
	made, settled, folded := settledOf(t, w, true)
	if settled < 0.6*made || folded < 0.95*settled {
		t.Errorf("guests made %.0f tokens, %.0f of them are not with them at the end, %.0f are folded", made, settled, folded)
	}
	_, _, members := settledOf(t, w, false)
	if budget := float64(w.s.Params.Budget); members < budget {
		t.Errorf("members made %.0f tokens of a budget of %.0f", members, budget)
	}
}

// Without a member no round closes, however many guests train. With the first that comes back they go on.
func TestGuestsAloneStandStill(t *testing.T) {
	t.Parallel()
	const members, away, back, settle = 3, 8000, 40_000, 3000
	s := hosted(members, 4, calmRounds, 1)
	s.Faults = allAway(members, away, back)
	s.CalmMs = back + 1
	w := newWorld(t, s)
	w.RunUntil(Start+away+settle, func() bool { return false })
	closed := w.closed()
	w.RunUntil(Start+back-1, func() bool { return false })
	if now := w.closed(); closed == 0 || now != closed {
		t.Errorf("guests alone came from round %d to round %d", closed, now)
	}
	w.Finish()
}

// What guests may cost a member, beside a world without them.
const (
	mostHostedRefolds = 2   // times the rounds that are folded again
	fewRefolds        = 0.1 // and so many of all rounds, where none are
	mostHostedDeltas  = 2.2 // times the deltas on disk: at most as many of guests as of members, and what the end finds
)

// Guests cost members little on links as they are between homes: a delta that comes late has all fold again.
func TestGuestsCostLittle(t *testing.T) {
	t.Parallel()
	cost := func(guests int) cost {
		s := hosted(5, guests, calmRounds, 1)
		s.Link.LatencyMs = 80
		w := newWorld(t, s)
		w.Finish()
		return costOf(w)
	}
	calm, got := cost(0), cost(8)
	t.Logf("%s\n%s", costColumns, got.against(calm))
	all := calm.rounds * float64(hosted(5, 0, calmRounds, 1).Params.Fragments)
	if most := mostHostedRefolds*calm.refolds + fewRefolds*all; got.refolds > most {
		t.Errorf("a node folds %.0f rounds again, %.0f without guests: at most %.0f are allowed", got.refolds, calm.refolds, most)
	}
	if got.ledger > mostHostedDeltas*calm.ledger {
		t.Errorf("%.0f deltas are on disk, %.0f without guests", got.ledger, calm.ledger)
	}
}
