package core_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

var errDown = errors.New("peer is not reachable")

// asked is a stream request that waits for its reply.
type asked struct {
	by   *node
	max  int
	once func([]byte, error)
}

func (n *node) peerUp(p *node) {
	s, r := p.record()
	n.do(func() {
		n.machine.Step(n.w.now, gossip.PeerUp{Peer: p.id, Signed: s, Record: r})
	})
}

func (n *node) peerDown(p *node) {
	n.do(func() { n.machine.Step(n.w.now, gossip.PeerDown{Peer: p.id}) })
}

// reconnect closes a connection and dials again; nobody dials a stranger.
func (n *node) reconnect(p *node) {
	if p != nil {
		n.w.disconnect(n, p)
		n.w.after(n.w.delay(), func() { n.w.connect(n, p) })
	}
}

func (n *node) publish(b []byte) {
	n.heard[string(b)] = true
	n.flood(b, nil)
}

// flood forwards a gossip message to the neighbours but one.
func (n *node) flood(b []byte, except *node) {
	for _, p := range n.w.nodes {
		if !n.links[p] || p == except || n.w.rng.Float64() < n.w.cfg.loss {
			continue
		}
		copies := 1
		if n.w.rng.Float64() < n.w.cfg.duplicate {
			copies = 2
		}
		for range copies {
			n.w.after(n.w.delay(), func() {
				if p.links[n] {
					p.do(func() { p.gossip(n, b) })
				}
			})
		}
	}
}

func (n *node) gossip(from *node, b []byte) {
	m := n.w.open(b)
	if n.heard[string(b)] {
		if m.Header != nil {
			n.machine.Step(n.w.now, gossip.Forwarded{From: from.id, ID: m.Header.Header.ID(n.w.run)})
		}
		return
	}
	n.heard[string(b)] = true
	n.flood(b, from)
	n.machine.Step(n.w.now, gossip.Received{From: from.id, Message: m})
}

// call sends a stream request; it is answered, once, also where nobody is.
func (n *node) call(e gossip.Call) {
	p, life, done := n.w.node(e.To), n.life, false
	once := func(b []byte, err error) {
		if !done && n.life == life {
			done = true
			n.do(func() { n.machine.Step(n.w.now, gossip.Answered{Call: e.ID, Response: b, Err: err}) })
		}
	}
	if p == nil || !n.links[p] {
		n.w.after(1, func() { once(nil, errDown) })
		return
	}
	n.w.after(core.Time(e.TimeoutMs), func() { once(nil, errDown) })
	n.w.after(n.w.delay(), func() {
		if !p.links[n] {
			once(nil, errDown)
			return
		}
		if q, _ := wire.DecodeRequest(e.Request); p.ignores != 0 && q.Kind == p.ignores {
			return // the timeout will tell
		}
		p.do(func() {
			p.handle++
			p.waiting[p.handle] = asked{by: n, max: e.MaxResponse, once: once}
			p.machine.Step(n.w.now, gossip.Requested{Handle: p.handle, From: n.id, Request: e.Request})
		})
	})
}

// reply carries out one of the Reply effects.
func (n *node) reply(e core.Effect) {
	switch e := e.(type) {
	case gossip.Reply:
		n.answer(e.Handle, e.Response, wire.Digest{})
	case gossip.ReplyPayload:
		n.answer(e.Handle, found(n.disk.payloads[e.ID]), e.ID)
	case gossip.ReplyManifest:
		n.answer(e.Handle, found(n.manifest(e.At)), wire.Digest{})
	case gossip.ReplyChunk:
		n.answer(e.Handle, found(n.donated[e.Digest]), wire.Digest{})
	}
}

func found(body []byte) []byte {
	if body == nil {
		return wire.Response{Status: wire.NotFound}.Encode()
	}
	return wire.Response{Status: wire.OK, Body: body}.Encode()
}

// answer sends a response to whoever asked, and notes when it has left.
func (n *node) answer(handle uint64, b []byte, payload wire.Digest) {
	q, ok := n.waiting[handle]
	if !ok {
		n.w.fatalf("node %d answered handle %d twice", n.index, handle)
	}
	delete(n.waiting, handle)
	if len(b) > q.max {
		n.w.fatalf("node %d answered with %d bytes, at most %d were asked for", n.index, len(b), q.max)
	}
	took := n.w.delay() + core.Time(float64(len(b))/n.w.cfg.bytesMs)
	n.later(took, func() {
		if !n.links[q.by] {
			n.machine.Step(n.w.now, gossip.Replied{Handle: handle})
			q.once(nil, errDown)
			return
		}
		n.machine.Step(n.w.now, gossip.Replied{Handle: handle, Payload: payload})
		q.once(b, nil)
	})
}

func (n *node) dial(addr string) {
	var port int
	if _, err := fmt.Sscanf(addr, "/ip4/10.0.0.1/tcp/%d", &port); err != nil {
		n.w.fatalf("dial %q: %v", addr, err)
	}
	n.w.after(n.w.delay(), func() {
		if port-1000 < len(n.w.nodes) {
			n.w.connect(n, n.w.nodes[port-1000])
		}
	})
}

// manifest lists tips of one moment, or of given rounds, and keeps their chunks. It
// is nil where there is nothing to give.
func (n *node) manifest(at []uint32) []byte {
	m, err := core.ManifestOf(core.Donations(n.w.cfg.params, n.machine.Rounds(), at), at == nil, n.describe)
	if err != nil {
		return nil
	}
	return wire.EncodeManifest(n.key, n.w.run, m)
}

// describe cuts a fragment's tip into chunks to be served.
func (n *node) describe(p int, d core.Donation) (f wire.FragmentManifest, err error) {
	tip, err := d.Tip(n.disk.bases[p][d.Start], func(tip *outer.Tip, set []outer.Delta) (*outer.Tip, error) {
		var contributions []outer.Contribution
		for _, d := range set {
			contributions = append(contributions, outer.Contribution{Delta: d, Payload: n.disk.payloads[wire.Digest(d.ID)]})
		}
		next, _, err := outer.Fold(n.w.cfg.params, n.w.plan[p], tip, tip.Round+1, contributions)
		return next, err
	})
	if err != nil {
		return f, err
	}
	if n.spoils {
		spoiled := *tip
		spoiled.Anchor = slices.Clone(tip.Anchor)
		spoiled.Anchor[0]++
		tip = &spoiled
	}
	f, chunks := core.CutSnapshot(tip, d.Links)
	maps.Copy(n.donated, chunks)
	return f, nil
}

// install puts the chunks of a manifest together.
func (n *node) install(e core.InstallTips) {
	tips, history, err := core.Assemble(e.Manifest, n.w.plan, n.w.cfg.params, n.disk.chunk)
	if errors.Is(err, core.ErrUnfit) && n.w.faulty[e.Manifest.Author] {
		clear(n.disk.chunks)
		n.machine.InstallFailed(n.w.now)
		return
	}
	if err != nil {
		n.w.fatalf("node %d: %v", n.index, err)
	}
	n.installs++
	own, _ := n.disk.Own() // which has no errors
	left, err := core.LeaveChain(n.disk, n.id, n.w.cfg.params.WindowUnion, history, e.Common, e.Closed, own)
	if err != nil {
		n.w.fatalf("node %d: leave the chain: %v", n.index, err)
	}
	n.disk.install(tips, history, left)
	if err := n.machine.Installed(n.w.now, tips, history); err != nil {
		n.w.fatalf("node %d: %v", n.index, err)
	}
}
