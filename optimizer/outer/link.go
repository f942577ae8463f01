package outer

import (
	"bytes"
	"slices"
)

// Link is one closed round of a fragment's chain. It follows from headers
// alone.
type Link struct {
	Round    uint32
	Chain    Digest // BLAKE3(previous chain, sorted ids folded)
	State    Digest // state digest of the folded tip, zero until it is folded
	Tokens   uint64 // tokens folded up to and with this round
	EndRound uint32 // first round at which Tokens reached the budget; 0 = not yet
	Folded   []ID   // sorted
	// Revoked are the names that the chain has revoked up to and with this round, ordered. Rounds
	// share them.
	Revoked []Revoked
}

// Ended says that no round follows.
func (l Link) Ended() bool { return l.EndRound != 0 && l.Round > l.EndRound }

// NextLink extends a chain by one round with the given set of valid deltas, without those that it or
// an earlier round revokes.
// Past the round after EndRound nothing is folded any more.
func NextLink(p Params, prev Link, set []Delta) Link {
	next := Link{Round: prev.Round + 1, Tokens: prev.Tokens, EndRound: prev.EndRound, Revoked: prev.Revoked}
	if prev.EndRound == 0 || next.Round <= prev.EndRound+1 {
		next.Revoked = Revoke(prev.Revoked, set)
		taken := admitted(next.Revoked, set)
		for _, d := range taken {
			next.Folded = append(next.Folded, d.ID)
		}
		next.Tokens += p.CountedOf(taken)
	}
	slices.SortFunc(next.Folded, CompareIDs)
	next.Chain = ChainDigest(prev.Chain, next.Folded)
	if next.EndRound == 0 && next.Tokens >= p.Budget {
		next.EndRound = next.Round
	}
	return next
}

// CompareIDs orders deltas by their names, byte by byte.
func CompareIDs(a, b ID) int { return bytes.Compare(a[:], b[:]) }

// CompareAuthors orders learners by their names, byte by byte.
func CompareAuthors(a, b Author) int { return bytes.Compare(a[:], b[:]) }
