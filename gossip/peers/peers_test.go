package peers

import (
	"crypto/ed25519"
	"slices"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// oneChain is a chain of which nothing is known but who contributed to it.
type oneChain map[wire.PeerID]bool

func (oneChain) Fragments() int                              { return 2 }
func (oneChain) Closed(int) uint32                           { return 0 }
func (oneChain) ChainDigest(int, uint32) (wire.Digest, bool) { return wire.Digest{1}, true }
func (oneChain) StateDigest(int, uint32) (wire.Digest, bool) { return wire.Digest{2}, true }
func (c oneChain) Contributed(author wire.PeerID) bool       { return c[author] }
func (c oneChain) FoldedTokens() uint64                      { return uint64(len(c)) }
func (oneChain) TokensAt([]uint32) (uint64, bool)            { return 0, true }

// aloneAmong makes the peers of a node that knows nobody, on a chain to which some contributed.
func aloneAmong(contributed ...wire.PeerID) *Peers {
	c := oneChain{}
	for _, id := range contributed {
		c[id] = true
	}
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	m := New(&effect.Queue{}, Config{
		Self: wire.PeerIDOf(key), Key: key, HeartbeatMinMs: 1000, TargetPeers: 12, Know: func(wire.PeerID) {}, Notes: func() []any { return nil }, Bulk: func(*Peer) bool { return false },
	}, c)
	m.Heartbeats.Set(SelfState{State: wire.Training})
	return m
}

// has makes a peer known whose record names addresses.
func (m *Peers) has(id byte, addrs ...string) *Peer {
	p := m.Ensure(wire.PeerID{id}, false)
	p.Keep(hello.Signed{Bytes: []byte{1}}, &hello.Record{Seq: p.peerList.record.Seq + 1, Addrs: addrs, Relays: p.peerList.record.Relays})
	return p
}

// dials are the addresses that are dialled since it was last asked.
func (m *Peers) dials() (dials []effect.Dial) {
	for _, e := range m.Take() {
		if d, ok := e.(effect.Dial); ok {
			dials = append(dials, d)
		}
	}
	return dials
}

// wait lets some ms pass.
func (m *Peers) wait(ms effect.Time) {
	for end := m.Now + ms; m.Now < end; {
		m.At(m.Now + 20)
		m.Tick()
	}
}

// Strangers that begin sessions leave some of the peer list's slots to peers of its own choice.
func TestStrangersSessionsLeaveRoom(t *testing.T) {
	m := aloneAmong(wire.PeerID{1})
	full := m.Config.TargetPeers
	for i := range 3 * full {
		m.Up(wire.PeerID{250, byte(i)}, hello.Signed{}, hello.Record{}, false)
	}
	if n := m.list.connections(); n != full-mostChosen {
		t.Errorf("%d of them count, want %d", n, full-mostChosen)
	}
	m.Up(wire.PeerID{1}, hello.Signed{}, hello.Record{}, false)
	if n := m.list.connections(); n != full-mostChosen+1 {
		t.Errorf("with one that is known %d count", n)
	}
	m.has(2, "/ip4/10.0.0.1/tcp/1")
	m.list.dialSome()
	if dials := m.dials(); len(dials) != 1 || dials[0].Peer != (wire.PeerID{2}) {
		t.Fatalf("dials %v", dials)
	}
	m.Up(wire.PeerID{2}, hello.Signed{}, hello.Record{}, false)
	if n := m.list.connections(); n != full-mostChosen+2 {
		t.Errorf("with one of its own choice %d count", n)
	}
}

// A node dials what both records of a peer name, those of its own network first, and the
// newer replace the older.
func TestPeerListKeepsBothKinds(t *testing.T) {
	p := aloneAmong().Ensure(wire.PeerID{9}, false)
	keep := func(seq uint64, near bool, addr string) {
		p.Keep(hello.Signed{Bytes: []byte(addr)}, &hello.Record{Seq: seq, Near: near, Addrs: []string{addr}})
	}
	keep(1, false, "out")
	keep(1, true, "in")
	keep(1, false, "again")
	if !slices.Equal(p.Addrs(), []string{"in", "out"}) {
		t.Errorf("dials %v", p.Addrs())
	}
	keep(2, true, "in2")
	keep(1, false, "old")
	if !slices.Equal(p.Addrs(), []string{"in2"}) {
		t.Errorf("dials %v", p.Addrs())
	}
}

// Peers in networks where a node has no neighbour are dialled before others, those whose network
// does not show as well, and these where there are no more.
func TestPeerListDialsOtherNetworksFirst(t *testing.T) {
	m := aloneAmong()
	m.Up(wire.PeerID{1}, hello.Signed{}, hello.Record{Seq: 1, Addrs: []string{"/ip4/5.0.0.1/tcp/1"}}, false)
	for id, addr := range map[byte]string{
		2: "/ip4/5.0.7.2/tcp/1", 3: "/ip4/5.0.9.3/tcp/1", 4: "/ip4/6.0.0.4/tcp/1", 5: "/ip4/6.0.1.5/tcp/1",
		6: "/ip6/2600:1::6/tcp/1", 7: "/ip6/2600:1:2::7/tcp/1", 8: "/ip4/5.0.0.1/tcp/1/p2p/x/p2p-circuit", 9: "/dns4/example.org/tcp/1",
	} {
		m.has(id, addr)
	}
	networks := func() (ids []byte) {
		for _, e := range m.dials() {
			ids = append(ids, e.Peer[0])
		}
		slices.Sort(ids)
		return ids
	}
	m.list.dialSome()
	if got := networks(); !slices.Equal(got, []byte{2, 4, 6, 9}) {
		t.Errorf("dials %v first", got)
	}
	m.list.dialSome()
	if got := networks(); !slices.Equal(got, []byte{3, 5, 7, 8}) {
		t.Errorf("dials %v then", got)
	}
}

// Peers that are reached through relays which a node is connected to anyway come before those
// whose relay it would have to dial, and are dialled through these alone at first.
func TestPeerListDialsThroughRelaysAtHand(t *testing.T) {
	const here, there = "/ip4/5.0.0.1/tcp/1/p2p/h", "/ip4/6.0.0.1/tcp/1/p2p/t"
	m := aloneAmong()
	m.Up(wire.PeerID{1}, hello.Signed{}, hello.Record{Seq: 1, Relays: true, Addrs: []string{here}}, false)
	for id := byte(2); id < 12; id++ {
		addrs := []string{there + "/p2p-circuit/p2p/x"}
		if id%3 == 0 {
			addrs = append(addrs, here+"/p2p-circuit/p2p/x")
		}
		m.has(id, addrs...)
	}
	m.dials()
	m.list.dialSome()
	dials := m.dials()
	for i, e := range dials {
		at := e.Peer[0]%3 == 0
		if at != (i < 3) || at && len(e.Addrs) != 1 {
			t.Errorf("dial %d is of %d at %v", i, e.Peer[0], e.Addrs)
		}
	}
	if len(dials) != MaxDials {
		t.Errorf("%d dials", len(dials))
	}
	if again := m.list.waysTo(m.Find(wire.PeerID{3})); len(again) != 2 {
		t.Errorf("after an attempt in vain it is dialled at %v", again)
	}
}

// Where addresses change, a peer that is lost is dialled soon.
func TestPeerListRedialsSoon(t *testing.T) {
	for _, moves := range []bool{false, true} {
		m := aloneAmong()
		if moves {
			m.Reached(true)
		}
		m.Up(wire.PeerID{5}, hello.Signed{}, hello.Record{Seq: 1, Addrs: []string{"5a"}}, false)
		m.wait(redialMs)
		m.list.nextDial = m.Now + DialPeriodMs
		m.Down(wire.PeerID{5})
		m.dials()
		m.wait(redialMs)
		if got := m.dials(); len(got) > 0 != moves {
			t.Errorf("addresses change %v: dials %v", moves, got)
		}
	}
}

// One that is lost is dialled often for a while, then as seldom as any other.
func TestPeerListDialLost(t *testing.T) {
	m := aloneAmong()
	m.Up(wire.PeerID{5}, hello.Signed{}, hello.Record{Seq: 1, Addrs: []string{"a"}}, false)
	m.Down(wire.PeerID{5})
	lost, pause := effect.Time(lostForMs), effect.Time(DialBackoffMinMs)
	longest, last := effect.Time(0), m.Now
	for m.Now < lost+20*pause {
		m.At(m.Now + 500)
		m.Tick()
		if len(m.dials()) > 0 {
			if m.Now < lost {
				longest = max(longest, m.Now-last)
			}
			last = m.Now
		}
	}
	if longest > pause+DialPeriodMs {
		t.Errorf("a pause of %d for a peer that was lost", longest)
	}
	if m.Now-last < 2*pause {
		t.Error("no longer pause for one that is gone")
	}
}

// Nobody waits for a peer that holds nothing of the run.
func TestStatelessIsNotAwaited(t *testing.T) {
	for _, stateless := range []bool{false, true} {
		m := aloneAmong()
		m.Up(wire.PeerID{5}, hello.Signed{Bytes: []byte{1}}, hello.Record{Seq: 1, Role: hello.Observer, Stateless: stateless}, false)
		_, lacking := m.Heartbeats.Lacking()
		if awaited := m.Heartbeats.awaited(m.Find(wire.PeerID{5})); lacking == stateless || awaited == stateless {
			t.Errorf("stateless %v: lacking %v, awaited %v", stateless, lacking, awaited)
		}
	}
}

// Two chains have in common what peers on the other one have shown. What a peer
// shows that left with this node does not count, nor what it shows now.
func TestCommonWith(t *testing.T) {
	m := aloneAmong()
	show := func(id byte, closed uint32, same bool) {
		p := m.Find(wire.PeerID{id})
		p.compared.equal = []uint32{closed}
		p.compared.apart = map[bool]int{false: HeartbeatsToRepair}[same]
	}
	for id := range byte(5) {
		m.Ensure(wire.PeerID{id + 1}, false)
	}
	m.common = []uint32{9}
	common := func(id byte) uint32 { return m.CommonWith(wire.PeerID{id})[0] }
	if got := common(1); got != 9 {
		t.Errorf("%d in common with one that showed nothing, 9 with all", got)
	}
	show(1, 4, false)
	show(2, 9, true)
	show(3, 6, false)
	for id, want := range map[byte]uint32{1: 4, 2: 9, 3: 6, 4: 4, 77: 4} {
		if got := common(id); got != want {
			t.Errorf("%d in common with peer %d, want %d", got, id, want)
		}
	}
}

// Another chain has only that in common with the chain before which both had.
func TestCommonOfAnotherChain(t *testing.T) {
	m := aloneAmong()
	for id, closed := range map[byte]uint32{1: 900, 2: 400} {
		m.Ensure(wire.PeerID{id}, false).compared.equal = []uint32{closed, closed}
	}
	m.common = []uint32{900, 900}
	m.Heartbeats.Rebase([]uint32{500, 1000})
	for id, want := range map[byte][]uint32{1: {500, 900}, 2: {400, 400}} {
		if got := m.CommonWith(wire.PeerID{id}); !slices.Equal(got, want) {
			t.Errorf("%d in common with peer %d, want %d", got, id, want)
		}
	}
	if got := m.Common(); !slices.Equal(got, []uint32{500, 900}) {
		t.Errorf("%d in common with some", got)
	}
}
