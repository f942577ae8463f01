package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/tensor"
)

// ErrNoNodeFolder says that a folder is not one that a node keeps its state in.
var ErrNoNodeFolder = errors.New("not a node's folder")

// folder is a node's folder as it was when it was opened.
type folder struct {
	dir     string
	genesis genesis.Genesis
	run     wire.RunID
	plan    outer.Plan
	store   *store.Store
	members *member.Table // nil in a run that is open to everybody
}

// HasNode reports whether a folder is one that a node keeps its state in.
func HasNode(dir string) bool {
	_, err := FolderGenesis(dir)
	return !errors.Is(err, ErrNoNodeFolder)
}

// FolderGenesis returns the genesis kept in a node's folder, whether or not the
// node runs. The error is ErrNoNodeFolder if there is none.
func FolderGenesis(dir string) (genesis.Genesis, error) {
	raw, err := store.LoadGenesis(dir)
	if errors.Is(err, store.ErrNotFound) {
		return genesis.Genesis{}, fmt.Errorf("%s: %w: there is no genesis in it; pass the folder that `atoll join` uses, or DIR/node0 of a testnet", dir, ErrNoNodeFolder)
	}
	if err != nil {
		return genesis.Genesis{}, err
	}
	g, err := genesis.Decode(raw)
	if err != nil {
		return genesis.Genesis{}, fmt.Errorf("the genesis file in %s cannot be read (%w): if it is damaged, %s", dir, err, store.GenesisRemedy)
	}
	return g, nil
}

// openFolder opens a node's folder for reading, whether or not a node runs on it.
func openFolder(dir string) (*folder, error) {
	g, err := FolderGenesis(dir)
	if err != nil {
		return nil, err
	}
	s, err := store.OpenReadOnly(dir)
	if errors.Is(err, store.ErrLocked) {
		s, err = openRunning(dir, err)
	}
	if err != nil {
		return nil, err
	}
	f := &folder{dir: dir, genesis: g, run: g.RunID(), plan: g.Plan(), store: s}
	if s.Run() != f.run {
		return nil, errors.Join(fmt.Errorf("%s: its index belongs to run %v, its genesis to run %v; restore the genesis file from a peer or a backup", dir, s.Run(), f.run), s.Close())
	}
	if f.members, err = membersIn(s, g); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return f, nil
}

// lentWithin is how long a running node may take to lend its index: it copies some of the disk, on a machine that trains.
const lentWithin = 30 * time.Second

// openRunning opens the folder of a running node by an index that the node lends. Where none answers it is locked by another process.
func openRunning(dir string, locked error) (*store.Store, error) {
	index, done, err := lentIndex(dir, lentWithin)
	if errors.Is(err, status.ErrNotRunning) {
		return nil, locked
	}
	if err != nil {
		return nil, err
	}
	return store.OpenLent(dir, index, done)
}

// lentIndex is the index of a running node, lent until done. A node that does not lend it within a time is busy or hangs.
func lentIndex(dir string, within time.Duration) (index []byte, done func(), err error) {
	client, err := status.Dial(dir)
	if err != nil {
		return nil, nil, err
	}
	ctx, cancel := context.WithCancel(context.Background()) // the loan ends with it
	late := time.AfterFunc(within, cancel)
	index, back, err := client.Index(ctx)
	if !late.Stop() {
		err = fmt.Errorf("the node on %s runs, and does not give a copy of its index within %v: ask again when it is less busy, or end it with `atoll leave %s`", dir, within, status.ShellWord(dir))
	}
	if err != nil {
		cancel()
		return nil, nil, err
	}
	return index, func() { back(); cancel() }, nil
}

func (f *folder) close() error { return f.store.Close() }

// LoadModel returns the newest global parameters of a node's folder: from the node that
// runs on it, or else from disk. The tokens are those that it has folded.
func LoadModel(ctx context.Context, dir string) (genesis.Genesis, *tensor.Slab, uint64, error) {
	g, err := FolderGenesis(dir)
	if err != nil {
		return genesis.Genesis{}, nil, 0, err
	}
	tips, err := runningTips(ctx, dir, g)
	if errors.Is(err, status.ErrNotRunning) {
		tips, err = storedTips(ctx, dir)
	}
	if err != nil {
		return genesis.Genesis{}, nil, 0, fmt.Errorf("load the model of %s: %w", dir, err)
	}
	return g, g.Global(tips), foldedTokens(g.Plan(), tips), nil
}

func runningTips(ctx context.Context, dir string, g genesis.Genesis) ([]*outer.Tip, error) {
	client, err := status.Dial(dir)
	if err != nil {
		return nil, err
	}
	b, err := client.Tips(ctx)
	if err != nil {
		return nil, err
	}
	return g.ReadTips(b)
}

// storedTips are the newest tips on disk: of each fragment the newest base that
// its record bears out, and the rounds recorded since.
func storedTips(ctx context.Context, dir string) (tips []*outer.Tip, err error) {
	f, err := openFolder(dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.close()) }()
	tips = make([]*outer.Tip, len(f.plan))
	for p := range tips {
		if tips[p], err = f.newestBase(p); err != nil {
			return nil, err
		}
	}
	if slices.Contains(tips, nil) {
		first, err := f.genesis.TipsIn(f.dir)
		if err != nil {
			return nil, err
		}
		for p, tip := range tips {
			if tip == nil {
				tips[p] = first[p]
			}
		}
	}
	visit, err := f.reporting(ctx, tips, nil)
	if err != nil {
		return nil, err
	}
	return f.replay(tips, visit)
}

// newestBase is the newest kept tip of a fragment that fits the record of its
// round; nil if there is none.
func (f *folder) newestBase(p int) (*outer.Tip, error) {
	rounds, err := f.store.Bases(p)
	if err != nil {
		return nil, err
	}
	slices.Reverse(rounds)
	return f.firstBase(p, rounds)
}

// firstBase is the tip of the first of some kept rounds that fits its record.
// A base that does not is of a fold that a crash kept from being recorded: the
// round is folded again from another base.
func (f *folder) firstBase(p int, rounds []uint32) (*outer.Tip, error) {
	for _, round := range rounds {
		blob, err := f.store.Base(p, round)
		if err != nil {
			return nil, err
		}
		tip, err := outer.DecodeTip(blob, f.plan[p], f.genesis.OuterParams())
		if err != nil {
			return nil, fmt.Errorf("base of fragment %d round %d: %w", p, round, err)
		}
		record, err := f.store.Round(p, round)
		if err == nil && checkRecord(record, tip) == nil {
			return tip, nil
		}
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return nil, err
		}
	}
	return nil, nil
}

// checkRecord compares what was recorded of a round with a tip after it.
func checkRecord(r store.Round, tip *outer.Tip) error {
	if outer.Digest(r.Chain) != tip.Chain {
		return fmt.Errorf("chain digest is %v by this replay, recorded is %v", wire.Digest(tip.Chain), r.Chain)
	}
	if !r.State.IsZero() && outer.Digest(r.State) != tip.State {
		return fmt.Errorf("state digest is %v by this replay, recorded is %v", wire.Digest(tip.State), r.State)
	}
	return nil
}

// replay folds the recorded rounds on top of tips.
func (f *folder) replay(tips []*outer.Tip, visit func(p int, tip *outer.Tip) error) ([]*outer.Tip, error) {
	var broken error
	end, err := outer.Replay(f.genesis.OuterParams(), f.plan, tips, func(p int, round uint32) ([]outer.Contribution, bool) {
		if broken != nil {
			return nil, false
		}
		set, ok, err := f.round(p, round)
		broken = err
		return set, ok && err == nil
	}, visit)
	if broken != nil {
		return nil, broken
	}
	return end, err
}

// round is the recorded set of a round; false after the last. Each delta in it
// is what its author signed: id, signature and payload are checked.
func (f *folder) round(p int, round uint32) ([]outer.Contribution, bool, error) {
	record, err := f.store.Round(p, round)
	if errors.Is(err, store.ErrNotFound) {
		return nil, false, nil
	}
	if err != nil {
		return nil, false, err
	}
	set := make([]outer.Contribution, 0, len(record.Folded))
	for _, id := range record.Folded {
		c, err := f.contribution(id)
		if err != nil {
			return nil, false, fmt.Errorf("fragment %d round %d: %w", p, round, err)
		}
		set = append(set, c)
	}
	return set, true, nil
}

func (f *folder) contribution(id wire.Digest) (outer.Contribution, error) {
	h, err := f.store.Header(id)
	if err != nil {
		return outer.Contribution{}, err
	}
	if got := h.Header.ID(f.run); got != id {
		return outer.Contribution{}, fmt.Errorf("delta %v by %v does not fit: its header hashes to %v", id, h.Header.Author, got)
	}
	if err := h.Verify(f.run); err != nil {
		return outer.Contribution{}, fmt.Errorf("delta %v by %v does not fit: %w", id, h.Header.Author, err)
	}
	payload, err := f.store.Payload(id)
	if err != nil {
		return outer.Contribution{}, err
	}
	if err := f.members.CheckHeader(h.Header); err != nil {
		return outer.Contribution{}, fmt.Errorf("delta %v by %v: %w", id, h.Header.Author, err)
	}
	return outer.Contribution{Delta: core.DeltaOf(id, h.Header, f.members), Payload: payload}, nil
}

// foldedTokens is the tokens folded over all fragments, each weighted by its
// parameters, as Machine.FoldedTokens has it.
func foldedTokens(plan outer.Plan, tips []*outer.Tip) uint64 {
	return uint64(plan.Mean(func(p int) uint64 { return tips[p].Tokens }))
}
