package gossip

import (
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
)

// ran is a world whose nodes have trained and rest.
func ran(t *testing.T, seed uint64, n int, opt options) *world {
	w := newWorld(t, seed, n, opt)
	w.train(6, fixed(2000))
	w.mustSettle(30_000)
	return w
}

// join adds a node that fetches tips from those it is connected to.
func (w *world) join(trusted ...wire.PeerID) *node {
	n := w.add()
	n.state = wire.Joining
	n.core.cfg.Trusted = trusted
	for i := range w.nodes[:n.index] {
		w.connect(n.index, i)
	}
	n.do(func() { n.core.FetchTips(w.now) })
	return n
}

func TestJoinTakesTipsFromManyPeers(t *testing.T) {
	w := ran(t, 20, 4, options{tipBytes: 2 << 20})
	n := w.join()
	n.core.Effects()
	if !w.runUntilTrue(w.now+60_000, w.equal) {
		t.Fatal("the joiner never had the tips of the others")
	}
	for _, e := range n.effects {
		if s, ok := e.(Event); ok && s.Kind == EventSnapshot {
			if strings.Contains(s.Text, "all ") && !strings.Contains(s.Text, "from 4 peers") {
				t.Errorf("chunks did not come from all peers: %s", s.Text)
			}
		}
	}
	if !said(n, "takes tips attested by 4 of 4") {
		t.Error("a joiner whose link names nobody does not say who attests its donor's tips")
	}
}

// said reports whether an event of the node has that text in it.
func said(n *node, text string) bool {
	return slices.ContainsFunc(n.effects, func(e Effect) bool {
		v, ok := e.(Event)
		return ok && strings.Contains(v.Text, text)
	})
}

func TestJoinPrefersTrustedPeers(t *testing.T) {
	w := ran(t, 21, 4, options{tipBytes: 1000})
	n := w.join(w.nodes[2].id)
	w.runUntil(w.now + 10_000)
	i := slices.IndexFunc(n.effects, isSnapshot)
	if i < 0 || n.effects[i].(Snapshot).Donor != w.nodes[2].id {
		t.Errorf("tips did not come from the peer named in the link")
	}
}

func TestJoinSurvivesDyingDonor(t *testing.T) {
	w := ran(t, 22, 4, options{tipBytes: 4 << 20, rate: 200})
	n := w.join(w.nodes[1].id)
	w.runUntil(w.now + 3000)
	if _, done := n.core.JoinPhase(); done == 0 || done == 1 {
		t.Fatalf("progress %v: the donor should die in the middle", done)
	}
	stored := len(n.chunks)
	w.kill(1)
	if !w.runUntilTrue(w.now+120_000, w.equal) {
		t.Fatal("the joiner did not get over the death of its donor")
	}
	if stored == 0 {
		t.Error("nothing was stored before")
	}
}

func TestJoinResumesAfterRestart(t *testing.T) {
	w := ran(t, 23, 3, options{tipBytes: 4 << 20, rate: 200})
	n := w.join()
	w.runUntil(w.now + 4000)
	stored := len(n.chunks)
	w.kill(n.index)
	n.up = true
	n.boot()
	w.heal()
	asked := 0
	n.do(func() { n.core.FetchTips(w.now) })
	w.runUntilTrue(w.now+60_000, func() bool {
		asked = max(asked, len(n.core.snapshot.transfer.chunks))
		return w.equal()
	})
	if want := 3*16 - stored; asked != want {
		t.Errorf("asked for %d chunks after the restart, want %d: %d were stored", asked, want, stored)
	}
}

func TestJoinOfRunThatDidNotBegin(t *testing.T) {
	w := newWorld(t, 24, 2, options{})
	n := w.join()
	w.runUntil(w.now + 3000)
	i := slices.IndexFunc(n.effects, isSnapshot)
	if i < 0 {
		t.Fatal("no snapshot of a run at genesis")
	}
	if len(n.chunks) != 0 {
		t.Errorf("%d chunks fetched for genesis", len(n.chunks))
	}
}

func TestJoiningNodeDonatesNothing(t *testing.T) {
	w := newWorld(t, 25, 2, options{})
	w.nodes[0].state = wire.Joining
	w.nodes[1].state = wire.Joining
	w.runUntil(300)
	w.nodes[1].do(func() { w.nodes[1].core.FetchTips(w.now) })
	w.runUntil(10_000)
	if slices.ContainsFunc(w.nodes[1].effects, isSnapshot) {
		t.Error("two joiners took tips from each other")
	}
}

// TestManifestOfAnotherIsRefused has a donor that passes on a manifest that
// somebody else signed.
func TestManifestOfAnotherIsRefused(t *testing.T) {
	w := ran(t, 26, 2, options{tipBytes: 1000})
	forged := wire.EncodeManifest(testKey(99), w.run, w.nodes[0].manifest(nil))
	w.nodes[0].lie = func(k wire.RequestKind, b []byte) []byte {
		if k == wire.GetManifest {
			return wire.Response{Status: wire.OK, Body: forged}.Encode()
		}
		return b
	}
	n := w.join(w.nodes[0].id)
	w.runUntil(w.now + 10_000)
	if !marked(n, w.nodes[0].id) {
		t.Error("the donor of a forged manifest is not marked")
	}
	if i := slices.IndexFunc(n.effects, isSnapshot); i < 0 || n.effects[i].(Snapshot).Donor != w.nodes[1].id {
		t.Error("the tips did not come from the honest peer")
	}
}

func TestWrongChunkIsRefused(t *testing.T) {
	w := ran(t, 27, 3, options{tipBytes: 1 << 20})
	w.nodes[0].lie = func(k wire.RequestKind, b []byte) []byte {
		if k == wire.GetChunk && len(b) > 1 {
			b = slices.Clone(b)
			b[9]++
		}
		return b
	}
	n := w.join(w.nodes[0].id)
	if !w.runUntilTrue(w.now+60_000, w.equal) {
		t.Fatal("wrong chunks from one peer kept a node from joining")
	}
	if !marked(n, w.nodes[0].id) {
		t.Error("the peer that sent wrong chunks is not marked")
	}
}

func marked(n *node, id wire.PeerID) bool {
	return slices.ContainsFunc(n.effects, func(e Effect) bool {
		m, ok := e.(Misbehaved)
		return ok && m.Peer == id
	})
}
