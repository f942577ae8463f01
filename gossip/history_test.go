package gossip

import (
	"testing"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// tookSnapshot is a chain that begins with tips of round 3 in each fragment, of
// whose rounds it knows the ids folded.
type tookSnapshot struct {
	*fakeChain
	folded map[wire.RoundKey][]wire.SignedHeader
	kept   map[wire.Digest]bool
}

func (c tookSnapshot) SetDigest(f int, r uint32) (wire.Digest, bool) {
	var ids []wire.Digest
	for _, h := range c.folded[wire.RoundKey{Fragment: uint16(f), Round: r}] {
		ids = append(ids, h.Header.ID(c.run))
	}
	return wire.SetDigest(ids), r > 0
}

func (c tookSnapshot) Signed(f int, r uint32) (held []wire.SignedHeader) {
	for _, h := range c.folded[wire.RoundKey{Fragment: uint16(f), Round: r}] {
		if c.kept[h.Header.ID(c.run)] {
			held = append(held, h)
		}
	}
	return held
}

// taken makes a core that took a snapshot, with two peers that train.
func taken() (*alone, tookSnapshot) {
	c := tookSnapshot{folded: map[wire.RoundKey][]wire.SignedHeader{}, kept: map[wire.Digest]bool{}}
	a := newAloneOn(func(chain *fakeChain) Chain {
		c.fakeChain = chain
		return c
	})
	for f := range uint16(2) {
		a.chain.closed[f], a.chain.base[f] = 3, 3
		for r := uint32(1); r <= 3; r++ {
			h := wire.Header{Fragment: f, Round: r, Base: r - 1, Steps: 1, Tokens: 1, Size: 1}
			c.folded[wire.RoundKey{Fragment: f, Round: r}] = []wire.SignedHeader{wire.SignHeader(testKey(5), a.run, h)}
		}
	}
	a.connect(1, 2)
	a.now = 1
	for id := range byte(2) {
		b := wire.Heartbeat{Author: wire.PeerID{id + 1}, Seq: 1, State: wire.Training, Closed: []uint32{0, 0}, Unpublished: []uint64{0, 0}}
		b.Chain, _, _ = a.core.peers.Heartbeats.DigestsAt(b.Closed)
		a.core.Step(a.now, Received{From: b.Author, Message: wire.Message{Heartbeat: &b}})
	}
	a.core.Effects()
	return a, c
}

// asked lets time pass until headers are asked for, and answers with those.
func (a *alone) asked(t *testing.T, headers func(keys []wire.RoundKey) []wire.SignedHeader) (effects []Effect, asked bool) {
	t.Helper()
	for range 40 {
		a.now += 100
		a.core.heardOf(a.now, wire.PeerID{1})
		a.core.heardOf(a.now, wire.PeerID{2})
		a.core.Tick(a.now)
		for _, c := range calls(a.core.Effects()) {
			r, _ := wire.DecodeRequest(c.Request)
			if r.Kind == wire.GetHeaders {
				body := wire.EncodeHeaders(headers(r.Rounds))
				a.core.Step(a.now, Answered{Call: c.ID, Response: wire.Response{Status: wire.OK, Body: body}.Encode()})
				return a.core.Effects(), true
			}
		}
	}
	return nil, false
}

// A node keeps no headers that are not of the folded ids, and no incomplete
// list. It asks the next peer.
func TestHistoryTakesTheRightHeaders(t *testing.T) {
	a, c := taken()
	honest := func(keys []wire.RoundKey) (out []wire.SignedHeader) {
		for _, k := range keys {
			out = append(out, c.folded[k]...)
		}
		return out
	}
	for name, lie := range map[string]func(keys []wire.RoundKey) []wire.SignedHeader{
		"none": func([]wire.RoundKey) []wire.SignedHeader { return nil },
		"others": func([]wire.RoundKey) []wire.SignedHeader {
			return []wire.SignedHeader{wire.SignHeader(testKey(6), a.run, wire.Header{Round: 1, Steps: 1, Tokens: 9, Size: 1})}
		},
		"forged": func(keys []wire.RoundKey) []wire.SignedHeader {
			all := honest(keys)
			for i := range all {
				all[i].Sig[0]++
			}
			return all
		},
	} {
		if e, asked := a.asked(t, lie); !asked || count[StoreHeader](e) != 0 {
			t.Errorf("%s: asked %v, %v", name, asked, e)
		}
	}
	e, _ := a.asked(t, honest)
	for _, s := range e {
		c.kept[s.(StoreHeader).Header.Header.ID(a.run)] = true
	}
	if count[StoreHeader](e) != 6 {
		t.Errorf("%d headers kept, want 6", count[StoreHeader](e))
	}
	if _, asked := a.asked(t, honest); asked {
		t.Error("asks on")
	}
}

// Where nobody has the headers it ends for minutes, or until a snapshot is taken again.
func TestHistoryGivesUp(t *testing.T) {
	a, _ := taken()
	nothing := func([]wire.RoundKey) []wire.SignedHeader { return nil }
	for i := range maxFruitless {
		if _, asked := a.asked(t, nothing); !asked {
			t.Fatalf("asked %d times only", i)
		}
	}
	if _, asked := a.asked(t, nothing); asked {
		t.Error("asks on though nobody has anything")
	}
	a.now += historyRetryMs
	for i := range maxFruitless {
		if _, asked := a.asked(t, nothing); !asked {
			t.Fatalf("asked %d times only after the pause", i)
		}
	}
	if _, asked := a.asked(t, nothing); asked {
		t.Error("asks on after the pause")
	}
	a.core.Installed(a.now, []uint32{0, 0, 0, 0}, nil)
	if _, asked := a.asked(t, nothing); !asked {
		t.Error("does not ask for what leads to another snapshot")
	}
}

// What matters more comes first: it does not ask while this node joins, fetches
// or repairs.
func TestHistoryWaits(t *testing.T) {
	a, _ := taken()
	nothing := func([]wire.RoundKey) []wire.SignedHeader { return nil }
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Joining})
	if _, asked := a.asked(t, nothing); asked {
		t.Error("asks while it joins")
	}
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Training})
	a.core.repair.sessions = append(a.core.repair.sessions, nil)
	if !a.core.history.busy() {
		t.Error("does not see that a repair goes on")
	}
}

// In a run at work payloads are always on their way: it goes on, more slowly.
func TestHistoryBesidePayloads(t *testing.T) {
	a, c := taken()
	nothing := func([]wire.RoundKey) []wire.SignedHeader { return nil }
	h := a.header(9, c.Closed(0)+1, 0)
	a.core.fetch.Want(h.Header.ID(a.run), &h, wire.PeerID{1})
	a.core.Effects()
	var at []Time
	for range 2 {
		for range 10 {
			if _, asked := a.asked(t, nothing); asked {
				at = append(at, a.now)
				break
			}
		}
	}
	if a.core.fetch.Idle() || len(at) != 2 || at[1]-at[0] < historyHeartbeats*a.core.env.HeartbeatPeriod() {
		t.Errorf("asks at %v, with payloads on their way: %v", at, !a.core.fetch.Idle())
	}
}
