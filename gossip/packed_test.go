package gossip

import (
	"bytes"
	"errors"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// toyPack stands for what packs chunks, which this package does not know.
func toyPack(b []byte) []byte { return append([]byte{'P'}, b...) }

func toyUnpack(packed []byte, size int) ([]byte, error) {
	if len(packed) != 1+size || packed[0] != 'P' {
		return nil, errors.New("it was not packed here")
	}
	return packed[1:], nil
}

// speaks has a peer say that it speaks a minor version. Chunks can be unpacked from now on.
func (a *alone) speaks(id wire.PeerID, minor uint32) {
	a.core.cfg.Unpack = toyUnpack
	a.core.Step(a.now, RecordChanged{Peer: id, Record: hello.Record{Seq: 1, Minor: minor}})
	a.core.Effects()
}

// asksChunks is a core beside a peer of a minor version, and how it asks for the two chunks of its tips.
func asksChunks(t *testing.T, minor uint32) (*alone, wire.PeerID, []question) {
	t.Helper()
	a := newAlone()
	id, q := a.fetches(t, 1)
	a.speaks(id, minor)
	chunks := questions(t, a.gives(q, 1, a.tipsOf(id, 5, 1)), wire.GetChunk, wire.GetPacked)
	if len(chunks) != 2 {
		t.Fatalf("asks %+v", chunks)
	}
	return a, id, chunks
}

// takesTips has the chunks come in an encoding, and fails unless they are the tips.
func (a *alone) takesTips(t *testing.T, chunks []question, kind wire.RequestKind, encode func([]byte) []byte) {
	t.Helper()
	var e []Effect
	for _, q := range chunks {
		if q.Kind != kind || q.call.MaxResponse != kind.MaxResponse() {
			t.Errorf("asks for %v of at most %d bytes, want %v", q.Kind, q.call.MaxResponse, kind)
		}
		for f := range 2 {
			if b := specChunk(f, 0, 1); wire.Sum(b) == q.Digest {
				e = append(e, a.answer(q, encode(b))...)
			}
		}
	}
	for _, s := range find[StoreChunk](e) {
		if wire.Sum(s.Bytes) != s.Digest {
			t.Errorf("stores %d bytes that are not chunk %v", len(s.Bytes), s.Digest)
		}
	}
	if count[StoreChunk](e) != 2 || count[Snapshot](e) != 1 || len(blamed(e)) > 0 {
		t.Errorf("%d chunks stored, %d snapshots, blames %v", count[StoreChunk](e), count[Snapshot](e), blamed(e))
	}
}

func specRawChunks(t *testing.T, _ *spectest.Spec) {
	a, _, chunks := asksChunks(t, 0)
	a.takesTips(t, chunks, wire.GetChunk, func(b []byte) []byte { return bytes.Clone(b) })
}

func specPackedChunks(t *testing.T, _ *spectest.Spec) {
	for _, minor := range []uint32{1, 2} {
		a, _, chunks := asksChunks(t, minor)
		a.takesTips(t, chunks, wire.GetPacked, toyPack)
	}
}

// Who gives something else than the chunk, packed or not, is blamed and asked for no more of it.
func TestPackedGarbage(t *testing.T) {
	for name, body := range map[string][]byte{
		"as it is": specChunk(0, 0, 1), "another": toyPack(make([]byte, 100)), "nothing": {}, "more": make([]byte, wire.ChunkSize+4),
	} {
		a, id, chunks := asksChunks(t, hello.MinorPacked)
		e := a.answer(chunks[0], body)
		sameIDs(t, name, blamed(e), id)
		if count[StoreChunk](e) > 0 || a.core.snapshot.transfer.recruits[id] {
			t.Errorf("%s: %d chunks stored, asked on: %v", name, count[StoreChunk](e), a.core.snapshot.transfer.recruits[id])
		}
	}
}

// A core that cannot unpack asks for chunks as they are.
func TestNothingPackedWithoutUnpack(t *testing.T) {
	a := newAlone()
	id, q := a.fetches(t, 1)
	a.speaks(id, hello.MinorPacked)
	a.core.cfg.Unpack = nil
	if c := questions(t, a.gives(q, 1, a.tipsOf(id, 5, 1)), wire.GetChunk, wire.GetPacked); len(c) == 0 || c[0].Kind != wire.GetChunk {
		t.Errorf("asks %+v", c)
	}
}

func TestChunksAreServedAsAsked(t *testing.T) {
	for kind, packed := range map[wire.RequestKind]bool{wire.GetChunk: false, wire.GetPacked: true} {
		a := specAlone(1)
		e := find[ReplyChunk](a.ask(1, 1, wire.Request{Kind: kind, Digest: wire.Digest{7}}))
		if want := (ReplyChunk{Handle: 1, Digest: wire.Digest{7}, Packed: packed}); len(e) != 1 || e[0] != want {
			t.Errorf("%v: %+v, want %+v", kind, e, want)
		}
	}
}

// Donors of two versions give a joiner its tips, each as it can.
func TestJoinFromOldAndNew(t *testing.T) {
	w := donors(t, 74, 2, 8, 1000)
	w.nodes[0].minor = hello.MinorPacked
	var gave [2]map[wire.RequestKind]int
	for i, n := range w.nodes {
		gave[i] = map[wire.RequestKind]int{}
		n.lie = func(k wire.RequestKind, b []byte) []byte {
			gave[i][k]++
			return b
		}
	}
	n := w.join(w.nodes[0].id)
	if !w.runUntilTrue(w.now+60_000, n.joined) {
		t.Fatalf("not in: %v", n.core.snapshot.transfer.String())
	}
	if gave[0][wire.GetPacked] == 0 || gave[0][wire.GetChunk] > 0 || gave[1][wire.GetChunk] == 0 || gave[1][wire.GetPacked] > 0 {
		t.Errorf("the new one gave %v, the old one %v", gave[0], gave[1])
	}
}
