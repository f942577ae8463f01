package gossip

import (
	"fmt"
	"slices"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// lies makes a node change its manifests, and serve chunks that fit them.
func (n *node) lies(change func(*wire.FragmentManifest)) {
	n.lie = func(k wire.RequestKind, b []byte) []byte {
		if k != wire.GetManifest && k != wire.GetSnapshot || b[0] != byte(wire.OK) {
			return b
		}
		m, err := wire.OpenManifest(n.w.run, b[1:])
		if err != nil {
			n.w.t.Fatal(err)
		}
		for f := range m.Fragments {
			change(&m.Fragments[f])
		}
		return wire.Response{Status: wire.OK, Body: wire.EncodeManifest(n.key, n.w.run, m)}.Encode()
	}
}

// invent makes a tip of random bytes that the liar can serve.
func (n *node) invent(size int) (chunks []wire.Digest) {
	tip := n.w.payload(size)
	for i, d := range wire.ChunkDigests(tip) {
		n.keep[d] = tip[i*wire.ChunkSize : min(size, (i+1)*wire.ChunkSize)]
		chunks = append(chunks, d)
	}
	return chunks
}

// TestLyingManifest: whatever the source that a joiner asks first makes up, tips
// that most others do not know are not taken, and nothing of them is fetched.
func TestLyingManifest(t *testing.T) {
	const size = 2 * wire.ChunkSize
	for name, change := range map[string]func(*node, *wire.FragmentManifest){
		"random tips": func(n *node, f *wire.FragmentManifest) {
			f.Chain, f.State, f.Size, f.Chunks = wire.Sum([]byte{1}), wire.Sum([]byte{2}), size, n.invent(size)
		},
		"the right chain with another state": func(n *node, f *wire.FragmentManifest) {
			f.State, f.Chunks = wire.Sum([]byte{2}), n.invent(size)
		},
		"the right state on another chain": func(_ *node, f *wire.FragmentManifest) { f.Chain = wire.Sum([]byte{1}) },
		"genesis":                          func(_ *node, f *wire.FragmentManifest) { *f = wire.FragmentManifest{} },
	} {
		t.Run(name, func(t *testing.T) {
			w := ran(t, 70, 5, options{tipBytes: size})
			liar := w.nodes[0]
			liar.lies(func(f *wire.FragmentManifest) { change(liar, f) })
			liar.boasts()
			n := w.join()
			if !w.runUntilTrue(w.now+60_000, func() bool { return equal(append([]*node{n}, w.nodes[1:5]...)) }) {
				t.Fatal("a liar keeps a joiner out")
			}
			if took := n.effects[slices.IndexFunc(n.effects, isSnapshot)].(Snapshot); took.Source == liar.id {
				t.Error("took the liar's snapshot")
			}
			if !said(n, "4 of 5 peers that know these rounds show another chain or state") {
				t.Error("does not say why it left its first snapshot source")
			}
			for d := range n.chunks {
				if w.nodes[1].keep[d] == nil {
					t.Fatal("fetched what the liar made up")
				}
			}
		})
	}
}

// boasts makes every joiner ask this node first: it says that it folded most.
func (n *node) boasts() {
	n.w.nodes[0].chain.boast = 1 << 40
}

// One liar cannot be told from one honest peer: but the joiner gets in, in
// bounded time, and says so.
func TestNoMajority(t *testing.T) {
	w := ran(t, 73, 2, options{tipBytes: 1000})
	liar := w.nodes[0]
	other := wire.Sum([]byte{2})
	liar.lies(func(f *wire.FragmentManifest) { f.State, f.Chunks = other, liar.invent(1000) })
	manifests := liar.lie
	liar.lie = func(k wire.RequestKind, b []byte) []byte {
		if k != wire.GetRounds || b[0] != byte(wire.OK) {
			return manifests(k, b)
		}
		body := rounds(t, b[1:], func(a *wire.RangeAnswer) { a.State = other })
		return wire.Response{Status: wire.OK, Body: body}.Encode()
	}
	n := w.join()
	if !w.runUntilTrue(w.now+Time(4*maxDisputes*snapshotRetryMs), n.joined) {
		t.Fatal("did not get in")
	}
	if !said(n, fmt.Sprintf("after %d tries", maxDisputes)) {
		t.Error("does not say that it took a snapshot without a majority")
	}
}

// A source whose snapshot could not be put in place comes after all others.
func TestRefusedSnapshot(t *testing.T) {
	w := ran(t, 75, 3, options{tipBytes: 1000})
	n := w.join(w.nodes[0].id)
	n.refuses = func(s Snapshot) bool { return s.Source == w.nodes[0].id }
	if !w.runUntilTrue(w.now+20_000, w.equal) {
		t.Fatal("a source whose snapshot does not fit keeps a joiner out")
	}
	var sources []wire.PeerID
	for _, e := range n.effects {
		if s, ok := e.(Snapshot); ok {
			sources = append(sources, s.Source)
		}
	}
	if len(sources) != 2 || sources[0] != w.nodes[0].id {
		t.Errorf("took the snapshot of %v", sources)
	}
}

// The count of a ballot does not depend on the order of the answers.
func TestBallot(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		votes := rapid.SliceOfN(rapid.ByteRange(0, 3), 0, 12).Draw(t, "votes")
		b := ballot{camps: []camp{{position: wire.Digest{0}, peers: 1}}}
		var count [4]int
		count[0] = 1
		for _, v := range rapid.Permutation(votes).Draw(t, "order") {
			b.add(wire.Digest{v})
			count[v]++
		}
		yes, rival, known := b.result()
		if yes != count[0] || rival != max(count[1], count[2], count[3]) || known != len(votes)+1 {
			t.Fatalf("%d for, %d against, %d in all of %v", yes, rival, known, votes)
		}
	})
}
