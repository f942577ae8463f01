// Package authors counts the tokens of a run by the author that made them: from the records of a folder at a start, and from then on from
// each fold.
package authors

import (
	"cmp"
	"errors"
	"maps"
	"slices"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// Tokens are the tokens folded by author of one fragment. Rounds can be
// folded again with more deltas, so they are kept apart until they are final.
type Tokens struct {
	params outer.Params
	total  map[wire.PeerID]uint64 // that count for the budget
	beyond map[wire.PeerID]uint64 // claimed, and not counted
	deltas uint64
	rounds map[uint32][]outer.Delta
	first  map[wire.PeerID]store.Place // of the first delta in the ledger
}

// New counts nothing yet.
func New(p outer.Params) Tokens {
	return Tokens{params: p, total: map[wire.PeerID]uint64{}, beyond: map[wire.PeerID]uint64{}, rounds: map[uint32][]outer.Delta{}, first: map[wire.PeerID]store.Place{}}
}

// Deltas is how many were folded.
func (a *Tokens) Deltas() uint64 { return a.deltas }

// Counted are the tokens of an author that count for the budget.
func (a *Tokens) Counted(author wire.PeerID) uint64 { return a.total[author] }

// Beyond are the tokens of all authors that do not count.
func (a *Tokens) Beyond() (sum uint64) {
	for _, tokens := range a.beyond {
		sum += tokens
	}
	return sum
}

// Made are the tokens that were folded of what an author made, whether or not they count.
func (a *Tokens) Made(author wire.PeerID) uint64 { return a.total[author] + a.beyond[author] }

// Each tells the authors of all fragments, some of them more than once. Of one whose rounds were folded anew without it nothing may be
// left.
func Each(fragments []Tokens, f func(wire.PeerID)) {
	for _, a := range fragments {
		for author := range a.total {
			f(author)
		}
	}
}

// Fold takes those deltas of a set that were folded in a round, in place of those it took before.
func (a *Tokens) Fold(round uint32, set []outer.Delta, folded []outer.ID) {
	a.put(round, foldedOf(set, folded))
}

// put takes the deltas folded in a round.
func (a *Tokens) put(round uint32, folded []outer.Delta) {
	before := a.rounds[round]
	for i, count := range a.params.Counted(before) {
		author := wire.PeerID(before[i].Author)
		a.total[author] -= count
		a.beyond[author] -= before[i].Tokens - count
	}
	for i, count := range a.params.Counted(folded) {
		author := wire.PeerID(folded[i].Author)
		a.total[author] += count
		a.beyond[author] += folded[i].Tokens - count
	}
	a.deltas += uint64(len(folded)) - uint64(len(before))
	a.rounds[round] = folded
	if final := a.params.WindowUnion; round > final {
		delete(a.rounds, round-final-1)
	}
}

// foldedOf are the deltas of a set that were folded, without revocations: these are owners' words, and no machine's work.
func foldedOf(set []outer.Delta, folded []outer.ID) []outer.Delta {
	return slices.DeleteFunc(slices.Clone(set), func(d outer.Delta) bool { return d.Revocation() || !slices.Contains(folded, d.ID) })
}

// InOrder are the authors of all fragments in the order of their first deltas: by round, then fragment, then
// place in the record, so that all nodes with the same records come to the same.
func InOrder(fragments []Tokens) []wire.PeerID {
	type place struct {
		store.Place
		fragment int
	}
	first := map[wire.PeerID]place{}
	for p, a := range fragments {
		for author, at := range a.first {
			if before, known := first[author]; !known || at.Round < before.Round {
				first[author] = place{at, p}
			}
		}
	}
	return slices.SortedFunc(maps.Keys(first), func(a, b wire.PeerID) int {
		x, y := first[a], first[b]
		return cmp.Or(cmp.Compare(x.Round, y.Round), cmp.Compare(x.fragment, y.fragment), cmp.Compare(x.Nth, y.Nth))
	})
}

// Count adds up the recorded rounds of a fragment, as far as the headers
// of the deltas in them are held. Those that the store has counted it does not read. members are those of the
// run, nil in one that is open.
func Count(s *store.Store, fragment int, p outer.Params, members *member.Table) (Tokens, error) {
	a := New(p)
	through, sums, err := s.AuthorSums(fragment)
	if err != nil {
		return a, err
	}
	for author, sum := range sums {
		a.total[author], a.beyond[author], a.first[author] = sum.Tokens, sum.Beyond, sum.First
		a.deltas += sum.Deltas
	}
	err = s.Rounds(fragment, through+1, store.MaxRound, func(round uint32, r store.Round) error {
		var folded []outer.Delta
		for nth, id := range r.Folded {
			h, err := s.HeaderAt(fragment, round, id)
			if errors.Is(err, store.ErrNotFound) {
				continue // folded before this node joined
			}
			if err != nil {
				return err
			}
			if h.Header.Revocation() {
				continue // an owner's word, and no machine's work
			}
			folded = append(folded, core.DeltaOf(id, h.Header, members))
			if _, known := a.first[h.Header.Author]; !known {
				a.first[h.Header.Author] = store.Place{Round: round, Nth: uint32(nth)}
			}
		}
		a.put(round, folded)
		return nil
	})
	return a, err
}

// Outside are the tokens of the own deltas that a disk has of a fragment, and that its records do not fold.
func (a *Tokens) Outside(saved core.Saved) (tokens uint64) {
	for _, o := range saved.Own {
		if !slices.ContainsFunc(a.rounds[o.Delta.Round], func(d outer.Delta) bool { return d.ID == o.Delta.ID }) {
			tokens += o.Delta.Tokens
		}
	}
	return tokens
}
