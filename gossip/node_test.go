package gossip

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"atoll/gossip/fetch"
	"atoll/gossip/hello"
	"atoll/gossip/peers"
	"atoll/gossip/serve"
	"atoll/gossip/wire"
)

// node is one core with its fake outer side.
type node struct {
	w         *world
	index     int
	key       ed25519.PrivateKey
	id        wire.PeerID
	core      *Core
	chain     *fakeChain
	up        bool
	links     map[int]bool
	side      int // of a partition
	messages  map[wire.Digest]bool
	handles   uint64
	asked     map[int][]func([]byte, error)  // what ends the calls to a peer
	waiting   map[uint64]func(answer []byte) // by handle
	callsOut  map[uint64]func()              // what ends them
	chunks    map[wire.Digest][]byte
	resume    []uint32                      // what Fetching said
	keep      map[wire.Digest][]byte        // chunks of manifests given out
	snapshots map[wire.Digest][]wire.Digest // those chunks by chain digest
	state     wire.State
	paused    bool

	stored   map[wire.Digest]Time // when payloads were, own ones when they were made
	received int64                // payload bytes
	pulled   []wire.Header        // of payloads that came
	content  content
	rate     float64 // of its uplink in bytes per ms, which it measures; 0: options.link, and it does not
	claims   float64 // what its heartbeats say instead
	link     link
	offers   map[wire.Digest]int
	fetched  map[wire.Digest]int
	effects  []Effect // those that tests look at

	// faults
	withhold bool                // never answers payload requests
	ignores  wire.RequestKind    // never answers those
	refuses  func(Snapshot) bool // finds that the snapshot does not fit the run
	full     bool                // has no room on its disk for payloads, chunks and snapshots
	corrupt  bool                // answers them with wrong bytes
	mute     bool                // receives and says nothing
	lie      func(kind wire.RequestKind, body []byte) []byte
}

var errDown = errors.New("peer is not reachable")

// boot makes a fresh core over what the node has on disk.
func (n *node) boot() {
	n.core = New(Config{
		Self: n.id, Key: n.key, Run: n.w.run, Incarnation: n.w.now, HeartbeatMinMs: 200, WindowUnion: n.w.opt.window,
		HasChunk: func(d wire.Digest) bool { return n.chunks[d] != nil }, Unpack: unpacked, Resume: n.resume,
	}, n.chain)
	signed, _ := n.record()
	n.core.Step(n.w.now, OwnRecord{Signed: signed})
	n.core.SetSelf(n.w.now, peers.SelfState{State: n.state})
}

func (n *node) record() (hello.Signed, hello.Record) {
	r := hello.Record{
		Protocol: hello.Protocol, Run: n.w.run, Author: n.id, Seq: 1, Role: hello.Learner, Trainer: hello.Builtin,
		Precision: "f32", Addrs: []string{fmt.Sprintf("/ip4/10.0.0.1/tcp/%d", 1000+n.index)}, Agent: "test",
	}
	s, err := hello.Sign(n.key, r)
	if err != nil {
		n.w.t.Fatal(err)
	}
	return s, r
}

// do runs one input and executes what it caused.
func (n *node) do(input func()) {
	input()
	for _, e := range n.core.Effects() {
		if n.w.tracks {
			n.w.trace = append(n.w.trace, fmt.Sprintf("%d %d %s", n.w.now, n.index, textOf(e)))
		}
		n.execute(e)
	}
	n.checkBounds()
}

func (n *node) execute(e Effect) {
	switch e := e.(type) {
	case Publish:
		if !n.mute {
			n.messages[wire.Sum(e.Bytes)] = true
			n.flood(e.Bytes, -1)
		}
	case Call:
		n.call(e)
	case Hangup:
		n.hangUpCall(e.ID)
	case Dial:
		n.dial(e.Addrs[0])
	case Reply:
		n.reply(e.Handle, e.Response)
	case ReplyPayload:
		n.replyPayload(e)
	case ReplyManifest:
		n.reply(e.Handle, wire.Response{Status: wire.OK, Body: wire.EncodeManifest(n.key, n.w.run, n.manifest(e.At))}.Encode())
	case ReplyChunk:
		n.replyChunk(e)
	case Offer:
		n.offers[e.Header.Header.ID(n.w.run)]++
	case Fetched:
		n.store(e)
	case CatchUp:
		n.chain.close(e.Fragment, e.Round)
	case EquivocationFound:
		n.chain.convict(e.Equivocation)
		n.effects = append(n.effects, e)
	case Fetching:
		n.resume = e.At
	case StoreChunk:
		n.storeChunk(e)
	case StorePart:
		n.storePart(e)
	case ReplyPart:
		n.replyPart(e)
	case Snapshot:
		n.install(e)
	case Drop:
		n.effects = append(n.effects, e)
		n.w.after(1, func() { n.w.disconnect(n.index, n.w.node(e.Peer).index) })
	case Reconnect:
		n.effects = append(n.effects, e)
		n.w.after(1, func() { n.w.reconnect(n.index, n.w.node(e.Peer).index) })
	case Misbehaved, BaseMismatch, StateDiffers, Audit, OwnHeader, OwnKnown, Event:
		n.effects = append(n.effects, e)
	}
}

// flood forwards a gossip message to the neighbours but one.
func (n *node) flood(b []byte, except int) {
	for j := range n.w.nodes {
		if !n.links[j] || j == except || n.w.deaf(n.index, j) || n.w.rng.Float64() < n.w.opt.loss {
			continue
		}
		p := n.w.nodes[j]
		n.w.after(n.w.delay(), func() {
			if p.up && p.links[n.index] {
				p.gossip(n, b)
			}
		})
	}
}

// open verifies each message once: it is the same for every receiver.
func (w *world) open(b []byte) wire.Message {
	key := wire.Sum(b)
	if m, ok := w.opened[key]; ok {
		return m
	}
	m, err := wire.Open(w.run, b)
	if err != nil {
		w.t.Fatalf("bad gossip message: %v", err)
	}
	w.opened[key] = m
	return m
}

func (n *node) gossip(from *node, b []byte) {
	m := n.w.open(b)
	if n.messages[wire.Sum(b)] {
		if m.Header != nil {
			n.do(func() { n.core.Step(n.w.now, Forwarded{From: from.id, ID: m.Header.Header.ID(n.w.run)}) })
		}
		return
	}
	n.messages[wire.Sum(b)] = true
	n.received += int64(len(m.Inline))
	if !n.mute {
		n.flood(b, from.index)
	}
	n.do(func() { n.core.Step(n.w.now, Received{From: from.id, Message: m}) })
}

func (w *world) node(id wire.PeerID) *node {
	for _, n := range w.nodes {
		if n.id == id {
			return n
		}
	}
	return nil
}

func (n *node) call(e Call) {
	p := n.w.node(e.To)
	core := n.core
	if p == nil || !n.links[p.index] {
		n.w.after(1, func() { n.answer(core, e.ID, nil, errDown, 0) })
		return
	}
	answered := false
	once := func(b []byte, err error) {
		if !answered {
			answered = true
			n.answer(core, e.ID, b, err, n.w.tookMs(len(b)))
		}
	}
	n.asked[p.index] = append(n.asked[p.index], once)
	var handle uint64 // at p
	n.callsOut[e.ID] = func() {
		answered = true
		n.w.after(n.w.delay(), func() {
			if p.up && p.waiting[handle] != nil {
				p.do(func() { p.core.Step(n.w.now, Replied{Handle: handle}) })
			}
		})
	}
	n.w.after(e.TimeoutMs, func() { once(nil, errDown) })
	n.w.after(n.w.delay(), func() {
		if !p.up || p.mute || !p.links[n.index] {
			return
		}
		if r, _ := wire.DecodeRequest(e.Request); r.Kind == p.ignores {
			return
		}
		p.handles++
		handle = p.handles
		if answered {
			return
		}
		p.answers(p.handles, n, e, once)
		p.do(func() { p.core.Step(n.w.now, Requested{Handle: p.handles, From: n.id, Request: e.Request}) })
	})
}

// hangUpCall ends a call.
func (n *node) hangUpCall(id uint64) {
	if hangUp := n.callsOut[id]; hangUp != nil {
		hangUp()
	}
}

// answers registers what happens to the answer of a handle.
func (n *node) answers(handle uint64, by *node, e Call, once func([]byte, error)) {
	r, _ := wire.DecodeRequest(e.Request)
	n.waiting[handle] = func(b []byte) {
		if n.lie != nil {
			b = n.lie(r.Kind, b)
		}
		if len(b) > e.MaxResponse {
			once(nil, errors.New("answer too long"))
			return
		}
		if n.w.opt.link > 0 {
			n.ship(by, handle, b, r.Digest, once)
			return
		}
		took := n.w.delay() + Time(float64(len(b))/n.w.opt.rate)
		n.w.after(took, func() {
			if n.up && by.links[n.index] {
				once(b, nil)
			} else {
				once(nil, errDown)
			}
		})
		n.w.after(took, func() {
			if n.up {
				n.do(func() { n.core.Step(n.w.now, replied(handle, b, r.Digest, !by.links[n.index])) })
			}
		})
	}
}

func (n *node) answer(core *Core, id uint64, b []byte, err error, took int64) {
	if n.up && n.core == core {
		n.do(func() { n.core.Step(n.w.now, Answered{Call: id, Response: b, Err: err, TookMs: took}) })
	}
}

// tookMs is the time from the first byte of an answer to its last.
func (w *world) tookMs(n int) int64 {
	rate := w.opt.rate
	if w.opt.link > 0 {
		rate = w.opt.link
	}
	return max(1, int64(float64(n)/rate))
}

func (n *node) reply(handle uint64, b []byte) {
	f := n.waiting[handle]
	if f == nil {
		n.w.t.Fatalf("node %d answered handle %d twice", n.index, handle)
	}
	delete(n.waiting, handle)
	f(b)
}

func (n *node) replyPayload(e ReplyPayload) {
	if n.withhold {
		return
	}
	payload := append([]byte(nil), n.chain.payloads[e.ID]...)
	if n.corrupt {
		payload[0]++
	}
	n.reply(e.Handle, wire.Response{Status: wire.OK, Body: payload}.Encode())
}

// manifest lists the snapshot of given rounds, or the present one.
func (n *node) manifest(at []uint32) wire.Manifest {
	var m wire.Manifest
	for f := range n.chain.closed {
		fm := wire.FragmentManifest{Round: n.chain.closed[f], Closed: n.chain.closed[f]}
		newest := at == nil || at[f] == wire.NewestTip
		if !newest {
			fm.Round = min(at[f], fm.Closed)
		}
		fm.Chain, _ = n.chain.ChainDigest(f, fm.Round)
		fm.State, _ = n.chain.StateDigest(f, fm.Round)
		if fm.Round > 0 && (newest || at[f] == fm.Round && at[f] >= n.chain.base[f]) {
			fm.Size, fm.Chunks = uint64(n.w.tipBytes()), n.cut(f, fm.Round)
		} else {
			fm.Round = 0
		}
		m.Fragments = append(m.Fragments, fm)
	}
	return m
}

func (w *world) tipBytes() int { return max(w.opt.tipBytes, 100) }

// cut splits the tip of a round of f into chunks to serve.
func (n *node) cut(f int, r uint32) []wire.Digest {
	d, _ := n.chain.ChainDigest(f, r)
	if n.snapshots[d] == nil {
		tip := n.chain.tip(f, r, n.w.tipBytes())
		n.snapshots[d] = wire.ChunkDigests(tip)
		for i, c := range n.snapshots[d] {
			n.keep[c] = tip[i*wire.ChunkSize : min(len(tip), (i+1)*wire.ChunkSize)]
		}
	}
	return n.snapshots[d]
}

func (n *node) replyChunk(e ReplyChunk) {
	b := n.keep[e.Digest]
	if b == nil {
		n.reply(e.Handle, wire.Response{Status: wire.NotFound}.Encode())
		return
	}
	n.reply(e.Handle, wire.Response{Status: wire.OK, Body: b}.Encode())
}

// store is the outer side's verdict on a payload: those that begin with 'X' do
// not decode.
func (n *node) store(e Fetched) {
	id := e.Header.Header.ID(n.w.run)
	n.fetched[id]++
	if len(e.Payload) > wire.MaxInline {
		n.received += int64(len(e.Payload))
		n.pulled = append(n.pulled, e.Header.Header)
	}
	n.w.after(1, func() {
		if !n.up {
			return
		}
		if e.Payload[0] == 'X' {
			n.do(func() { n.core.Complete(n.w.now, id, errors.New("begins with X")) })
			return
		}
		if n.full {
			n.do(func() { n.core.Complete(n.w.now, id, ErrNotStored) })
			return
		}
		n.stored[id] = n.w.now
		n.chain.store(*e.Header, e.Payload)
		n.do(func() { n.core.Complete(n.w.now, id, nil) })
	})
}

func (n *node) storeChunk(e StoreChunk) {
	if n.full {
		n.w.after(1, func() { n.do(func() { n.core.ChunkNotStored(n.w.now, e.Digest) }) })
		return
	}
	n.chunks[e.Digest] = e.Bytes
}

func (n *node) install(e Snapshot) {
	n.effects = append(n.effects, e)
	if n.refuses != nil && n.refuses(e) {
		n.core.Installed(n.w.now, nil, errors.New("they do not fit"))
		n.core.FetchSnapshot(n.w.now)
		return
	}
	if n.full {
		n.core.Installed(n.w.now, nil, ErrNotStored)
		n.core.FetchSnapshot(n.w.now)
		return
	}
	for _, fm := range e.Manifest.Fragments {
		for _, c := range fm.Chunks {
			if n.chunks[c] == nil {
				n.w.t.Fatalf("node %d: snapshot without chunk %v", n.index, c)
			}
		}
	}
	n.chain.install(e.Manifest)
	n.core.Installed(n.w.now, make([]uint32, 64), nil)
	if n.state == wire.Joining {
		n.state = wire.Training
	}
}

func (n *node) dial(addr string) {
	var port int
	if _, err := fmt.Sscanf(addr, "/ip4/10.0.0.1/tcp/%d", &port); err != nil {
		n.w.t.Fatalf("dial %q: %v", addr, err)
	}
	n.w.after(n.w.delay(), func() {
		if n.up && port-1000 < len(n.w.nodes) {
			n.w.connect(n.index, port-1000)
		}
	})
}

// publish makes a delta of the given size and announces it.
func (n *node) publish(f int, round uint32, payload []byte) wire.SignedHeader {
	s := wire.SignHeader(n.key, n.w.run, wire.Header{
		Fragment: uint16(f), Round: round, Base: round - 1, Steps: 1, Tokens: 10,
		Size: uint32(len(payload)), Payload: wire.Sum(payload),
	})
	n.chain.store(s, payload)
	n.stored[s.Header.ID(n.w.run)] = n.w.now
	n.do(func() {
		n.core.Announce(n.w.now, s, payload)
		n.core.Complete(n.w.now, s.Header.ID(n.w.run), nil)
	})
	return s
}

func (w *world) payload(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = byte(w.rng.Uint32())
	}
	b[0] = 'p'
	return b
}

func (n *node) checkBounds() {
	if what, is, most := n.core.overLimit(); what != "" {
		n.w.t.Fatalf("node %d holds %d %s, at most %d", n.index, is, what, most)
	}
}

// overLimit names a machine that holds more than its limits say, "" if none
// does.
func (c *Core) overLimit() (what string, is, most int) {
	check := func(of string, count, limit int) {
		if count > limit || count < 0 {
			what, is, most = of, count, limit
		}
	}
	c.Sizes(check)
	check("chunk calls", len(c.snapshot.chunkCalls), maxChunkCalls)
	check("parts in flight", len(c.blobs.flights), maxChunkCalls)
	check("calls", len(c.env.Calls()), fetch.MaxPulls+maxRepairs+maxAttesters+(2*serve.MaxChunkAhead+4)*(len(c.env.List)+1))
	if what != "" {
		return what, is, most
	}
	for _, p := range c.env.List {
		if snapshotOf(p).calls > serve.MaxChunkAhead || blobsOf(p).calls > serve.MaxChunkAhead || blobsOf(p).calls < 0 {
			return "requests of one peer", snapshotOf(p).calls, serve.MaxChunkAhead
		}
	}
	return "", 0, 0
}

// textOf writes an effect with what it points to.
func textOf(e Effect) string {
	switch e := e.(type) {
	case Offer:
		return fmt.Sprintf("offer %v %v %v %v", e.ID, *e.Header, e.From, e.Repair)
	case Fetched:
		return fmt.Sprintf("fetched %v %v %x", e.ID, *e.Header, e.Payload)
	}
	return fmt.Sprintf("%T%v", e, e)
}
