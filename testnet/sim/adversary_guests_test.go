package sim

import (
	"slices"
	"testing"
)

// quietByGuests are attacks of which nobody hears: nobody asks a guest for a snapshot, nor first for payloads, and what it signs twice
// is a proof against nobody (G-1.3).
var quietByGuests = []AttackKind{WrongChunks, ShortChunks, PayloadMissing, Equivocate, LateProof, OneProof}

// The same by guests of a run that admits by invitation and folds as new runs do: whoever has the invite for guests makes
// keys without end. Five members stand against them. The short mode plays what wins by strangers of an open run.
func TestAttacksOfGuests(t *testing.T) {
	var guests []attackTest
	for _, a := range attackTests {
		if a.wins == "" && !longMode() {
			continue
		}
		a.guest, a.agree, a.wins = true, true, ""
		if slices.Contains(quietByGuests, a.kind) {
			a.shows, a.says = "", ""
		}
		guests = append(guests, a)
	}
	playAttacks(t, guests)
}
