package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/serve"
	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// wants has a peer ask for a chunk; the handle names both.
func (a *alone) wants(peer byte, number uint64) []Effect {
	return a.ask(uint64(peer)<<32+number, peer, wire.Request{Kind: wire.GetChunk, Digest: wire.Digest{peer, byte(number)}})
}

// given are the peers to whom chunks go.
func given(effects []Effect) (peers []byte) {
	for _, e := range effects {
		if c, ok := e.(ReplyChunk); ok {
			peers = append(peers, byte(c.Handle>>32))
		}
	}
	return peers
}

// Beside a payload of the run one chunk leaves, however many ask.
func TestPayloadsComeBeforeChunks(t *testing.T) {
	a := newAlone()
	id := a.hold(9, 1, 5000)
	a.ask(7, 50, payloadRequest(id, 0))
	var got []byte
	for p := range byte(4) {
		got = append(got, given(a.wants(p+1, 0))...)
	}
	if len(got) != serve.MaxChunksBeside {
		t.Errorf("chunks leave to %v beside a payload, want %d", got, serve.MaxChunksBeside)
	}
	a.core.Step(a.now, Replied{Handle: 7})
	if got = append(got, given(a.core.Effects())...); !slices.Equal(got, []byte{1, 2, 3, 4}) {
		t.Errorf("after the payload chunks leave to %v", got)
	}
}

// Peers that hold all slots, and do not read or read slowly, give way in time; one
// that reads fast stays, and so do contributors.
func TestSlowAskersGiveWay(t *testing.T) {
	a := newAlone()
	a.core.env.Config.Trusted = []wire.PeerID{{1}}
	for p := range byte(serve.MaxChunkAskers) {
		a.wants(p+1, 0)
		a.wants(p+1, 1)
	}
	a.core.Step(a.now, Left{Handle: 2 << 32}) // peer 2 reads
	a.now = serve.ChunkTurnMs - 1
	if s := status(a.wants(99, 0)); s != wire.Busy {
		t.Errorf("status %v before anybody's turn is over, want busy", s)
	}
	a.now++
	for p := range byte(serve.MaxChunkAskers - 2) {
		e := a.wants(100+p, 0)
		if slices.ContainsFunc(find[Reply](e), func(r Reply) bool { return r.Handle == uint64(100+p)<<32 }) {
			t.Fatalf("newcomer %d found no slot: %v", p, e)
		}
	}
	if s := status(a.wants(3, 2)); s == wire.Busy {
		t.Error("one that gave way is not let in again when peer 2 is the slowest whose turn is over")
	}
	if s := status(a.wants(99, 1)); s != wire.Busy {
		t.Errorf("status %v when only a contributor could give way, want busy", s)
	}
}

func TestAskerThatIsGone(t *testing.T) {
	a := newAlone()
	a.connect(1)
	for p := range byte(serve.MaxChunksAway) {
		a.wants(p+1, 0)
	}
	a.wants(1, 1)
	a.wants(9, 0)
	a.core.Step(a.now, PeerDown{Peer: wire.PeerID{1}})
	e := a.core.Effects()
	if s := status(e); s != wire.Busy || !slices.Equal(given(e), []byte{9}) {
		t.Errorf("what waited for a lost peer ends with %v, chunks leave to %v", s, given(e))
	}
	a.wants(9, 1)
	a.core.Step(a.now, Replied{Handle: 9<<32 + 1}) // the stream of a request that waits has failed
	if e := a.wait(serve.ChunkWaitMs); len(find[Reply](e)) != 0 {
		t.Errorf("it is answered all the same: %v", e)
	}
}

// Whatever leaves first: nobody that waits for its turn sees another have two.
func TestAskersTakeTurns(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAlone()
		askers := byte(rapid.IntRange(2, serve.MaxChunkAskers).Draw(t, "askers"))
		var leaving []uint64
		passed := map[byte]map[byte]bool{} // of each asker that waits: who had a turn meanwhile
		number := uint64(0)
		take := func(effects []Effect) {
			for _, e := range effects {
				c, ok := e.(ReplyChunk)
				if !ok {
					continue
				}
				leaving = append(leaving, c.Handle)
				p := byte(c.Handle >> 32)
				delete(passed, p)
				for q, others := range passed {
					if others[p] {
						t.Fatalf("%d had two turns while %d waited for one", p, q)
					}
					others[p] = true
				}
			}
		}
		ask := func(p byte) {
			number++
			take(a.wants(p, number))
		}
		for p := byte(1); p <= askers; p++ {
			passed[p] = map[byte]bool{}
			ask(p)
			ask(p)
		}
		for range 60 {
			i := rapid.IntRange(0, len(leaving)-1).Draw(t, "leaves")
			handle, p := leaving[i], byte(leaving[i]>>32)
			leaving = slices.Delete(leaving, i, i+1)
			passed[p] = map[byte]bool{}
			a.core.Step(a.now, Left{Handle: handle})
			take(a.core.Effects())
			a.core.Step(a.now, Replied{Handle: handle})
			take(a.core.Effects())
			ask(p)
		}
		if want := min(int(askers), serve.MaxChunksAway); len(leaving) != want {
			t.Fatalf("%d chunks leave at once, want %d", len(leaving), want)
		}
	})
}
