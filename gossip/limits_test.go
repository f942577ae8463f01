package gossip

import (
	"encoding/binary"
	"errors"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// alone is a core without a network: the test plays all other sides.
type alone struct {
	core  *Core
	chain *fakeChain
	now   Time
	run   wire.RunID
}

func newAlone() *alone { return newAloneOn(func(c *fakeChain) Chain { return c }) }

// newAloneOn is newAlone of a core that is shown something else in place of a chain.
func newAloneOn(shown func(*fakeChain) Chain) *alone {
	a := &alone{run: wire.RunID{3}}
	a.chain = newFakeChain(a.run, 2)
	key := testKey(0)
	a.core = New(Config{Self: wire.PeerIDOf(key), Key: key, Run: a.run, HeartbeatMinMs: 1000, Unpack: unpacked}, shown(a.chain))
	a.core.SetSelf(0, peers.SelfState{State: wire.Training})
	return a
}

func (a *alone) connect(ids ...byte) {
	for _, i := range ids {
		a.core.Step(a.now, PeerUp{Peer: wire.PeerID{i}})
	}
	a.core.Effects()
}

// heardOf says that something arrived from a peer.
func (c *Core) heardOf(now Time, from wire.PeerID) {
	c.at(now)
	c.alive(from)
}

// size is the largest of the Sizes of a core with a name.
func (c *Core) size(of string) (n int) {
	c.Sizes(func(what string, count, most int) {
		if what == of {
			n = max(n, count)
		}
	})
	return n
}

// header is one that the core takes as verified.
func (a *alone) header(author byte, round uint32, salt uint32) wire.SignedHeader {
	h := wire.Header{Author: wire.PeerID{author}, Round: round, Steps: 1, Size: 3000}
	binary.BigEndian.PutUint32(h.Payload[:], salt)
	return wire.SignedHeader{Header: h}
}

func calls(effects []Effect) []Call {
	var out []Call
	for _, e := range effects {
		if c, ok := e.(Call); ok {
			out = append(out, c)
		}
	}
	return out
}

func count[T Effect](effects []Effect) int {
	n := 0
	for _, e := range effects {
		if _, ok := e.(T); ok {
			n++
		}
	}
	return n
}

func TestCallWithoutAnswerEnds(t *testing.T) {
	a := newAlone()
	a.connect(1)
	s := a.header(9, 1, 0)
	a.core.Step(a.now, Received{From: wire.PeerID{1}, Message: wire.Message{Header: &s}})
	c := calls(a.core.Effects())[0]
	a.core.heardOf(a.now+5000, wire.PeerID{1})
	a.core.Tick(c.TimeoutMs + effect.CallGraceMs + 1)
	if n := a.core.size("pulls"); n > 1 {
		t.Errorf("%d pulls in flight after one was forgotten", n)
	}
	if a.core.env.Calls()[0] == c.ID {
		t.Error("a call that was never answered stays open")
	}
}

// TestBoundsUnderAnyInput throws random inputs at one core and checks every
// bound after each; node.checkBounds has the list.
func TestBoundsUnderAnyInput(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAlone()
		handle := uint64(0)
		peer := rapid.Custom(func(t *rapid.T) wire.PeerID { return wire.PeerID{rapid.ByteRange(1, 12).Draw(t, "peer")} })
		t.Repeat(map[string]func(*rapid.T){
			"tick": func(t *rapid.T) {
				a.now += Time(rapid.IntRange(0, 3000).Draw(t, "ms"))
				a.core.Tick(a.now)
			},
			"up":   func(t *rapid.T) { a.connect(peer.Draw(t, "id")[0]) },
			"down": func(t *rapid.T) { a.core.Step(a.now, PeerDown{Peer: peer.Draw(t, "id")}) },
			"header": func(t *rapid.T) {
				s := a.header(peer.Draw(t, "author")[0], rapid.Uint32Range(1, 40).Draw(t, "round"), rapid.Uint32Range(0, 3).Draw(t, "salt"))
				a.core.Step(a.now, Received{From: peer.Draw(t, "from"), Message: wire.Message{Header: &s}})
			},
			"heartbeat": func(t *rapid.T) {
				b := wire.Heartbeat{Author: peer.Draw(t, "author"), Seq: uint64(a.now), State: wire.State(rapid.IntRange(1, 5).Draw(t, "state")),
					Closed: []uint32{rapid.Uint32().Draw(t, "closed"), 3}, Unpublished: []uint64{0, 0}, Folded: 5}
				a.core.Step(a.now, Received{From: peer.Draw(t, "from"), Message: wire.Message{Heartbeat: &b}})
			},
			"answer": func(t *rapid.T) {
				if len(a.core.env.Calls()) > 0 {
					c := rapid.SampledFrom(a.core.env.Calls()).Draw(t, "call")
					a.core.Step(a.now, Answered{Call: c, Response: rapid.SliceOfN(rapid.ByteRange(0, 5), 0, 40).Draw(t, "bytes")})
				}
			},
			"serve": func(t *rapid.T) {
				handle++
				kind := wire.RequestKind(rapid.IntRange(0, 8).Draw(t, "kind"))
				r := wire.Request{Kind: kind, WaitMs: 5000, Digest: wire.Digest{rapid.Byte().Draw(t, "id")}}
				a.core.Step(a.now, Requested{Handle: handle, From: peer.Draw(t, "from"), Request: r.Encode()})
			},
			"stored":  func(t *rapid.T) { a.core.Complete(a.now, wire.Digest{rapid.Byte().Draw(t, "id")}, nil) },
			"invalid": func(t *rapid.T) { a.core.Complete(a.now, wire.Digest{rapid.Byte().Draw(t, "id")}, errors.New("no")) },
			"fetch":   func(t *rapid.T) { a.core.FetchSnapshot(a.now) },
			"": func(t *rapid.T) {
				a.core.Effects()
				if what, is, most := a.core.overLimit(); what != "" {
					t.Fatalf("%d %s, at most %d", is, what, most)
				}
			},
		})
	})
}

func TestConfigValidateNamesTheField(t *testing.T) {
	key := testKey(1)
	good := Config{Self: wire.PeerIDOf(key), Key: key}
	if err := good.Validate(); err != nil {
		t.Fatal(err)
	}
	for _, change := range []func(*Config){
		func(c *Config) { c.Key = nil },
		func(c *Config) { c.Self = wire.PeerID{1} },
		func(c *Config) { c.HeartbeatMinMs = -1 },
		func(c *Config) { c.TargetPeers = -1 },
	} {
		bad := good
		change(&bad)
		if bad.Validate() == nil {
			t.Errorf("%+v passes", bad)
		}
	}
}

func TestUnwantedDeltaDoesNotHoldUpRepair(t *testing.T) {
	a := newAlone()
	a.connect(1)
	p := a.core.env.Find(wire.PeerID{1})
	h := a.header(9, 1, 0)
	id := h.Header.ID(a.run)
	s := &session{peer: p, waiting: map[wire.Digest]uint16{id: 0}, fragments: make([]comparison, 2)}
	s.fragments[0] = comparison{to: 3, theirs: wire.RangeAnswer{Closed: 3}}
	a.core.repair.sessions = append(a.core.repair.sessions, s)
	a.core.fetch.Want(id, &h, p.ID)
	a.core.Effects()
	a.core.Complete(a.now, id, ErrUnwanted)
	if e := a.core.Effects(); count[CatchUp](e) != 1 {
		t.Errorf("no CatchUp without an unwanted delta: %v", e)
	}
}

// A node whose disk is full for long cannot keep up with a repair. Once the peer
// is past the window it begins another one, and takes a snapshot.
func TestOutrunRepairEnds(t *testing.T) {
	a := newAlone()
	a.connect(1)
	p := a.core.env.Find(wire.PeerID{1})
	p.Heartbeat = &wire.Heartbeat{State: wire.Training, Closed: make([]uint32, 2)}
	s := &session{peer: p, until: repairTtlMs, waiting: map[wire.Digest]uint16{{1}: 0}, fragments: make([]comparison, 2)}
	a.core.repair.sessions = append(a.core.repair.sessions, s)
	for _, c := range []struct {
		closed      uint32
		reconciling bool
		ends        bool
	}{
		{a.core.env.cfg.WindowUnion, true, false},
		{a.core.env.cfg.WindowUnion + 1, false, false}, // it may be about to take a snapshot
		{a.core.env.cfg.WindowUnion + 1, true, true},
	} {
		p.Heartbeat.Closed[1], s.reconciling = c.closed, c.reconciling
		a.core.Tick(a.now)
		if ended := len(a.core.repair.sessions) == 0; ended != c.ends {
			t.Errorf("peer at round %d of 0, reconciling %t: ended %t", c.closed, c.reconciling, ended)
		}
	}
}
