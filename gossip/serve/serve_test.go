package serve

import (
	"bytes"
	"crypto/ed25519"
	"encoding/binary"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/fetch"
	"atoll/gossip/headers"
	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// chain is an outer side of which nothing is known but who contributed to it.
type chain struct {
	contributed map[wire.PeerID]bool
	tokens      uint64
}

func (*chain) Fragments() int                                        { return 2 }
func (*chain) Closed(int) uint32                                     { return 0 }
func (*chain) ChainDigest(int, uint32) (wire.Digest, bool)           { return wire.Digest{1}, true }
func (*chain) StateDigest(int, uint32) (wire.Digest, bool)           { return wire.Digest{2}, true }
func (*chain) SetDigest(int, uint32) (wire.Digest, bool)             { return wire.Digest{3}, true }
func (*chain) Signed(int, uint32) []wire.SignedHeader                { return nil }
func (*chain) SignedBy(int, uint32, wire.PeerID) []wire.SignedHeader { return nil }
func (*chain) Newest(wire.PeerID) []wire.SignedHeader                { return nil }
func (*chain) Has(wire.Digest) bool                                  { return false }
func (c *chain) Contributed(author wire.PeerID) bool                 { return c.contributed[author] }
func (c *chain) FoldedTokens() uint64                                { return c.tokens }
func (*chain) TokensAt([]uint32) (tokens uint64, known bool)         { return 0, true }

// alone is what one node serves: the test plays those that ask.
type alone struct {
	*Serve
	chain *chain
}

// newAlone is a node of a run that has begun, with nobody that is known.
func newAlone() *alone {
	a := &alone{chain: &chain{contributed: map[wire.PeerID]bool{}, tokens: 1}}
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	m := peers.New(&effect.Queue{}, peers.Config{
		Self: wire.PeerIDOf(key), Key: key, HeartbeatMinMs: 1000, TargetPeers: peers.DefaultTarget,
		Know: func(wire.PeerID) {}, Notes: func() []any { return []any{&Peer{}, &fetch.Peer{}} }, Bulk: func(*peers.Peer) bool { return false },
	}, a.chain)
	m.Heartbeats.Set(peers.SelfState{State: wire.Training})
	seen := headers.New(m.Table, headers.Bounds{}, a.chain)
	f := fetch.New(m.Table, &m.Heartbeats, fetch.Config{})
	a.Serve = New(m.Table, &m.Heartbeats, Config{UnionBase: func(int) uint32 { return 0 }}, a.chain, seen, f, nil)
	return a
}

// up begins a session with a peer.
func (a *alone) up(id wire.PeerID) *peers.Peer {
	p := a.Ensure(id, true)
	p.Keep(hello.Signed{}, &hello.Record{Author: id})
	return p
}

// asks has a peer ask for a chunk, and reports whether it has a slot.
func (a *alone) asks(id wire.PeerID) bool { return a.chunkQueue.asker(a.up(id)) != nil }

// keyOf is one of many keys that nobody has seen.
func keyOf(i uint32) (id wire.PeerID) {
	id[0] = 250
	binary.BigEndian.PutUint32(id[1:], i)
	return id
}

// Who asks for one chunk after the other, and has nothing waiting in between, has
// one turn all the same.
func TestTurnsAreNotRenewed(t *testing.T) {
	a := newAlone()
	p := a.up(wire.PeerID{1})
	a.At(1000)
	ask := func(handle uint64) {
		a.Request(handle, p.ID, wire.Request{Kind: wire.GetChunk, Digest: wire.Digest{byte(handle)}}.Encode())
	}
	for i := range uint64(10) {
		ask(i)
		a.Left(i)
		a.At(a.Now + ChunkTurnMs/4)
	}
	if of := peerOf(p).turn; of.from != 1000 || of.chunks != 10 {
		t.Errorf("turn %+v, want one of ten chunks", of)
	}
	a.At(a.Now + ChunkTurnMs)
	if ask(99); peerOf(p).turn.from != a.Now {
		t.Errorf("turn %+v after a pause, want a new one", peerOf(p).turn)
	}
}

// One who is known takes the place of a stranger at once, and keeps it.
func TestAskersThatAreKnownComeFirst(t *testing.T) {
	a := newAlone()
	for i := range uint32(2 * MaxChunkAskers) {
		if got := a.asks(keyOf(i)); got != (i < MaxChunkAskers) {
			t.Errorf("stranger %d has a slot: %v", i, got)
		}
	}
	for i := range 2 * MaxChunkAskers {
		id := wire.PeerID{byte(i + 1)}
		a.chain.contributed[id] = true
		if got := a.asks(id); got != (i < MaxChunkAskers) {
			t.Errorf("member %d has a slot: %v", i, got)
		}
	}
}

// Members of whom nothing is folded yet take turns: the slowest of them gives way to the next one when its turn
// is over.
func TestMembersTakeTurns(t *testing.T) {
	a := newAlone()
	asks := func(i int) bool { return a.asks(wire.PeerID{byte(i + 1)}) }
	owner, run := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, ed25519.SeedSize)), wire.RunID{}
	a.Config.Members = member.NewTable(run, []wire.PeerID{wire.PeerIDOf(owner)})
	pass := member.Issue(owner, run, member.Invite{}, owner)
	for i := range MaxChunkAskers + 1 {
		if _, err := a.Config.Members.Add(pass.AdmitOther(run, wire.PeerID{byte(i + 1)})); err != nil {
			t.Fatal(err)
		}
	}
	for i := range MaxChunkAskers {
		if !asks(i) {
			t.Fatalf("member %d has no slot", i)
		}
	}
	if asks(MaxChunkAskers) {
		t.Error("one more has a slot at once")
	}
	a.At(a.Now + ChunkTurnMs)
	if !asks(MaxChunkAskers) {
		t.Error("one more has no slot after a turn")
	}
}

// Answers to strangers hold an eighth of the memory that answers may take.
func TestStrangersAnswersLeaveRoom(t *testing.T) {
	a := newAlone()
	places := func(id wire.PeerID) (bytes int) {
		for p := a.up(id); a.admit(reply{to: p, bytes: wire.ChunkSize}); {
			bytes += wire.ChunkSize
		}
		return bytes
	}
	if all := places(keyOf(1)) + places(keyOf(2)); all != MaxServing/peers.StrangersShare {
		t.Errorf("%d bytes to strangers", all)
	}
	a.chain.contributed[wire.PeerID{1}] = true
	if got := places(wire.PeerID{1}); got != MaxServingPerPeer {
		t.Errorf("then %d bytes to one that is known", got)
	}
}
