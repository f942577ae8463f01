package testnet

import (
	"errors"
	"fmt"
	"math"

	"atoll/gossip/wire"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// chain is what one node's ledger says was folded, in every round of the run.
type chain struct {
	fragments int
	params    []uint64 // n_p, the parameters of each fragment
	union     uint32   // W_u: older rounds are final
	closed    []uint32 // last closed round of each fragment
	tokens    []uint64 // T_p, as the ledger counts them
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

// errGap says that a ledger does not reach back to the first round, as that of
// a node that joined by taking tips.
var errGap = errors.New("the ledger does not begin with round 1")

// readChain reads the whole chain from a node's ledger.
func readChain(s *store.Store, plan outer.Plan, union uint32) (*chain, error) {
	c := &chain{fragments: len(plan), union: union, sums: columns{}}
	for p, f := range plan {
		c.params = append(c.params, uint64(f.Len))
		c.closed, c.tokens = append(c.closed, 0), append(c.tokens, 0)
		c.folded = append(c.folded, map[wire.Digest]bool{})
		err := s.Rounds(p, 1, math.MaxUint32, func(round uint32, r store.Round) error {
			return c.addRound(s, p, round, r)
		})
		if err != nil {
			return nil, fmt.Errorf("chain of %s: %w", s.Dir(), err)
		}
	}
	return c, nil
}

func (c *chain) addRound(s *store.Store, p int, round uint32, r store.Round) error {
	if round != c.closed[p]+1 {
		return fmt.Errorf("fragment %d: round %d follows %d: %w", p, round, c.closed[p], errGap)
	}
	c.closed[p], c.tokens[p] = round, r.Tokens
	for _, id := range r.Folded {
		h, err := s.Header(id)
		if err != nil {
			return err
		}
		c.folded[p][id] = true
		c.deltas++
		c.sums.add(h.Header.Author, p, c.fragments, h.Header.Tokens)
	}
	return nil
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
			case p < len(closed) && h.Header.Round+c.union <= closed[p]:
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
