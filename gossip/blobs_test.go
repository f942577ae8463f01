package gossip

import (
	"bytes"
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/gossip/serve"
	"atoll/gossip/wire"
)

// content is where a node of a world keeps blobs.
type content struct {
	bytes map[wire.Digest][]byte // whole, or what is there of them
	trees map[wire.Digest][]byte
	has   map[wire.Digest]wire.PartSet
	gave  int64 // bytes of parts
	wrong bool  // gives what is no part
	lost  map[wire.Digest]bool
}

func newContent() content {
	return content{bytes: map[wire.Digest][]byte{}, trees: map[wire.Digest][]byte{}, has: map[wire.Digest]wire.PartSet{}, lost: map[wire.Digest]bool{}}
}

func (n *node) storePart(e StorePart) {
	s := &n.content
	if n.full {
		n.w.after(1, func() { n.do(func() { n.core.PartStored(n.w.now, e.Digest, e.Part.Index, ErrNotStored) }) })
		return
	}
	if s.bytes[e.Digest] == nil {
		s.bytes[e.Digest], s.trees[e.Digest] = make([]byte, e.Part.Size()), e.Part.Tree
	}
	if had := s.has[e.Digest]; had.Has(e.Part.Index) {
		n.w.t.Errorf("node %d stores part %d twice", n.index, e.Part.Index)
	}
	copy(s.bytes[e.Digest][e.Part.Index*wire.PartSize:], e.Part.Bytes)
	s.has[e.Digest] = s.has[e.Digest].With(setOf(e.Part.Index))
	core := n.core
	n.w.after(1, func() {
		if n.up && n.core == core {
			n.do(func() { n.core.PartStored(n.w.now, e.Digest, e.Part.Index, nil) })
		}
	})
}

func setOf(parts ...int) (s wire.PartSet) {
	for _, i := range parts {
		s.Add(i)
	}
	return s
}

func (n *node) replyPart(e ReplyPart) {
	s := &n.content
	if s.lost[e.Digest] {
		n.core.DropBlob(n.w.now, e.Digest)
		n.reply(e.Handle, wire.Response{Status: wire.NotFound}.Encode())
		return
	}
	blob := s.bytes[e.Digest]
	part := wire.Part{Index: e.Index, Tree: s.trees[e.Digest], Bytes: blob[e.Index*wire.PartSize:][:wire.PartLen(int64(len(blob)), e.Index)]}
	b := part.Encode()
	if s.wrong {
		b[len(b)-1] ^= 1
	}
	s.gave += int64(len(part.Bytes))
	n.reply(e.Handle, wire.Response{Status: wire.OK, Body: b}.Encode())
}

// files are blobs with a number each.
type files struct {
	bytes map[wire.Digest][]byte
	trees map[wire.Digest][]byte
	list  []Blob
}

func newFiles(t testing.TB, n, size int) files {
	f := files{map[wire.Digest][]byte{}, map[wire.Digest][]byte{}, nil}
	for i := range n {
		b := make([]byte, size)
		r := rand.New(rand.NewPCG(7, uint64(i)))
		for at := 0; at+8 <= size; at += 8 {
			binary.LittleEndian.PutUint64(b[at:], r.Uint64())
		}
		tree, d, err := wire.TreeOf(bytes.NewReader(b), int64(size))
		if err != nil {
			t.Fatal(err)
		}
		f.bytes[d], f.trees[d] = b, tree
		f.list = append(f.list, Blob{d, int64(size)})
	}
	return f
}

// holds has a node have files whole.
func (n *node) holds(f files, which ...int) {
	for _, i := range which {
		b := f.list[i]
		n.content.bytes[b.Digest], n.content.trees[b.Digest] = f.bytes[b.Digest], f.trees[b.Digest]
		n.content.has[b.Digest] = wire.AllParts(wire.PartCount(b.Size))
		n.core.KeepBlob(n.w.now, b)
	}
}

func (f files) some(which ...int) (list []Blob) {
	for _, i := range which {
		list = append(list, f.list[i])
	}
	return list
}

func (n *node) wantsBlobs(list []Blob) {
	n.do(func() { n.core.WantBlobs(n.w.now, list) })
}

// got reports whether a node has files whole, as they are.
func (n *node) got(f files, list []Blob) bool {
	for _, b := range list {
		if n.content.has[b.Digest].Len() != wire.PartCount(b.Size) || !bytes.Equal(n.content.bytes[b.Digest], f.bytes[b.Digest]) {
			return false
		}
	}
	return true
}

func numbersTo(n int) (all []int) {
	for i := range n {
		all = append(all, i)
	}
	return all
}

// ofLinks sets what all uplinks carry, in bytes per ms.
func (w *world) ofLinks(rate float64) {
	for _, n := range w.nodes {
		n.rate = rate
	}
}

const mbit20 = 2500 // bytes per ms

// Eight that join at once have most of each other: who had it first uploads each part about once,
// whether they want the same shards or each its own.
func TestEightFetchAtOnce(t *testing.T) {
	t.Parallel()
	const joiners, heldOut, window, size = 8, 1, 2, 16 * wire.PartSize
	for _, c := range []struct {
		name   string
		shards int
		window func(joiner int) []int
		within float64 // times the bytes of one over its link, or over the founder's if each wants its own
	}{
		{"the same window", heldOut + window, func(int) []int { return []int{1, 2} }, 2},
		{"overlapping windows", heldOut + 5, func(j int) []int { return []int{1 + j%5, 1 + (j+1)%5} }, 2},
		{"disjoint windows", heldOut + joiners*window, func(j int) []int { return []int{1 + 2*j, 2 + 2*j} }, 1.5},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := newFiles(t, c.shards, size)
			w := newWorld(t, 70, 1+joiners, options{link: mbit20})
			w.ofLinks(mbit20)
			w.nodes[0].holds(f, numbersTo(c.shards)...)
			lists, distinct := map[*node][]Blob{}, map[wire.Digest]int64{}
			for j, n := range w.nodes[1:] {
				lists[n] = f.some(slices.Concat(numbersTo(heldOut), c.window(j))...)
				for _, b := range lists[n] {
					distinct[b.Digest] = b.Size
				}
				n.wantsBlobs(lists[n])
			}
			all := int64(0)
			for _, size := range distinct {
				all += size
			}
			began := w.now
			if !w.runUntilTrue(w.now+600_000, func() bool {
				return !slices.ContainsFunc(w.nodes[1:], func(n *node) bool { return !n.got(f, lists[n]) })
			}) {
				t.Fatal("not all have what they want")
			}
			ratio := float64(w.nodes[0].content.gave) / float64(all)
			least := float64(max(all, (heldOut+window)*size)) / mbit20
			t.Logf("the founder gave %.2f times the distinct bytes (%d MB), after %.1f s of at least %.1f", ratio, all>>20, float64(w.now-began)/1000, least/1000)
			if ratio > 1.5 {
				t.Errorf("the founder gave %.2f times the distinct bytes, want at most 1.5", ratio)
			}
			if took := float64(w.now - began); took > c.within*least+5000 {
				t.Errorf("all have it after %.0f ms, want at most %.1f times %.0f", took, c.within, least)
			}
		})
	}
}

// What is first in the list comes first.
func TestBlobsComeInOrderOfNeed(t *testing.T) {
	f := newFiles(t, 3, 4*wire.PartSize)
	w := newWorld(t, 71, 2, options{link: mbit20})
	w.nodes[0].holds(f, 0, 1, 2)
	n := w.nodes[1]
	n.wantsBlobs(f.some(2, 0, 1))
	for i, b := range f.some(2, 0, 1) {
		if !w.runUntilTrue(w.now+60_000, func() bool { return n.got(f, []Blob{b}) }) {
			t.Fatalf("blob %d never came", i)
		}
		if i < 2 && n.got(f, f.some(1)) {
			t.Error("the last came before the others")
		}
	}
}

// Snapshot sources that lie, die, have lost the file, or say Busy for ever: what others have comes, and
// nothing wrong is kept.
func TestBlobsComeInSpiteOfFaults(t *testing.T) {
	for name, spoil := range map[string]func(w *world, f files){
		"one lies":    func(w *world, _ files) { w.nodes[0].content.wrong = true },
		"one is mute": func(w *world, _ files) { w.nodes[0].ignores = wire.GetPart },
		"one pauses":  func(w *world, _ files) { w.nodes[0].do(func() { w.nodes[0].core.Pause(w.now, true) }) },
		"one lost them": func(w *world, f files) {
			w.nodes[0].content.lost = map[wire.Digest]bool{f.list[0].Digest: true, f.list[1].Digest: true}
		},
		"one dies": func(w *world, _ files) { w.after(800, func() { w.kill(0) }) },
		"one claims all and has nothing": func(w *world, f files) {
			w.nodes[0].lie = func(kind wire.RequestKind, b []byte) []byte {
				if kind == wire.GetPart {
					return wire.Response{Status: wire.NotFound}.Encode()
				}
				return b
			}
		},
		"one answers nonsense": func(w *world, f files) {
			w.nodes[0].lie = func(kind wire.RequestKind, b []byte) []byte {
				if kind == wire.GetPart || kind == wire.GetHoldings {
					return []byte{byte(wire.OK), 7}
				}
				return b
			}
		},
		"the own disk is full for a while": func(w *world, _ files) {
			w.nodes[2].full = true
			w.after(3000, func() { w.nodes[2].full = false })
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFiles(t, 2, 6*wire.PartSize+5)
			w := newWorld(t, 72, 3, options{link: mbit20})
			w.nodes[0].holds(f, 0, 1)
			w.nodes[1].holds(f, 0, 1)
			n := w.nodes[2]
			spoil(w, f)
			n.wantsBlobs(f.list)
			if !w.runUntilTrue(w.now+120_000, func() bool { return n.got(f, f.list) }) {
				t.Fatalf("they never came: %+v", n.core.Wanted())
			}
			if len(n.core.Wanted()) != 0 {
				w.runUntil(w.now + 1000)
			}
			if left := n.core.Wanted(); len(left) != 0 {
				t.Errorf("still wants %+v", left)
			}
		})
	}
}

// A node that begins anew with parts of a file asks for the rest alone.
func TestPartsOfAnEarlierProcess(t *testing.T) {
	f := newFiles(t, 1, 5*wire.PartSize)
	w := newWorld(t, 73, 2, options{link: mbit20})
	w.nodes[0].holds(f, 0)
	n, b := w.nodes[1], f.list[0]
	n.content.bytes[b.Digest], n.content.trees[b.Digest], n.content.has[b.Digest] = bytes.Clone(f.bytes[b.Digest]), f.trees[b.Digest], setOf(0, 3)
	n.core.KeepParts(w.now, b.Digest, setOf(0, 3))
	n.wantsBlobs(f.list)
	if !w.runUntilTrue(w.now+60_000, func() bool { return n.got(f, f.list) }) {
		t.Fatal("the rest never came")
	}
	if gave := w.nodes[0].content.gave; gave != 3*wire.PartSize {
		t.Errorf("%d bytes came, want three parts", gave)
	}
}

// What is not wanted any more is not asked for any more.
func TestBlobsNotWantedAnyMore(t *testing.T) {
	f := newFiles(t, 2, 16*wire.PartSize)
	w := newWorld(t, 74, 2, options{link: mbit20})
	w.nodes[0].holds(f, 0, 1)
	n := w.nodes[1]
	n.wantsBlobs(f.some(0))
	w.runUntil(w.now + 1500)
	n.wantsBlobs(f.some(1))
	if !w.runUntilTrue(w.now+60_000, func() bool { return n.got(f, f.some(1)) }) {
		t.Fatal("it never came")
	}
	if n.got(f, f.some(0)) {
		t.Error("the other came as well")
	}
}

// While rounds are made, payloads leave before parts; see serve.MaxChunksBeside.
func TestPartsLeaveBesidePayloads(t *testing.T) {
	a := newAlone()
	a.core.KeepBlob(0, Blob{wire.Digest{1}, 8 * wire.PartSize})
	id := a.hold(9, 1, 5000)
	a.ask(7, 50, payloadRequest(id, 0))
	var handles []uint64
	for p := range byte(4) {
		for _, r := range find[ReplyPart](a.ask(uint64(p), p+1, wire.Request{Kind: wire.GetPart, Digest: wire.Digest{1}, Parts: wire.AllParts(8)})) {
			handles = append(handles, r.Handle)
		}
	}
	if len(handles) != serve.MaxChunksBeside {
		t.Errorf("parts leave to %v beside a payload, want %d", handles, serve.MaxChunksBeside)
	}
}

// A peer that does not know these requests is asked once in a while.
func TestOlderPeersAreLeftAlone(t *testing.T) {
	a := newAlone()
	a.up(1)
	a.core.WantBlobs(a.now, []Blob{{wire.Digest{1}, 1}})
	q := questions(t, a.wait(holdingsMs, 1), wire.GetHoldings)
	if len(q) != 1 {
		t.Fatalf("asked %+v", q)
	}
	a.fails(q[0], wire.Refused)
	if again := questions(t, a.wait(20*holdingsMs, 1), wire.GetHoldings); len(again) != 0 {
		t.Errorf("asked %d times more", len(again))
	}
	if again := questions(t, a.wait(deafMs, 1), wire.GetHoldings); len(again) == 0 {
		t.Error("never asked again")
	}
}
