package gossip

import (
	"container/heap"
	"crypto/ed25519"
	"math/rand/v2"
	"testing"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// world is a deterministic network of cores in virtual time.
type world struct {
	t      *testing.T
	rng    *rand.Rand
	now    Time
	seq    int
	queue  events
	nodes  []*node
	run    wire.RunID
	opt    options
	opened map[wire.Digest]wire.Message
	trace  []string // every effect, for the determinism test
	tracks bool
	deaf   func(i, j int) bool // no gossip flows on the link between the two
}

type options struct {
	fragments int
	latency   Time    // one way, plus up to as much jitter
	loss      float64 // of a gossip hop
	rate      float64 // bytes per ms of a stream
	tipBytes  int
	link      float64 // bytes per ms of each node's link, both ways; 0: a stream does not feel others
	window    uint32  // W_u
}

type event struct {
	at  Time
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

func newWorld(t *testing.T, seed uint64, n int, opt options) *world {
	if opt.fragments == 0 {
		opt.fragments = 3
	}
	if opt.latency == 0 {
		opt.latency = 20
	}
	if opt.rate == 0 {
		opt.rate = 1000
	}
	if opt.window == 0 {
		opt.window = 64
	}
	w := &world{t: t, rng: rand.New(rand.NewPCG(seed, 1)), opt: opt, run: wire.RunID{7}, opened: map[wire.Digest]wire.Message{}, deaf: func(int, int) bool { return false }}
	for range n {
		w.add()
	}
	for i := range n {
		for j := range i {
			w.connect(i, j)
		}
	}
	return w
}

func testKey(i int) ed25519.PrivateKey {
	var seed [32]byte
	seed[0], seed[1] = byte(i), byte(i>>8)
	return ed25519.NewKeyFromSeed(seed[:])
}

func (w *world) add() *node {
	i := len(w.nodes)
	key := testKey(i)
	n := &node{
		w: w, index: i, key: key, id: wire.PeerIDOf(key), up: true, state: wire.Training,
		links: map[int]bool{}, messages: map[wire.Digest]bool{}, waiting: map[uint64]func([]byte){}, callsOut: map[uint64]func(){},
		chunks: map[wire.Digest][]byte{}, keep: map[wire.Digest][]byte{}, snapshots: map[wire.Digest][]wire.Digest{},
		asked: map[int][]func([]byte, error){}, offers: map[wire.Digest]int{}, fetched: map[wire.Digest]int{}, stored: map[wire.Digest]Time{},
		chain: newFakeChain(w.run, w.opt.fragments), content: newContent(),
	}
	w.nodes = append(w.nodes, n)
	n.boot()
	n.tick()
	return n
}

func (w *world) after(d Time, do func()) {
	w.seq++
	heap.Push(&w.queue, event{w.now + d, w.seq, do})
}

func (w *world) runUntil(end Time) {
	for len(w.queue) > 0 && w.queue[0].at <= end {
		e := heap.Pop(&w.queue).(event)
		w.now = e.at
		e.do()
	}
	w.now = end
}

// runUntilTrue runs until cond holds and reports whether it did in time.
func (w *world) runUntilTrue(end Time, cond func() bool) bool {
	for w.now < end {
		w.runUntil(w.now + 50)
		if cond() {
			return true
		}
	}
	return false
}

func (w *world) delay() Time { return w.opt.latency + w.rng.Int64N(w.opt.latency+1) }

func (n *node) tick() {
	if n.up {
		n.core.SetSelf(n.w.now, n.self())
		n.do(func() { n.core.Tick(n.w.now) })
	}
	n.w.after(50, n.tick)
}

// self is what a node says of itself.
func (n *node) self() peers.SelfState {
	return peers.SelfState{State: n.state, Paused: n.paused, Upload: max(n.rate, n.claims) * 1000, Full: max(n.rate, n.claims) > 0}
}

func (w *world) connect(i, j int) {
	a, b := w.nodes[i], w.nodes[j]
	if a == b || !a.up || !b.up || a.side != b.side || a.links[j] {
		return
	}
	a.links[j], b.links[i] = true, true
	a.peerUp(b)
	b.peerUp(a)
}

func (n *node) peerUp(p *node) {
	s, r := p.record()
	n.do(func() { n.core.Step(n.w.now, PeerUp{Peer: p.id, Signed: s, Record: r}) })
}

func (w *world) disconnect(i, j int) {
	a, b := w.nodes[i], w.nodes[j]
	if !a.links[j] {
		return
	}
	delete(a.links, j)
	delete(b.links, i)
	a.sever(b)
	b.sever(a)
	a.hangUp(b)
	b.hangUp(a)
	for _, pair := range [][2]*node{{a, b}, {b, a}} {
		n, p := pair[0], pair[1]
		if n.up {
			n.do(func() { n.core.Step(w.now, PeerDown{Peer: p.id}) })
		}
	}
}

func (w *world) reconnect(i, j int) {
	if w.nodes[i].links[j] {
		w.disconnect(i, j)
		w.after(w.delay(), func() { w.connect(i, j) })
	}
}

func (w *world) kill(i int) {
	w.nodes[i].up = false
	for j := range w.nodes {
		w.disconnect(i, j)
	}
}

// partition splits the nodes below cut from the others.
func (w *world) partition(cut int) {
	for i := range w.nodes {
		w.nodes[i].side = 0
		if i < cut {
			w.nodes[i].side = 1
		}
	}
	for i := range cut {
		for j := cut; j < len(w.nodes); j++ {
			w.disconnect(i, j)
		}
	}
}

func (w *world) merge() {
	for i := range w.nodes {
		w.nodes[i].side = 0
	}
	for i := range w.nodes {
		for j := range i {
			w.connect(i, j)
		}
	}
}
