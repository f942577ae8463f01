package rounds

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"math/rand/v2"
	"slices"

	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
	"atoll/tensor"
	"atoll/tensor/codec"
	"pgregory.net/rapid"
)

// self is the author of the machine under test; others are Author{1}, Author{2}, ...
var self = outer.Author{200}

// rig is a round machine whose effects are executed for real, folds
// included, on tiny fragments.
type rig struct {
	t        rapid.TB
	p        outer.Params
	plan     outer.Plan
	m        *Machine
	now      Time
	payloads map[outer.ID][]byte
	bases    []map[uint32]*outer.Tip
	hold     bool // folds wait in wanted
	wanted   []WantFold
	drafts   []int
	closed   []outer.Link
	adopts   []outer.Adopt
	folds    int
	seq      uint64
	learner  func(Effect) // unless nil, is told of drafts and adoptions
}

// roundsParams: H 8, publishes at 2, grace 100 to 1000 ms, no pacing by min_round.
func roundsParams(fragments int) outer.Params {
	p := outertest.Plain(1, 1<<40, 0)
	p.Codec = codec.F32
	p.Fragments, p.H, p.HMin = fragments, 8, 2
	p.GraceMinMs, p.GraceMaxMs, p.MinRoundMs = 100, 1000, 0
	return p
}

func newRig(t rapid.TB, p outer.Params) *rig { return newRigOf(t, Config{Params: p}) }

func newRigOf(t rapid.TB, cfg Config) *rig {
	p := cfg.Params
	g := &rig{t: t, p: p, plan: outer.NewPlan(toyViews(), p.Fragments), now: 1000, payloads: map[outer.ID][]byte{}}
	tips := g.genesis()
	cfg.Self, cfg.Learner = self, true
	g.m = New(cfg, tips)
	for _, tip := range tips {
		g.bases = append(g.bases, map[uint32]*outer.Tip{0: tip})
	}
	return g
}

func (g *rig) genesis() []*outer.Tip {
	var tips []*outer.Tip
	for i, f := range g.plan {
		tips = append(tips, outer.Genesis(f, vector(uint64(i), f.Len), g.p))
	}
	return tips
}

// delta makes a valid delta of an author and keeps its payload.
func (g *rig) delta(author outer.Author, fragment int, round uint32) outer.Delta {
	id := sha256.Sum256(append(author[:], binary.LittleEndian.AppendUint32([]byte{byte(fragment)}, round)...))
	payload, err := codec.Encode(g.p.Codec, vector(binary.LittleEndian.Uint64(id[:]), g.plan[fragment].Len))
	if err != nil {
		g.t.Fatal(err)
	}
	g.payloads[id] = payload
	return outer.Delta{
		ID: id, Author: author, Fragment: fragment, Round: round, Base: round - 1, Steps: 24, Tokens: 24 * 512,
		Codec: g.p.Codec, Size: len(payload),
	}
}

// give offers a delta, payload and all.
func (g *rig) give(ds ...outer.Delta) {
	g.t.Helper()
	for _, d := range ds {
		g.want(g.offer(d), nil)
		g.held(d)
	}
}

func (g *rig) offer(d outer.Delta) error {
	err := g.m.Offer(g.now, d, false)
	g.drain()
	return err
}

func (g *rig) held(d outer.Delta) {
	g.m.Payload(g.now, d.Fragment, d.Round, d.ID, PayloadHeld)
	g.drain()
}

func (g *rig) want(got, want error) {
	g.t.Helper()
	if got != want {
		g.t.Fatalf("got error %v, want %v", got, want)
	}
}

// after lets ms pass.
func (g *rig) after(ms Time) {
	g.now += ms
	g.m.Tick(g.now)
	g.drain()
}

// step takes n own steps of 512 tokens, 10 ms each.
func (g *rig) step(n int) {
	for range n {
		g.now += 10
		g.m.Stepped(g.now, 512)
		g.drain()
	}
}

// live names the live learners beside the machine's own.
func (g *rig) live(authors ...byte) {
	live := []outer.Author{self}
	for _, a := range authors {
		live = append(live, outer.Author{a})
	}
	g.m.SetLive(live)
	g.measured(authors...)
}

// unknown names them, as live does, while nothing is known of what their deltas take.
func (g *rig) unknown(authors ...byte) {
	g.live(authors...)
	g.m.late.byAuthor = nil
	g.m.late.cache = latest{}
}

// measured has the machine know authors whose deltas come at once.
func (g *rig) measured(authors ...byte) {
	for _, a := range authors {
		g.m.late.observe(outer.Author{a}, 1)
	}
}

// errDisk is why a draft or a fold could not be stored.
var errDisk = errors.New("the disk is full")

func (g *rig) mayPublish(fragment int) bool {
	_, may := g.m.RoundOfDraft(fragment)
	return may
}

// publish makes what is pending the draft that was asked for.
func (g *rig) publish(fragment int) outer.Delta {
	g.t.Helper()
	i := slices.Index(g.drafts, fragment)
	if i < 0 {
		g.t.Fatalf("no draft of fragment %d was asked for", fragment)
	}
	g.drafts = slices.Delete(g.drafts, i, i+1)
	steps, tokens := g.m.Fragment(fragment).Pending()
	round, _ := g.m.RoundOfDraft(fragment)
	d := g.delta(self, fragment, round)
	d.Steps, d.Tokens = steps, tokens
	g.seq++
	g.m.SettleDraft(g.now, d.Fragment, OwnDelta{Seq: g.seq, Delta: d}, nil)
	g.drain()
	return d
}

// drain executes effects.
func (g *rig) drain() {
	for effects := g.m.Effects(); len(effects) > 0; effects = g.m.Effects() {
		for _, e := range effects {
			g.execute(e)
		}
	}
}

func (g *rig) execute(e Effect) {
	if g.learner != nil {
		g.learner(e)
	}
	switch e := e.(type) {
	case WantDraft:
		g.drafts = append(g.drafts, e.Fragment)
	case Closed:
		g.closed = append(g.closed, e.Link)
	case Adopt:
		g.adopts = append(g.adopts, e.Adopt)
	case DropBase:
		if g.bases[e.Fragment][e.Round] == nil {
			g.t.Fatalf("base %d dropped, which was not kept", e.Round)
		}
		delete(g.bases[e.Fragment], e.Round)
	case WantFold:
		g.wanted = append(g.wanted, e)
		if !g.hold {
			g.fold()
		}
	}
}

// fold executes the oldest fold that was asked for.
func (g *rig) fold() {
	w := g.wanted[0]
	g.wanted = g.wanted[1:]
	g.folds++
	tip := g.bases[w.Fragment][w.Start]
	if tip == nil {
		g.t.Fatalf("fold from base %d, which was dropped; kept are %v", w.Start, g.m.Fragment(w.Fragment).Bases())
	}
	var states []outer.Digest
	for i, set := range w.Sets {
		round := w.Start + uint32(i) + 1
		var contributions []outer.Contribution
		for _, d := range set {
			contributions = append(contributions, outer.Contribution{Delta: d, Payload: g.payloads[d.ID]})
		}
		next, _, err := outer.Fold(g.p, g.plan[w.Fragment], tip, round, contributions)
		if err != nil {
			g.t.Fatal(err)
		}
		tip = next
		states = append(states, tip.State)
		if i == len(w.Sets)-1 || slices.Contains(w.Keep, round) {
			g.bases[w.Fragment][round] = tip
		}
	}
	if err := g.m.TakeFold(g.now, FoldResult{Fragment: w.Fragment, Job: w.Job, Tip: tip, States: states}); err != nil {
		g.t.Fatal(err)
	}
	g.drain()
}

// close closes n rounds of fragment 0, each with one delta of Author{1}.
func (g *rig) close(n int) {
	g.t.Helper()
	for range n {
		before := g.m.Fragment(0).Closed()
		g.give(g.delta(outer.Author{1}, 0, before+1))
		g.after(g.p.GraceMaxMs)
		g.expectClosed(before + 1)
	}
}

func (g *rig) expectClosed(want uint32) {
	g.t.Helper()
	if got := g.m.Fragment(0).Closed(); got != want {
		g.t.Fatalf("closed %d, want %d", got, want)
	}
}

func (g *rig) expectDrafts(want ...int) {
	g.t.Helper()
	if !slices.Equal(g.drafts, want) {
		g.t.Fatalf("drafts asked for: %v, want %v", g.drafts, want)
	}
}

// lastAdopt is the newest adoption of fragment 0.
func (g *rig) lastAdopt() outer.Adopt {
	g.t.Helper()
	if len(g.adopts) == 0 {
		g.t.Fatal("nothing was adopted")
	}
	return g.adopts[len(g.adopts)-1]
}

// toyViews is a model small enough for thousands of folds: tensors shorter and longer
// than the lanes of a reduction, and an embedding.
func toyViews() []tensor.View {
	return tensor.NewSlab([]tensor.Spec{
		{Name: "model.embed_tokens.weight", Shape: []int{8, 4}},
		{Name: "a.weight", Shape: []int{20, 15}},
		{Name: "a.norm", Shape: []int{5}},
		{Name: "b.weight", Shape: []int{16}},
	}).Views
}

// vector returns n values of about unit size, a function of the seed.
func vector(seed uint64, n int) []float32 {
	rng := rand.New(rand.NewPCG(seed, 1))
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(rng.NormFloat64())
	}
	return v
}
