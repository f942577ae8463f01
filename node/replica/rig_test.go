package replica_test

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip"
	"atoll/gossip/limit"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
	"atoll/optimizer/rounds"
	"atoll/tensor"
	"atoll/tensor/codec"
	"atoll/testnet/sim/memory"
)

// rig is a replica over a disk in memory. Its work waits until the test runs it.
type rig struct {
	*replica.Replica
	t        rapid.TB
	disk     *memory.Ledger
	limiter  limit.Told
	errs     map[string]error // what methods of the disk say, see faulty
	archived [][]uint32       // limits of Ledger.Archive
	params   outer.Params
	plan     outer.Plan
	policy   replica.Policy
	keys     []ed25519.PrivateKey // the first one is the replica's, the others contribute to each round
	tips     []*outer.Tip         // to which the records on disk lead
	was      replica.Restored

	learner    replica.Learner
	folds      func(prev *outer.Tip) *outer.Tip // in place of outer.Fold
	beforeFold func()
	now        core.Time
	ms         int64
	elapsed    func()   // is called when somebody asks for the time
	gone       bool     // streams have ended
	source     *rig     // answers calls
	common     []uint32 // what earlier processes had in common with others
	joins      bool     // takes a snapshot before it trains
	cut        bool     // folds are to end
	scratch    replica.Scratch

	work    map[string][]func()
	replies map[uint64]replica.Reply
	sent    []any
	seen    []any
	checked []error
	failed  error
}

var run = wire.RunID{7}

// newRig has an empty disk, and a policy of real nodes.
func newRig(t rapid.TB) *rig {
	g := &rig{
		t: t, errs: map[string]error{}, params: outertest.Plain(2, 1<<40, 0), policy: replica.NodePolicy(),
		now: 1_000_000, ms: 1000, work: map[string][]func(){}, replies: map[uint64]replica.Reply{},
	}
	g.params.Codec, g.params.MinRoundMs = codec.F32, 0
	g.plan = outer.NewPlan(tensor.NewSlab([]tensor.Spec{{Name: "a", Shape: []int{2, 3}}, {Name: "b", Shape: []int{4}}}).Views, 2)
	for i := range byte(3) {
		g.keys = append(g.keys, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{i + 1}, ed25519.SeedSize)))
	}
	g.disk, g.tips = memory.New(len(g.plan)), g.genesis()
	return g
}

func (g *rig) genesis() (tips []*outer.Tip) { return g.plan.Genesis(make([]float32, 10), g.params) }

func (g *rig) check(err error) {
	g.t.Helper()
	if err != nil {
		g.t.Fatal(err)
	}
}

// want fails where something is not as it should be.
func want[T comparable](t testing.TB, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s: got %v, want %v", what, got, want)
	}
}

func wantRounds(t testing.TB, what string, got []uint32, want ...uint32) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: got rounds %v, want %v", what, got, want)
	}
}

func wantError(t testing.TB, what string, got, want error) {
	t.Helper()
	if !errors.Is(got, want) {
		t.Errorf("%s: got error %v, want %v", what, got, want)
	}
}

// signed is a delta of some author and its payload.
func (g *rig) signed(p int, round uint32, key ed25519.PrivateKey) (wire.Digest, wire.SignedHeader, []byte) {
	g.t.Helper()
	values := make([]float32, g.plan[p].Len)
	for k := range values {
		values[k] = float32((k+int(round)+int(key[0]))%7) * 1e-3
	}
	payload, err := codec.Encode(g.params.Codec, values)
	g.check(err)
	h := wire.SignHeader(key, run, wire.Header{
		Fragment: uint16(p), Round: round, Base: round - 1, Steps: 8, Tokens: 100,
		Codec: uint8(g.params.Codec), Size: uint32(len(payload)), Payload: wire.Sum(payload),
	})
	return h.Header.ID(run), h, payload
}

// set puts the deltas of a round on the disk, one of each contributor.
func (g *rig) set(p int, round uint32) (set []outer.Delta) {
	g.t.Helper()
	for _, key := range g.keys[1:] {
		id, h, payload := g.signed(p, round, key)
		g.check(g.disk.PutDelta(id, &h, payload))
		set = append(set, core.DeltaOf(id, h.Header, nil))
	}
	return set
}

// write puts rounds of all fragments on the disk, and bases of the last one if keep.
func (g *rig) write(rounds int, keep bool) *rig {
	g.t.Helper()
	for p := range g.plan {
		for range rounds {
			var set []outer.Contribution
			for _, d := range g.set(p, g.tips[p].Round+1) {
				payload, err := g.disk.Payload(wire.Digest(d.ID))
				g.check(err)
				set = append(set, outer.Contribution{Delta: d, Payload: payload})
			}
			tip, out, err := outer.Fold(g.params, g.plan[p], g.tips[p], g.tips[p].Round+1, set)
			g.check(err)
			g.check(g.disk.PutRounds(p, []outer.Link{core.LinkOf(tip, out.Folded)}))
			g.tips[p] = tip
		}
		if keep {
			g.check(g.disk.PutBase(p, g.tips[p]))
		}
	}
	return g
}

// start makes the replica over the disk. It takes the folds that it needs.
func (g *rig) start() *rig {
	g.t.Helper()
	g.check(g.tryStart())
	return g.finish()
}

// tryStart makes the replica and leaves its work for later.
func (g *rig) tryStart() (err error) {
	cfg := core.Config{
		Params: g.params, Plan: g.plan, Key: g.keys[0], Run: run, Learner: g.learner != nil, Alone: !g.joins, AloneMs: 1 << 40,
		Gossip: gossip.Config{
			Self: wire.PeerIDOf(g.keys[0]), Key: g.keys[0], Run: run,
			Common: g.common, Trusted: []wire.PeerID{wire.PeerIDOf(g.keys[1])},
			WindowAccept: g.params.WindowAccept, WindowUnion: g.params.WindowUnion, Limiter: g.limiter,
		},
	}
	g.Replica, g.was, err = replica.New(replica.Config{
		Machine: cfg, Policy: g.policy, Genesis: replica.Genesis{Encoded: []byte("genesis"), Tips: g.genesis},
		Exec: g, Net: g, Watcher: g, Arithmetic: arithmetic{g}, Ledger: faulty{g.disk, g}, Scratch: g.scratch,
	})
	if err != nil {
		return err
	}
	return g.Start(g.now, cfg, g.was, g.learner)
}

// finish runs all work until there is none.
func (g *rig) finish() *rig {
	for again := true; again; {
		again = false
		g.Execute()
		for _, kind := range []string{"disk", "learn", "fold", "install", "serve", "loop"} {
			again = g.run(kind) > 0 || again
		}
	}
	return g
}

// run runs the work of one kind that waits now.
func (g *rig) run(kind string) int {
	work := g.work[kind]
	g.work[kind] = nil
	for _, do := range work {
		do()
	}
	return len(work)
}

// tick lets time pass.
func (g *rig) tick(ms int64) *rig {
	g.now += ms
	g.ms += ms
	g.Machine().Tick(g.now)
	return g.finish()
}

// do executes effects, and what comes of them.
func (g *rig) do(effects ...any) *rig {
	for _, e := range effects {
		g.Do(e)
	}
	return g.finish()
}

// closes closes more rounds of a fragment, one by one, with nothing in them.
func (g *rig) closes(p, n int) *rig {
	for range n {
		g.Machine().Rounds().CloseTo(g.now, p, g.Machine().Rounds().Fragment(p).Closed()+1)
		g.tick(1)
	}
	return g
}

// late brings a delta for a closed round.
func (g *rig) late(p int, round uint32) *rig {
	g.t.Helper()
	id, h, payload := g.signed(p, round, g.keys[1])
	g.check(g.disk.PutDelta(id, &h, payload))
	g.check(g.Machine().Rounds().Offer(g.now, core.DeltaOf(id, h.Header, nil), true))
	g.Machine().Rounds().Payload(g.now, p, round, outer.ID(id), rounds.PayloadHeld)
	return g
}

// job names folds that the machine did not ask for.
const job = 1 << 40

// base reads a kept base, by a fold of no rounds.
func (g *rig) base(p int, round uint32) (*outer.Tip, error) {
	return g.fold(rounds.WantFold{Fragment: p, Job: job, Start: round})
}

// fold is what a fold comes to.
func (g *rig) fold(w rounds.WantFold) (*outer.Tip, error) {
	g.do(w)
	for _, e := range slices.Backward(g.seen) {
		switch e := e.(type) {
		case replica.TipFolded:
			if e.Want.Job == w.Job {
				return e.Tip, nil
			}
		case replica.FoldFailed:
			if e.Want.Job == w.Job {
				return nil, e.Err
			}
		}
	}
	return nil, errors.New("the fold came to nothing")
}

// onDisk are the rounds of a fragment's bases on disk.
func (g *rig) onDisk(p int) []uint32 {
	kept, _ := g.disk.Bases(p) // which has no errors
	return kept
}

func (g *rig) inMemory(p int) []uint32 {
	held, _ := g.HeldBases(p)
	return slices.Sorted(maps.Keys(held))
}

func (g *rig) records(p int) []uint32 { return slices.Sorted(maps.Keys(g.disk.Records(p))) }

// saw returns the events of a type since the last call for them.
func saw[E any](g *rig) (events []E) {
	g.seen = slices.DeleteFunc(g.seen, func(e any) bool {
		event, is := e.(E)
		if is {
			events = append(events, event)
		}
		return is
	})
	return events
}
