package testnet

import (
	"bytes"
	"errors"
	"fmt"
	"math"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// chain is what one node's ledger says was folded in every round of the run.
// Where it does not reach back that far, it has rounds of other ledgers.
type chain struct {
	fragments int
	params    []uint64 // n_p, the parameters of each fragment
	run       outer.Params
	closed    []uint32 // last closed round of each fragment
	tokens    []uint64 // T_p, as the ledger counts them
	counted   []uint64 // the same, of the headers of the deltas folded
	folded    []map[wire.Digest]bool
	deltas    uint64 // folded
	sums      columns
}

// columns are token counts by author and fragment.
type columns map[wire.PeerID][]uint64

func (c columns) add(author wire.PeerID, fragment, fragments int, tokens uint64) {
	if c[author] == nil {
		c[author] = make([]uint64, fragments)
	}
	c[author][fragment] += tokens
}

// of is the row of an author, zeros if there is none.
func (c columns) of(author wire.PeerID, fragments int) []uint64 {
	if row := c[author]; row != nil {
		return row
	}
	return make([]uint64, fragments)
}

// rounds is the number of closed rounds of all fragments.
func (c *chain) rounds() (n uint64) {
	for _, r := range c.closed {
		n += uint64(r)
	}
	return n
}

// errGap says that no ledger has a round that the chain is made of.
var errGap = errors.New("no ledger has the round before it")

// ledgers are of the nodes of a world, the chain's own node first.
type ledgers []*store.Store

// ledgerRound is the record of a round, wherever it was found.
type ledgerRound struct {
	round uint32
	store.Round
}

// readChain reads the whole chain of the first ledger. The ledger of a node
// that took a snapshot from another begins later than with round 1. Then the rounds
// before come from any ledger whose chain digests lead there.
func readChain(all ledgers, plan outer.Plan, run outer.Params) (*chain, error) {
	c := &chain{fragments: len(plan), run: run, sums: columns{}}
	for p, f := range plan {
		c.params = append(c.params, uint64(f.Len))
		c.closed, c.tokens, c.counted = append(c.closed, 0), append(c.tokens, 0), append(c.counted, 0)
		c.folded = append(c.folded, map[wire.Digest]bool{})
		rounds, err := all.rounds(p)
		for _, r := range rounds {
			if err == nil {
				err = c.addRound(all, p, r)
			}
		}
		if err != nil {
			return nil, fmt.Errorf("chain of %s: %w", all[0].Dir(), err)
		}
	}
	return c, nil
}

// rounds are the records of a fragment from round 1 on, oldest first.
func (all ledgers) rounds(p int) ([]ledgerRound, error) {
	var back []ledgerRound // newest first
	for {
		from, err := all.before(p, back)
		if err != nil || from == nil {
			slices.Reverse(back)
			return back, err
		}
		part, err := lastRounds(from, p, back)
		if err != nil {
			return nil, err
		}
		back = append(back, part...)
	}
}

// before is the ledger that has the round before those found, nil if there is
// none before.
func (all ledgers) before(p int, back []ledgerRound) (*store.Store, error) {
	if len(back) == 0 {
		return all[0], nil
	}
	oldest := back[len(back)-1]
	if oldest.round == 1 {
		return nil, nil
	}
	for _, s := range all {
		r, err := s.Round(p, oldest.round-1)
		if err == nil && leadsTo(r, oldest.Round) {
			return s, nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	return nil, fmt.Errorf("fragment %d round %d: %w", p, oldest.round, errGap)
}

// leadsTo says whether a round is the one before another on the same chain.
func leadsTo(r, next store.Round) bool {
	ids := make([]outer.ID, len(next.Folded))
	for i, id := range next.Folded {
		ids[i] = outer.ID(id)
	}
	slices.SortFunc(ids, func(a, b outer.ID) int { return bytes.Compare(a[:], b[:]) })
	return outer.ChainDigest(outer.Digest(r.Chain), ids) == outer.Digest(next.Chain)
}

// lastRounds are the rounds of a ledger before those found, newest first, back to
// the first one that it lacks.
func lastRounds(s *store.Store, p int, back []ledgerRound) (part []ledgerRound, err error) {
	to := uint32(math.MaxUint32)
	if len(back) > 0 {
		to = back[len(back)-1].round - 1
	}
	err = s.Rounds(p, 1, to, func(round uint32, r store.Round) error {
		if n := len(part); n > 0 && part[n-1].round+1 != round {
			part = nil // a gap: what is older is of a chain that was left
		}
		part = append(part, ledgerRound{round, r})
		return nil
	})
	slices.Reverse(part)
	return part, err
}

func (c *chain) addRound(all ledgers, p int, r ledgerRound) error {
	c.closed[p], c.tokens[p] = r.round, r.Tokens
	var set []outer.Delta
	for _, id := range r.Folded {
		h, err := all.header(id)
		if err != nil {
			return err
		}
		set = append(set, core.DeltaOf(id, h.Header, nil)) // no node of a testnet is a guest
		c.folded[p][id] = true
		c.deltas++
		c.sums.add(h.Header.Author, p, c.fragments, h.Header.Tokens)
	}
	c.counted[p] += c.run.CountedOf(set)
	return nil
}

// header is the header of a delta, from the first ledger that has it.
func (all ledgers) header(id wire.Digest) (h wire.SignedHeader, err error) {
	for _, s := range all {
		if h, err = s.Header(id); !errors.Is(err, store.ErrNotFound) {
			return h, err
		}
	}
	return h, err
}

// published is where the deltas of one author went that the chain does not
// have, tokens by fragment.
type published struct {
	returned  []uint64 // final: their work was counted as unpublished again
	discarded []uint64 // on no chain that counts, and never will be
	unknown   []uint64 // folded, but not in the ledger that was read
}

// readPublished reads what an author published from a ledger, which should be
// its own. closed are the rounds that the author had closed.
func (c *chain) readPublished(s *store.Store, author wire.PeerID, closed []uint32) (published, error) {
	n := len(c.params)
	out := published{make([]uint64, n), make([]uint64, n), append([]uint64{}, c.sums.of(author, n)...)}
	for p := range n {
		err := s.Headers(p, 1, math.MaxUint32, func(id wire.Digest, h wire.SignedHeader) error {
			if h.Header.Author != author {
				return nil
			}
			switch tokens := h.Header.Tokens; {
			case c.folded[p][id]:
				out.unknown[p] -= tokens
			case p < len(closed) && h.Header.Round+c.run.WindowUnion <= closed[p]:
				out.returned[p] += tokens
			default:
				out.discarded[p] += tokens
			}
			return nil
		})
		if err != nil {
			return out, fmt.Errorf("deltas in %s: %w", s.Dir(), err)
		}
	}
	return out, nil
}
