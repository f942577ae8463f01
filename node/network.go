package node

import (
	"context"
	"crypto/ed25519"
	"errors"
	"sync"
	"time"

	"atoll/gossip"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// network takes an event of the host.
func (n *node) network(e p2p.Event) {
	now := n.clock.now()
	switch e := e.(type) {
	case p2p.PeerUp:
		n.view.peerUp(n, e)
		n.machine.PeerUp(now, e.ID, e.Signed, e.Record, e.Session)
	case p2p.PeerDown:
		n.machine.PeerDown(now, e.ID)
	case p2p.RecordChanged:
		n.machine.RecordChanged(now, e.ID, e.Signed, e.Record)
	case p2p.Refused:
		n.view.refusedPeer(n, e)
	case p2p.Message:
		n.message(now, e)
	case p2p.Duplicate:
		n.duplicate(now, e)
	}
}

func (n *node) message(now core.Time, e p2p.Message) {
	msg, err := wire.Open(n.run, e.Data)
	if err != nil {
		n.log.Warn("gossip message", "from", e.From, "err", err) // the host checked it before
		return
	}
	n.view.inline(msg)
	n.machine.Received(now, e.From, msg)
}

// duplicate notes a further source of the delta that a message announces.
func (n *node) duplicate(now core.Time, e p2p.Duplicate) {
	msg, err := wire.Open(n.run, e.Data)
	if err != nil || msg.Header == nil {
		return
	}
	n.machine.Forwarded(now, e.From, msg.Header.Header.ID(n.run))
}

// reply is an answer on its way to a stream.
type reply struct {
	response []byte
	bulk     bool        // its place in the queue is free once it has left
	payload  wire.Digest // the delta whose payload it is, or zero
}

// serve answers a stream request: it runs on the stream's goroutine, asks the
// loop, and waits for its reply. ctx ends when the response has left.
func (n *node) serve(ctx context.Context, from wire.PeerID, request []byte) []byte {
	answers := make(chan reply, 1)
	var handle uint64 // of the loop
	n.post(func(now core.Time) {
		n.handle++
		handle = n.handle
		n.handles[handle] = answers
		n.machine.Serve(now, handle, from, request)
	})
	select {
	case r := <-answers:
		if r.bulk {
			context.AfterFunc(ctx, func() {
				n.post(func(now core.Time) { n.machine.Replied(now, handle, r.payload) })
			})
		}
		return r.response
	case <-ctx.Done():
		n.post(func(now core.Time) {
			delete(n.handles, handle)
			n.machine.Replied(now, handle, wire.Digest{})
		})
		return wire.Response{Status: wire.Busy}.Encode()
	}
}

// answer hands the reply to the stream that waits for it. If the stream is
// gone its place is free already.
func (n *node) answer(handle uint64, r reply) {
	if waiting, ok := n.handles[handle]; ok {
		delete(n.handles, handle)
		waiting <- r
	}
}

// respond carries out one of the Reply effects.
func (n *node) respond(e core.Effect) {
	switch e := e.(type) {
	case gossip.Reply:
		n.answer(e.Handle, reply{response: e.Response})
	case gossip.ReplyGenesis:
		n.answer(e.Handle, reply{response: wire.Response{Status: wire.OK, Body: n.genesis.Encode()}.Encode()})
	case gossip.ReplyPayload:
		n.work.goRun(func(context.Context) {
			payload, err := n.store.Payload(e.ID)
			n.answerBulk(e.Handle, e.ID, payload, err)
		})
	case gossip.ReplyManifest:
		n.replyManifest(e.Handle)
	case gossip.ReplyChunk:
		chunk, ok := n.donor.chunk(e.Digest)
		err := error(nil)
		if !ok {
			err = errNoChunk
		}
		n.work.goRun(func(context.Context) { n.answerBulk(e.Handle, wire.Digest{}, chunk, err) })
	}
}

var errNoChunk = errors.New("the chunk is of a manifest that is no longer served")

// answerBulk hands over what was read for a payload, a chunk or a manifest.
func (n *node) answerBulk(handle uint64, id wire.Digest, body []byte, err error) {
	response := wire.Response{Status: wire.OK, Body: body}
	if err != nil {
		n.log.Debug("serve", "id", id, "err", err)
		response, id = wire.Response{Status: wire.NotFound}, wire.Digest{}
	}
	r := reply{response: response.Encode(), bulk: true, payload: id}
	n.post(func(core.Time) { n.answer(handle, r) })
}

// replyManifest serves the tips of one moment: of each fragment the newest
// base that still lets a joiner fold deltas on their way.
func (n *node) replyManifest(handle uint64) {
	rounds := n.machine.Rounds()
	if m, ok := n.donor.fresh(rounds); ok {
		n.answer(handle, reply{response: wire.Response{Status: wire.OK, Body: m}.Encode()})
		return
	}
	wants := make([]donation, rounds.Fragments())
	for p := range wants {
		base := donatedBase(rounds.Bases(p), rounds.Tip(p).Round)
		wants[p] = donation{round: base, closed: rounds.Closed(p), links: rounds.Links(p, base)}
	}
	n.work.goRun(func(context.Context) {
		m, err := n.donor.make(n.key, n.run, n.tips, wants)
		n.answerBulk(handle, wire.Digest{}, m, err)
	})
}

// donatedLag is how many rounds behind its own tip a donor gives: the deltas
// of the last rounds may still be on their way and have to be folded by the
// joiner itself.
const donatedLag = 2

func donatedBase(bases []uint32, tip uint32) uint32 {
	best := bases[0]
	for _, b := range bases {
		if b+donatedLag <= tip {
			best = b
		}
	}
	return best
}

// donation is what a manifest says of one fragment.
type donation struct {
	round, closed uint32
	links         []outer.Link
}

// donor keeps the chunks of the manifests it handed out of late. They take
// the size of the tips in memory while somebody joins.
type donor struct {
	mu       sync.Mutex
	manifest []byte
	made     time.Time
	wants    []donation // what the manifest was made of
	chunks   map[wire.Digest][]byte
	previous map[wire.Digest][]byte
}

// A manifest is shared by joiners that come at once. It is made anew when it is
// older than manifestFresh, when more than manifestRounds have closed since
// (the joiner would have to fetch them all), and when a late delta changed the
// chain that leads to it. The chunks of the one before stay, so that a slow
// joiner can finish.
const (
	manifestFresh  = 15 * time.Second
	manifestRounds = 4
)

func (d *donor) fresh(rounds *outer.Rounds) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.manifest == nil || time.Since(d.made) > manifestFresh {
		return nil, false
	}
	for p, w := range d.wants {
		l, ok := rounds.Link(p, w.round)
		if !ok || l.Chain != w.links[len(w.links)-1].Chain || rounds.Closed(p) > w.closed+manifestRounds {
			return nil, false
		}
	}
	return d.manifest, true
}

func (d *donor) chunk(id wire.Digest) ([]byte, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	c, ok := d.chunks[id]
	if !ok {
		c, ok = d.previous[id]
	}
	return c, ok
}

// make encodes the tips and signs their manifest.
func (d *donor) make(key ed25519.PrivateKey, run wire.RunID, t *tips, wants []donation) ([]byte, error) {
	var m wire.Manifest
	chunks := map[wire.Digest][]byte{}
	for p, w := range wants {
		f := wire.FragmentManifest{Round: w.round, Closed: w.closed}
		if !allGenesis(wants) {
			tip, err := t.get(p, w.round)
			if err != nil {
				return nil, err
			}
			blob := core.EncodeSnapshot(tip.Encode(), w.links)
			f.Chain, f.State = wire.Digest(tip.Chain), wire.Digest(tip.State)
			f.Size, f.Chunks = uint64(len(blob)), wire.ChunkDigests(blob)
			for i, id := range f.Chunks {
				at := i * wire.ChunkSize
				chunks[id] = blob[at : at+f.ChunkLen(i)]
			}
		}
		m.Fragments = append(m.Fragments, f)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.previous, d.chunks = d.chunks, chunks
	d.manifest, d.made, d.wants = wire.EncodeManifest(key, run, m), time.Now(), wants
	return d.manifest, nil
}

// allGenesis says that the run has not folded anything that a joiner could
// not make from genesis.
func allGenesis(wants []donation) bool {
	for _, w := range wants {
		if w.round > 0 {
			return false
		}
	}
	return true
}
