package sim

import (
	"slices"
	"testing"
)

// The same by guests of a run that admits by invitation and folds as new runs do: whoever has the invite for guests makes
// keys without end. Five members stand against them. The short mode plays what wins by strangers of an open run.
func TestAttacksOfGuests(t *testing.T) {
	var guests []attackTest
	for _, a := range attackTests {
		if a.wins == "" && !longMode() {
			continue
		}
		a.guest, a.agree, a.wins = true, true, ""
		if slices.Contains([]AttackKind{WrongChunks, ShortChunks, PayloadMissing}, a.kind) {
			a.shows, a.says = "", "" // nobody asks a guest for tips, nor first for payloads
		}
		guests = append(guests, a)
	}
	playAttacks(t, guests)
}
