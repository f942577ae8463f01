package sim

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
)

// shelved are blobs of so many bytes.
func shelved(t *testing.T, n, size int) (list []gossip.Blob, all map[wire.Digest]*kept) {
	t.Helper()
	all = map[wire.Digest]*kept{}
	for i := range n {
		k := &kept{bytes: make([]byte, size), has: wire.AllParts(wire.PartCount(int64(size)))}
		r := rand.New(rand.NewPCG(11, uint64(i)))
		for at := 0; at+8 <= size; at += 8 {
			binary.LittleEndian.PutUint64(k.bytes[at:], r.Uint64())
		}
		tree, d, err := wire.TreeOf(bytes.NewReader(k.bytes), int64(size))
		if err != nil {
			t.Fatal(err)
		}
		k.tree = tree
		all[d] = k
		list = append(list, gossip.Blob{Digest: d, Size: int64(size)})
	}
	return list, all
}

// wantsFiles has a node fetch, in this life and later ones.
func (n *Node) wantsFiles(list []gossip.Blob) {
	n.files.wants = list
	n.do(n.recallBlobs)
}

// gotAll reports whether a node has blobs as they are.
func (n *Node) gotAll(list []gossip.Blob, all map[wire.Digest]*kept) bool {
	return !slices.ContainsFunc(list, func(b gossip.Blob) bool {
		k := n.files.kept[b.Digest]
		return k == nil || k.has != all[b.Digest].has || !bytes.Equal(k.bytes, all[b.Digest].bytes)
	})
}

// allOut reports whether nodes have all parts of some blobs among them.
func allOut(nodes []*Node, of map[wire.Digest]bool, all map[wire.Digest]*kept) bool {
	for d := range of {
		var out wire.PartSet
		for _, n := range nodes {
			if k := n.files.kept[d]; k != nil {
				for i := range wire.PartCount(int64(len(k.bytes))) {
					if k.has.Has(i) {
						out.Add(i)
					}
				}
			}
		}
		if out.Len() < all[d].has.Len() {
			return false
		}
	}
	return true
}

// Eight nodes join a run that trains, over links of 20 Mbit/s, and fetch shards while rounds go on:
// held-out ones and their windows. The founder uploads at most 1.5 times the distinct bytes. One of them
// is killed in the middle and goes on with what it had, the founder is killed once all parts are out and
// the others end without it, and no promise of the run is broken.
func TestEightJoinersFetchShards(t *testing.T) {
	t.Parallel()
	const joiners, heldOut, size, link = 8, 1, 12 * wire.PartSize, 2500
	for _, c := range []struct {
		name   string
		blobs  int
		window func(j int) []int
		kills  bool // the founder
	}{
		{"overlapping windows", heldOut + 5, func(j int) []int { return []int{1 + j%5, 1 + (j+1)%5} }, false},
		{"disjoint windows", heldOut + joiners, func(j int) []int { return []int{1 + j} }, false},
		{"the founder dies", heldOut + 2, func(int) []int { return []int{1, 2} }, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			if !c.kills && !longMode() {
				t.Skip("ATOLL_LONG=1 runs it")
			}
			t.Parallel()
			list, all := shelved(t, c.blobs, size)
			s := calmScenario(1, 100_000)
			s.Link.BytesMs, s.Link.DownMs, s.LimitMs = link, link, 600_000
			w, err := New(s)
			if err != nil {
				t.Fatal(err)
			}
			w.RunFor(5000)
			founder := w.nodes[0]
			for d, k := range all {
				founder.files.keep(d, k)
			}
			founder.do(founder.recallBlobs)
			wants := map[*Node][]gossip.Blob{}
			distinct := map[wire.Digest]bool{}
			for j := range joiners {
				n := w.join(NodeSpec{})
				wants[n] = slices.Clone(list[:heldOut])
				for _, i := range c.window(j) {
					wants[n] = append(wants[n], list[i])
				}
				for _, b := range wants[n] {
					distinct[b.Digest] = true
				}
				n.wantsFiles(wants[n])
			}
			w.RunFor(4000)
			victim := w.nodes[3]
			had := 0
			for _, k := range victim.files.kept {
				had += k.has.Len()
			}
			victim.crash()
			w.RunFor(2000)
			victim.restart()
			bytes := int64(len(distinct)) * size
			killed := false
			done := w.RunUntil(w.now+300_000, func() bool {
				if c.kills && !killed && allOut(w.nodes[1:], distinct, all) {
					killed = true
					founder.crash()
				}
				return !slices.ContainsFunc(w.nodes[1:], func(n *Node) bool { return !n.gotAll(wants[n], all) })
			})
			if w.err != nil {
				t.Fatal(w.err)
			}
			if !done {
				t.Fatal("not all have what they want")
			}
			ratio := float64(founder.files.gave) / float64(bytes)
			t.Logf("the founder gave %.2f times the distinct %d MB; all have it after %.1f s", ratio, bytes>>20, float64(w.now-Start-5000)/1000)
			if ratio > 1.5 {
				t.Errorf("the founder gave %.2f times the distinct bytes, want at most 1.5", ratio)
			}
			if had == 0 {
				t.Error("the one that was killed had nothing yet")
			}
			if steps := w.nodes[0].Steps; steps < 60 {
				t.Errorf("the founder took %d steps", steps)
			}
		})
	}
}
