package show

import (
	"slices"

	"atoll/node/core"
	"atoll/node/status"
)

// account is what became of the tokens that this node trained.
func (v View) account() status.Account {
	w := v.Screen
	a := status.Account{Rounds: w.rounds, PayloadBytes: w.payloadBytes, PayloadHeld: w.payloadHeld}
	a.Refused, a.Late = v.Machine.Counts()
	a.OwnReturned, a.OwnDiscarded = slices.Clone(w.returned), slices.Clone(w.discarded)
	a.OwnLostHere = slices.Clone(w.lostHere)
	for p := range v.Layout {
		a.Deltas += w.ledger[p].Deltas()
		_, unpublished := v.Rounds.Fragment(p).Pending()
		a.OwnUnpublished = append(a.OwnUnpublished, unpublished)
		a.OwnFolded = append(a.OwnFolded, w.ledger[p].Made(v.Self))
		a.OwnInFlight = append(a.OwnInFlight, v.Rounds.Fragment(p).Account().InFlight.Tokens)
		a.OwnLostBefore = append(a.OwnLostBefore, w.lostBeforeOf(p, v.Trained, a))
	}
	return a
}

// FindLost records what earlier processes trained and this one finds neither folded nor in flight. One of them discarded it with
// a chain, or ended before it was published. They count what they lose, but the step log and the ledger outlive their counts.
func (v *Screen) FindLost(saved []core.Saved, trained uint64) {
	for p := range v.ledger {
		found := v.ledger[p].Made(v.self)
		if saved != nil {
			found += v.ledger[p].Outside(saved[p])
		}
		v.lostBefore[p] = trained - min(trained, found)
	}
}

// lostBeforeOf is what FindLost found, less what was folded after all: others may hold a delta that was discarded here, and this
// process no longer knows it from what it lost otherwise.
func (v *Screen) lostBeforeOf(p int, trained uint64, a status.Account) uint64 {
	known := a.OwnFolded[p] + a.OwnInFlight[p] + a.OwnUnpublished[p] + a.OwnDiscarded[p] + a.OwnLostHere[p]
	return min(v.lostBefore[p], trained-min(trained, known))
}
