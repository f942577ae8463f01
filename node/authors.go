package node

import (
	"errors"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// authorTokens are the tokens folded by author, of one fragment. Rounds can be
// folded again with more deltas, so they are kept apart until they are final.
type authorTokens struct {
	window uint32 // rounds after which a round is final
	total  map[wire.PeerID]uint64
	deltas uint64
	rounds map[uint32][]outer.Delta
}

func newAuthorTokens(window uint32) authorTokens {
	return authorTokens{window: window, total: map[wire.PeerID]uint64{}, rounds: map[uint32][]outer.Delta{}}
}

// put takes the deltas folded in a round, in place of those it took before.
func (a *authorTokens) put(round uint32, folded []outer.Delta) {
	for _, d := range a.rounds[round] {
		a.total[wire.PeerID(d.Author)] -= d.Tokens
		a.deltas--
	}
	for _, d := range folded {
		a.total[wire.PeerID(d.Author)] += d.Tokens
		a.deltas++
	}
	a.rounds[round] = folded
	if round > a.window {
		delete(a.rounds, round-a.window-1)
	}
}

// foldedOf are the deltas of a set that were folded.
func foldedOf(set []outer.Delta, folded []outer.ID) []outer.Delta {
	return slices.DeleteFunc(slices.Clone(set), func(d outer.Delta) bool { return !slices.Contains(folded, d.ID) })
}

// maxRound is the highest round that a record can have.
const maxRound = store.MaxRound

// countAuthors adds up the recorded rounds of a fragment, as far as the headers
// of the deltas in them are held.
func countAuthors(s *store.Store, fragment int, window uint32) (authorTokens, error) {
	a := newAuthorTokens(window)
	err := s.Rounds(fragment, 1, maxRound, func(round uint32, r store.Round) error {
		var folded []outer.Delta
		for _, id := range r.Folded {
			h, err := s.Header(id)
			if errors.Is(err, store.ErrNotFound) {
				continue // folded before this node joined
			}
			if err != nil {
				return err
			}
			folded = append(folded, core.DeltaOf(id, h.Header, nil))
		}
		a.put(round, folded)
		return nil
	})
	return a, err
}
