package inspect

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// Moment is how far a run was when a round had closed, as a ledger tells it. A ledger has no
// clock: moments are in the order of the tokens that were folded.
type Moment struct {
	Tokens       float64            // folded, by the fragments' parameters
	Closed       []uint32           // last closed round, per fragment
	Contributors []int              // deltas that this round folded, per fragment
	By           map[string]float64 // folded tokens of each author (id in hex) whose headers are held
}

// maxMoments bounds what Moments returns: more are nothing that an eye sees.
const maxMoments = 300

// closing is a round of the ledger.
type closing struct {
	fragment int
	round    uint32
	tokens   uint64 // of the fragment, up to and with it
	folded   []wire.Digest
}

// Moments returns moments of the run whose ledger a folder holds: at most
// maxMoments, evenly spread over its rounds. The last one is its end.
func Moments(dir string) (moments []Moment, err error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	var rounds []closing
	headers := map[wire.Digest]wire.Header{}
	for p := range f.plan {
		err := errors.Join(
			f.store.Rounds(p, 1, store.MaxRound, func(round uint32, r store.Round) error {
				rounds = append(rounds, closing{p, round, r.Tokens, slices.Clone(r.Folded)})
				return nil
			}),
			f.store.Headers(p, 1, store.MaxRound, func(id wire.Digest, h wire.SignedHeader) error {
				headers[id] = h.Header
				return nil
			}))
		if err != nil {
			return nil, fmt.Errorf("ledger of %s: fragment %d: %w", dir, p, err)
		}
	}
	return f.moments(rounds, headers), nil
}

// moments goes through the rounds of all fragments in order.
func (f *folder) moments(rounds []closing, headers map[wire.Digest]wire.Header) (moments []Moment) {
	slices.SortFunc(rounds, func(a, b closing) int {
		return cmp.Or(cmp.Compare(a.tokens, b.tokens), cmp.Compare(a.round, b.round), cmp.Compare(a.fragment, b.fragment))
	})
	b := ledgerBuilder{folder: f}
	now := Moment{Closed: make([]uint32, len(f.plan)), Contributors: make([]int, len(f.plan)), By: map[string]float64{}}
	tokens := make([]uint64, len(f.plan))
	for i, r := range rounds {
		tokens[r.fragment], now.Closed[r.fragment], now.Contributors[r.fragment] = r.tokens, r.round, len(r.folded)
		var set []outer.Delta
		for _, id := range r.folded {
			if h, held := headers[id]; held && !h.Revocation() {
				set = append(set, core.DeltaOf(id, h, f.members))
			}
		}
		for i, count := range f.genesis.OuterParams().Counted(set) {
			now.By[hex.EncodeToString(set[i].Author[:])] += b.weight(r.fragment) * float64(count)
		}
		if (i+1)*maxMoments/len(rounds) == i*maxMoments/len(rounds) && len(rounds) > maxMoments {
			continue
		}
		now.Tokens = 0
		for p := range tokens {
			now.Tokens += b.weight(p) * float64(tokens[p])
		}
		moments = append(moments, Moment{now.Tokens, slices.Clone(now.Closed), slices.Clone(now.Contributors), maps.Clone(now.By)})
	}
	return moments
}
