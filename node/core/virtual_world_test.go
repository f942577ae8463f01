package core_test

import (
	"container/heap"
	"crypto/ed25519"
	"math/rand/v2"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/tensor"
)

// world is a deterministic network of whole nodes in virtual time: real
// machines and learners, a stand-in for the trainer, maps for disks, and an
// event queue for clock and wires. The same seed gives the same run.
type world struct {
	t       testing.TB
	seed    uint64
	rng     *rand.Rand
	now     core.Time
	seq     int
	queue   events
	nodes   []*node
	cfg     worldConfig
	run     wire.RunID
	plan    outer.Plan
	opened  map[wire.Digest]wire.Message // each message is verified once
	signed  map[slot]wire.Digest         // every header ever published
	ledger  map[wire.Digest]wire.Header  // likewise
	faulty  map[wire.PeerID]bool         // whom honest nodes may blame
	onReady func(*node)                  // when a node first may train
	slack   int                          // steps beyond the budget that the schedule explains
	damages bool                         // memory is corrupted: states may differ
}

// worldConfig is what one world is made of; zero fields get a default.
type worldConfig struct {
	params    outer.Params
	stepMs    core.Time // of a node of speed 1
	latencyMs core.Time // one way, plus up to half as much jitter
	loss      float64   // of a hop of a gossip message
	duplicate float64   // of a hop, that arrives twice
	bytesMs   float64   // of a stream, bytes per ms
}

// slot is what an author may sign once.
type slot struct {
	author   wire.PeerID
	fragment uint16
	round    uint32
}

// start is when each world begins: genesis.created.
const start core.Time = 1_000_000

// Times of a node beside the network.
const (
	tickMs  = 20
	diskMs  = 2
	foldMs  = 5
	quietMs = 1500
)

func testParams(budget uint64) outer.Params {
	p := outer.Defaults(3, budget, start)
	p.H, p.HMin = 8, 2
	p.GraceMinMs, p.GraceMaxMs = 50, 4000
	return p
}

func newWorld(t testing.TB, seed uint64, cfg worldConfig) *world {
	if cfg.stepMs == 0 {
		cfg.stepMs = 100
	}
	if cfg.latencyMs == 0 {
		cfg.latencyMs = 10
	}
	if cfg.bytesMs == 0 {
		cfg.bytesMs = 1000
	}
	return &world{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 1)), now: start, cfg: cfg, run: wire.RunID{7},
		plan:   outer.NewPlan(tensor.NewSlab(specs).Views, cfg.params.Fragments),
		opened: map[wire.Digest]wire.Message{}, signed: map[slot]wire.Digest{},
		ledger: map[wire.Digest]wire.Header{}, onReady: func(*node) {}, faulty: map[wire.PeerID]bool{},
	}
}

// fatalf fails with what is needed to run the same world again.
func (w *world) fatalf(format string, args ...any) {
	w.t.Helper()
	w.t.Fatalf("seed %d at %d ms: "+format, append([]any{w.seed, w.now - start}, args...)...)
}

type event struct {
	at  core.Time
	seq int
	do  func()
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].seq < e[j].seq
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	old := *e
	x := old[len(old)-1]
	*e = old[:len(old)-1]
	return x
}

func (w *world) after(d core.Time, do func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + d, w.seq, do})
}

// runFor lets time pass.
func (w *world) runFor(ms core.Time) {
	end := w.now + ms
	for len(w.queue) > 0 && w.queue[0].at <= end {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
	}
	w.now = end
}

// runUntil runs until cond holds, and fails if it does not within limit ms.
func (w *world) runUntil(what string, limit core.Time, cond func() bool) {
	w.t.Helper()
	for end := w.now + limit; !cond(); {
		if w.now >= end {
			w.fatalf("not within %d ms: %s\n%s", limit, what, w)
		}
		w.runFor(50)
	}
}

func (w *world) delay() core.Time {
	return w.cfg.latencyMs + w.rng.Int64N(w.cfg.latencyMs/2+1)
}

func testKey(i int) ed25519.PrivateKey {
	var seed [32]byte
	seed[0], seed[1] = byte(i), byte(i>>8)
	return ed25519.NewKeyFromSeed(seed[:])
}

// genesis are the tips that every node can make by itself.
func (w *world) genesis() []*outer.Tip {
	slab := initial()
	tips := make([]*outer.Tip, len(w.plan))
	for p, f := range w.plan {
		anchor := make([]float32, f.Len)
		f.Gather(slab, anchor)
		tips[p] = outer.Genesis(f, anchor, w.cfg.params)
	}
	return tips
}

// found adds n learners of one speed that begin the run, all connected.
func (w *world) found(n int) {
	for range n {
		w.add(nodeConfig{alone: true})
	}
}

// add starts a node that is connected to all that are up.
func (w *world) add(cfg nodeConfig) *node {
	n := newNode(w, len(w.nodes), cfg)
	w.nodes = append(w.nodes, n)
	n.boot(nil)
	w.connectAll()
	return n
}

func (w *world) connectAll() {
	for i := range w.nodes {
		for j := range i {
			w.connect(w.nodes[i], w.nodes[j])
		}
	}
}

func (w *world) connect(a, b *node) {
	if a == b || !a.up || !b.up || a.side != b.side || a.links[b] {
		return
	}
	a.links[b], b.links[a] = true, true
	a.peerUp(b)
	b.peerUp(a)
}

func (w *world) disconnect(a, b *node) {
	if !a.links[b] {
		return
	}
	delete(a.links, b)
	delete(b.links, a)
	a.peerDown(b)
	b.peerDown(a)
}

// partition puts the given nodes on a side of their own; nobody heals all.
func (w *world) partition(side ...*node) {
	for _, n := range w.nodes {
		n.side = 0
	}
	for _, n := range side {
		n.side = 1
	}
	for _, a := range w.nodes {
		for _, b := range w.nodes {
			if a.side != b.side {
				w.disconnect(a, b)
			}
		}
	}
	w.connectAll()
}

// node finds a node by its name.
func (w *world) node(id wire.PeerID) *node {
	for _, n := range w.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

// alive are the nodes that are up.
func (w *world) alive() []*node {
	var up []*node
	for _, n := range w.nodes {
		if n.up {
			up = append(up, n)
		}
	}
	return up
}

// open verifies a gossip message, once for all receivers.
func (w *world) open(b []byte) wire.Message {
	key := wire.Sum(b)
	if m, ok := w.opened[key]; ok {
		return m
	}
	m, err := wire.Open(w.run, b)
	if err != nil {
		w.fatalf("an honest node published a bad message: %v", err)
	}
	w.opened[key] = m
	return m
}

// witness fails if an author signs a round twice.
func (w *world) witness(sh wire.SignedHeader) {
	k := slot{sh.Header.Author, sh.Header.Fragment, sh.Header.Round}
	id := sh.Header.ID(w.run)
	if old, ok := w.signed[k]; ok && old != id {
		w.fatalf("node %d signed round %d of fragment %d twice", w.node(k.author).index, k.round, k.fragment)
	}
	w.signed[k], w.ledger[id] = id, sh.Header
}
