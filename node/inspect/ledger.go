package inspect

import (
	"cmp"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// LedgerView is the account of every delta and token that a folder knows of.
// Tokens without "per fragment" are weighted by the fragments' parameters: each
// step's tokens appear in a delta of every fragment and count once.
type LedgerView struct {
	Run           string           `json:"run"`
	Name          string           `json:"name"`
	BudgetTokens  uint64           `json:"budget_tokens"`
	TokensFolded  float64          `json:"tokens_folded"`
	TokensTrained uint64           `json:"tokens_trained"` // by this node, from its step log
	Fragments     []LedgerFragment `json:"fragments"`
	Authors       []LedgerAuthor   `json:"authors"` // most tokens first
	Deltas        []LedgerDelta    `json:"deltas,omitempty"`
}

// LedgerFragment is the account of one fragment.
type LedgerFragment struct {
	Fragment int    `json:"fragment"`
	Params   int    `json:"params"`
	Closed   uint32 `json:"closed"`              // last recorded round
	EndRound uint32 `json:"end_round,omitempty"` // first round at which the budget was reached
	Tokens   uint64 `json:"tokens"`              // folded, by the last record
	Missing  uint32 `json:"missing_rounds"`      // up to Closed without a record: older than a snapshot that was taken, or the disk took none for too long
	Deltas   int    `json:"deltas"`              // folded
	Open     int    `json:"open_deltas"`         // known and not folded
	Unknown  int    `json:"unknown_deltas"`      // folded before this node joined, header not held
	HeldFrom uint32 `json:"held_from"`           // first round from which every folded payload is on this disk; Closed+1 = none
}

// LedgerAuthor is the account of one learner.
type LedgerAuthor struct {
	Author string  `json:"author"` // peer id, hex
	Self   bool    `json:"self,omitempty"`
	Deltas int     `json:"deltas"` // folded
	Tokens float64 `json:"tokens"` // folded, that count for the budget and for the learning rate
	Share  float64 `json:"share"`  // of the folded tokens whose headers are held
	Bytes  uint64  `json:"bytes"`  // payloads of the folded deltas
	Open   int     `json:"open_deltas"`

	// Beyond are folded tokens that it claimed and that do not count: what it made as a guest, and what is more than twice what is
	// usual in its rounds.
	Beyond float64 `json:"tokens_not_counted,omitempty"`
}

// LedgerDelta is one delta.
type LedgerDelta struct {
	ID       string `json:"id"`
	Fragment int    `json:"fragment"`
	Round    uint32 `json:"round"`
	Base     uint32 `json:"base"`
	Author   string `json:"author"`
	Steps    uint32 `json:"steps"`
	Tokens   uint64 `json:"tokens"`
	Bytes    uint32 `json:"bytes"`
	Held     bool   `json:"held"` // the payload is on this disk
	Folded   bool   `json:"folded"`
}

// Ledger reads the ledger of a folder, as it is now where a node runs.
func Ledger(dir string) (view LedgerView, err error) {
	f, err := openFolder(dir)
	if err != nil {
		return LedgerView{}, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	steps, err := store.SumSteps(dir)
	if err != nil {
		return LedgerView{}, err
	}
	b := ledgerBuilder{folder: f, authors: map[wire.PeerID]*LedgerAuthor{}}
	if b.self, err = f.self(); err != nil {
		return LedgerView{}, err
	}
	b.view = LedgerView{
		Run: hex.EncodeToString(f.run[:]), Name: f.genesis.Name,
		BudgetTokens: f.genesis.Outer.Budget, TokensTrained: steps.Tokens,
	}
	for p := range f.plan {
		if err := b.fragment(p); err != nil {
			return LedgerView{}, fmt.Errorf("ledger of %s: fragment %d: %w", dir, p, err)
		}
	}
	return b.finish(), nil
}

// ledgerBuilder adds the ledger up.
type ledgerBuilder struct {
	*folder
	view    LedgerView
	authors map[wire.PeerID]*LedgerAuthor
	self    wire.PeerID
}

func (b *ledgerBuilder) fragment(p int) error {
	fragment := LedgerFragment{Fragment: p, Params: b.plan[p].Len}
	folded := map[wire.Digest]bool{}
	recorded := map[uint32]bool{}
	fragment.HeldFrom = 1
	err := b.store.Rounds(p, 1, store.MaxRound, func(round uint32, r store.Round) error {
		if round != fragment.Closed+1 {
			fragment.HeldFrom = round
		}
		recorded[round] = true
		fragment.Closed, fragment.EndRound, fragment.Tokens = round, r.EndRound, r.Tokens
		for _, id := range r.Folded {
			folded[id] = true
			if _, held := b.store.Has(id); !held {
				fragment.HeldFrom = round + 1
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fragment.Missing = fragment.Closed - uint32(len(recorded))
	fragment.Deltas, fragment.Unknown = len(folded), len(folded)
	sets := map[uint32][]outer.Delta{} // by round
	err = b.store.Headers(p, 1, store.MaxRound, func(id wire.Digest, h wire.SignedHeader) error {
		if h.Header.Revocation() { // an owner's word, and no machine's work
			if folded[id] {
				fragment.Deltas, fragment.Unknown = fragment.Deltas-1, fragment.Unknown-1
			}
			return nil
		}
		// What a round without a record folded is not known here.
		open := !folded[id] && (recorded[h.Header.Round] || h.Header.Round > fragment.Closed)
		if folded[id] {
			fragment.Unknown--
		} else if open {
			fragment.Open++
		}
		b.delta(p, id, h.Header, folded[id], open)
		if folded[id] {
			sets[h.Header.Round] = append(sets[h.Header.Round], core.DeltaOf(id, h.Header, b.members))
		}
		return nil
	})
	for _, set := range sets {
		b.count(p, set)
	}
	b.view.Fragments = append(b.view.Fragments, fragment)
	return err
}

func (b *ledgerBuilder) delta(p int, id wire.Digest, h wire.Header, folded, open bool) {
	_, held := b.store.Has(id)
	b.view.Deltas = append(b.view.Deltas, LedgerDelta{
		ID: hex.EncodeToString(id[:]), Fragment: p, Round: h.Round, Base: h.Base, Author: hex.EncodeToString(h.Author[:]),
		Steps: h.Steps, Tokens: h.Tokens, Bytes: h.Size, Held: held, Folded: folded,
	})
	a := b.authors[h.Author]
	if a == nil {
		a = &LedgerAuthor{Author: hex.EncodeToString(h.Author[:]), Self: h.Author == b.self}
		b.authors[h.Author] = a
	}
	if open {
		a.Open++
	}
	if !folded {
		return
	}
	a.Deltas++
	a.Bytes += uint64(h.Size)
}

// count adds what a round folded to the tokens of its authors.
func (b *ledgerBuilder) count(p int, set []outer.Delta) {
	for i, count := range b.genesis.OuterParams().Counted(set) {
		a := b.authors[wire.PeerID(set[i].Author)]
		a.Tokens += b.weight(p) * float64(count)
		a.Beyond += b.weight(p) * float64(set[i].Tokens-count)
	}
}

// weight is the part of the parameters that a fragment has.
func (b *ledgerBuilder) weight(p int) float64 {
	all := 0
	for _, f := range b.plan {
		all += f.Len
	}
	return float64(b.plan[p].Len) / float64(all)
}

// self is the author of the own deltas; zero where there are none.
func (f *folder) self() (wire.PeerID, error) {
	own, err := f.store.Own()
	if err != nil || len(own) == 0 {
		return wire.PeerID{}, err
	}
	return own[0].Header.Header.Author, nil
}

func (b *ledgerBuilder) finish() LedgerView {
	var known float64
	for _, a := range b.authors {
		known += a.Tokens
	}
	for _, a := range b.authors {
		if known > 0 {
			a.Share = a.Tokens / known
		}
		a.Tokens, a.Beyond = math.Round(a.Tokens), math.Round(a.Beyond)
		b.view.Authors = append(b.view.Authors, *a)
	}
	slices.SortFunc(b.view.Authors, func(x, y LedgerAuthor) int {
		return cmp.Or(cmp.Compare(y.Tokens, x.Tokens), cmp.Compare(x.Author, y.Author))
	})
	for p, f := range b.view.Fragments {
		b.view.TokensFolded += b.weight(p) * float64(f.Tokens)
	}
	const slack = 1e-6                                            // of a sum of products, so that a whole number stays one
	b.view.TokensFolded = math.Floor(b.view.TokensFolded + slack) // as nodes count: there are no parts of tokens
	return b.view
}
