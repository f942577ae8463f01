package outer

import (
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/zeebo/blake3"
)

// A revocation is a delta without values: an owner's statement that an author, or all whom an invite
// admitted, count no more. It is a member of the set of its round like any delta, so that it is
// hashed into the chain, spread, repaired and final by the same rules, and a fold stays a function of
// the tip before and its set.

// Revoked is a name that a chain has revoked: an author, or the key of an invite; or that of an author that stays, see keptName.
type Revoked struct {
	Name  [32]byte
	Round uint32 // the first round in which deltas of the name are outside the set
}

const (
	// MaxReason bounds the payload of a revocation, which is its reason in words.
	MaxReason = 256
	// MaxRevoked bounds the names that a tip lists. Owners are few and revoke few; those beyond it,
	// by round and id, revoke nothing.
	MaxRevoked = 1024
)

// domainKept is of keptName.
const domainKept = "atoll kept 1"

// keptName stands in the table as what is revoked does: the author stays when the invite by which it came is revoked in that round
// or a later one.
func keptName(invite [32]byte, author Author) [32]byte {
	return blake3.Sum256(append(append([]byte(domainKept), invite[:]...), author[:]...))
}

// keepsSteps are the steps of a revocation that keeps an author.
const keepsSteps = 2

// inviteNumber is what the tokens of a revocation that keeps an author say: for which invite it counts.
func inviteNumber(invite [32]byte) uint64 { return binary.BigEndian.Uint64(invite[:]) }

// keeps says whether a revocation keeps an author.
func (d Delta) keeps() bool { return d.Revocation() && d.Steps == keepsSteps }

// Revocation says whether a delta is one.
func (d Delta) Revocation() bool { return d.Revokes != ([32]byte{}) }

// checkRevocation is Check of a revocation, whose other fields say nothing: they are fixed, so that
// one statement of an owner has one form.
func (p Params) checkRevocation(d Delta) error {
	switch {
	case d.Base != d.Round-1 || d.Steps < 1 || d.Steps > keepsSteps:
		return fmt.Errorf("outer: revocation with base %d and %d steps in round %d; it has the base %d and 1 or %d steps", d.Base, d.Steps, d.Round, d.Round-1, keepsSteps)
	case d.Tokens > MaxRevoked && !d.keeps():
		return fmt.Errorf("outer: revocation with %d tokens; one of an invite keeps 0 to %d authors, others have none", d.Tokens, MaxRevoked)
	case d.Size < 1 || d.Size > MaxReason:
		return fmt.Errorf("outer: revocation with a reason of %d bytes; 1 to %d are allowed", d.Size, MaxReason)
	}
	return nil
}

// RevokedAt is the first round in which a table, ordered by name, keeps a delta out of the sets of a
// chain; 0 if it does not.
func RevokedAt(table []Revoked, d Delta) (round uint32) {
	if d.Revocation() {
		return 0
	}
	round = roundOf(table, d.Author)
	by := roundOf(table, d.Invite)
	if by == 0 || round != 0 && round <= by {
		return round
	}
	if kept := roundOf(table, keptName(d.Invite, d.Author)); kept != 0 && kept <= by {
		return round
	}
	return by
}

// roundOf is the round of a name in a table; 0 for none, and for no name.
func roundOf(table []Revoked, name [32]byte) uint32 {
	if i, found := findRevoked(table, name); found && name != ([32]byte{}) {
		return table[i].Round
	}
	return 0
}

func findRevoked(table []Revoked, name [32]byte) (int, bool) {
	return slices.BinarySearchFunc(table, name, func(r Revoked, name [32]byte) int { return CompareIDs(r.Name, name) })
}

// Revoke returns the table of names after a round whose set has these deltas: the table before, which
// is not changed, and what they revoke. A name stays revoked from its first round on.
func Revoke(table []Revoked, set []Delta) []Revoked {
	fresh := slices.DeleteFunc(slices.Clone(set), func(d Delta) bool { return !d.Revocation() })
	kept := keptByInvite(fresh)
	fresh = slices.DeleteFunc(fresh, func(d Delta) bool { // whom it keeps is on the way
		return !d.keeps() && d.Tokens > uint64(len(kept[inviteNumber(d.Revokes)]))
	})
	if len(fresh) == 0 {
		return table
	}
	slices.SortFunc(fresh, func(a, b Delta) int { return CompareIDs(a.ID, b.ID) })
	next := slices.Clone(table)
	for _, d := range fresh {
		if i, found := findRevoked(next, d.Revokes); !found && len(next) < MaxRevoked {
			next = slices.Insert(next, i, Revoked{d.Revokes, d.Round})
		}
	}
	return next
}

// keptByInvite are the names that revocations keep, by the number of the invite; a name that two owners signed is one.
func keptByInvite(revocations []Delta) map[uint64]map[[32]byte]bool {
	kept := map[uint64]map[[32]byte]bool{}
	for _, d := range revocations {
		if !d.keeps() {
			continue
		}
		if kept[d.Tokens] == nil {
			kept[d.Tokens] = map[[32]byte]bool{}
		}
		kept[d.Tokens][d.Revokes] = true
	}
	return kept
}

// RevokedUpTo is the table of a chain at a round, made from the table at a later round.
func RevokedUpTo(table []Revoked, round uint32) []Revoked {
	if !slices.ContainsFunc(table, func(r Revoked) bool { return r.Round > round }) {
		return table
	}
	return slices.DeleteFunc(slices.Clone(table), func(r Revoked) bool { return r.Round > round })
}

// admitted are the deltas of a set that no revocation keeps out, in their order.
func admitted(table []Revoked, set []Delta) []Delta {
	if len(table) == 0 {
		return set
	}
	return slices.DeleteFunc(slices.Clone(set), func(d Delta) bool { return RevokedAt(table, d) != 0 })
}
