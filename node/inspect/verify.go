package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
)

// VerifyResult is what a replay of a ledger came to.
type VerifyResult struct {
	Run         wire.RunID  `json:"run"`
	Fragments   int         `json:"fragments"`
	Rounds      uint64      `json:"rounds"`        // replayed, all fragments
	Deltas      uint64      `json:"deltas"`        // folded in them
	Tokens      uint64      `json:"tokens_folded"` // by the last tips, fragment-weighted
	FromGenesis bool        `json:"from_genesis"`  // every fragment was replayed from its first round
	From        []uint32    `json:"from"`          // per fragment: round of the tip that the replay began from, 0 = genesis
	Chain       wire.Digest `json:"chain_digest"`  // over the last tips of all fragments, as status shows it
	State       wire.Digest `json:"state_digest"`
	Missing     []Missing   `json:"missing,omitempty"`
}

// Missing are rounds of a fragment that have no record in a folder: they are of before the node joined, or their segment was
// set aside. Nothing can be said of them.
type Missing struct {
	Fragment int    `json:"fragment"`
	From     uint32 `json:"from"` // the first round, and
	To       uint32 `json:"to"`   // the last one
}

// Verify replays the ledger of a folder, as it is now where a node runs. It begins at
// genesis, or at the oldest kept base where payloads of older rounds are gone. It
// compares the digests of every recorded round and of the newest kept tip, and checks the certificates. The
// error names the delta, the round or the certificate that does not fit.
func Verify(ctx context.Context, dir string) (result VerifyResult, err error) {
	f, err := openFolder(dir)
	if err != nil {
		return VerifyResult{}, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	v := verification{folder: f, ctx: ctx, newest: make([]*outer.Tip, len(f.plan))}
	start, err := f.genesis.TipsIn(f.dir)
	if err != nil {
		return VerifyResult{}, fmt.Errorf("verify %s: %w", dir, err)
	}
	for p := range start {
		if start[p], err = v.start(p, start[p]); err != nil {
			return VerifyResult{}, fmt.Errorf("verify %s: %w", dir, err)
		}
	}
	visit, err := f.reporting(ctx, start, v.visit)
	if err != nil {
		return VerifyResult{}, fmt.Errorf("verify %s: %w", dir, err)
	}
	tips, err := f.replay(start, visit)
	if err == nil {
		err = v.checkEnds(tips)
	}
	if err != nil {
		return VerifyResult{}, fmt.Errorf("verify %s: %w", dir, err)
	}
	if result = v.result(start, tips); !result.FromGenesis {
		if result.Missing, err = v.missing(); err != nil {
			return VerifyResult{}, fmt.Errorf("verify %s: %w", dir, err)
		}
	}
	return result, nil
}

// verification is a replay under way.
type verification struct {
	*folder
	ctx    context.Context
	newest []*outer.Tip // per fragment: the newest kept tip, to be compared
	rounds uint64
	deltas uint64
}

// start is the tip that the replay of a fragment begins from.
func (v *verification) start(p int, genesis *outer.Tip) (*outer.Tip, error) {
	newest, err := v.newestBase(p)
	if err != nil {
		return nil, err
	}
	v.newest[p] = newest
	gap, err := v.gap(p)
	if err != nil || gap == 0 {
		return genesis, err
	}
	rounds, err := v.store.Bases(p)
	if err != nil {
		return nil, err
	}
	rounds = slices.DeleteFunc(rounds, func(r uint32) bool { return r < gap })
	base, err := v.firstBase(p, rounds)
	if err == nil && base == nil {
		err = fmt.Errorf("fragment %d: round %d is not held whole and no base after it is kept; let the node run once more so that it fetches what it lacks", p, gap)
	}
	return base, err
}

// gap is the newest round up to the last recorded or kept one that cannot be
// replayed, because its record or a payload is not held; 0 = none.
func (v *verification) gap(p int) (uint32, error) {
	last, err := v.store.LastRound(p)
	if err != nil {
		return 0, err
	}
	if tip := v.newest[p]; tip != nil && tip.Round > last {
		return tip.Round, nil // of a snapshot, without its history
	}
	var gap, before uint32
	err = v.eachRecord(p, func(round uint32, held bool) {
		if round != before+1 {
			gap = round - 1
		}
		if !held {
			gap = round
		}
		before = round
	})
	return gap, err
}

// missing are the rounds up to the last recorded or kept one that are not recorded.
func (v *verification) missing() (all []Missing, err error) {
	for p, newest := range v.newest {
		var before uint32
		skip := func(next uint32) {
			if next > before+1 {
				all = append(all, Missing{p, before + 1, next - 1})
			}
			before = max(before, next)
		}
		err = errors.Join(err, v.eachRecord(p, func(round uint32, _ bool) { skip(round) }))
		if newest != nil {
			skip(newest.Round)
		}
	}
	return all, err
}

// eachRecord tells for each recorded round whether all its payloads are held.
func (v *verification) eachRecord(p int, f func(round uint32, held bool)) error {
	return v.store.Rounds(p, 1, store.MaxRound, func(round uint32, r store.Round) error {
		held := true
		for _, id := range r.Folded {
			_, payload := v.store.Has(id)
			held = held && payload
		}
		f(round, held)
		return nil
	})
}

// visit compares a tip of the replay with what was recorded.
func (v *verification) visit(p int, tip *outer.Tip) error {
	if err := v.ctx.Err(); err != nil {
		return err
	}
	record, err := v.store.Round(p, tip.Round)
	if err == nil {
		err = checkRecord(record, tip)
	}
	if err != nil {
		return err
	}
	v.rounds++
	v.deltas += uint64(len(record.Folded))
	if kept := v.newest[p]; kept != nil && kept.Round == tip.Round && kept.State != tip.State {
		return fmt.Errorf("state digest is %v by this replay, the kept tip has %v", wire.Digest(tip.State), wire.Digest(kept.State))
	}
	return nil
}

// checkEnds makes sure that each replay reached the newest kept tip.
func (v *verification) checkEnds(tips []*outer.Tip) error {
	for p, tip := range tips {
		if kept := v.newest[p]; kept != nil && kept.Round > tip.Round {
			return fmt.Errorf("fragment %d: the record ends with round %d, the kept tip is of round %d", p, tip.Round, kept.Round)
		}
	}
	return nil
}

func (v *verification) result(start, tips []*outer.Tip) VerifyResult {
	r := VerifyResult{
		Run: v.run, Fragments: len(v.plan), Rounds: v.rounds, Deltas: v.deltas,
		Tokens: foldedTokens(v.plan, tips), FromGenesis: true,
	}
	for _, tip := range start {
		r.From = append(r.From, tip.Round)
		r.FromGenesis = r.FromGenesis && tip.Round == 0
	}
	r.Chain, r.State = core.Digests(tips)
	return r
}
