package core

import (
	"bytes"
	"crypto/ed25519"
	"runtime"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
	"atoll/optimizer/rounds"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// A delta that the rounds hold can be listed to others, also where folds are so far
// behind that its round has left the union window. A snapshot of an older round may bring
// it back, and otherwise nobody else would ever hear of it.
func TestHeadersStayAsLongAsTheirDeltas(t *testing.T) {
	m := lone(4, 4, 8)
	now := Time(1_000_000)
	for r := uint32(1); r <= 4*forgetEvery; r++ {
		sh := signed(m, testKey(2), wire.Header{Round: r, Base: r - 1, Steps: 1, Tokens: 1, Size: 17})
		id := sh.Header.ID(m.cfg.Run)
		m.offer(now, id, &sh, true)
		m.rounds.Payload(now, 0, r, outer.ID(id), rounds.PayloadHeld)
		m.rounds.CloseTo(now, 0, r)
		m.pump(now) // nothing is ever folded
	}
	if held := len(m.rounds.Fragment(0).Set(1)); m.rounds.Fragment(0).Closed() != 4*forgetEvery || m.rounds.Fragment(0).Base() != 0 || held != 1 {
		t.Fatalf("closed %d with base %d and %d deltas of round 1", m.rounds.Fragment(0).Closed(), m.rounds.Fragment(0).Base(), held)
	}
	if len(chain{m}.Signed(0, 1)) != 1 {
		t.Error("the delta of round 1 is held and cannot be listed")
	}
}

// A header is kept for as long as its delta may be asked for. The payload of an own delta is on disk by then, and must
// not stay in memory as well: the deltas of a run are many times its model.
func TestPublishedPayloadsLeaveMemory(t *testing.T) {
	const values = 1 << 18
	m := lone(values, 4, 8)
	gone := make(chan struct{})
	publish := func() wire.Digest {
		payload := make([]byte, values)
		runtime.AddCleanup(&payload[0], func(gone chan struct{}) { close(gone) }, gone)
		sh := signed(m, m.cfg.Key, wire.Header{Round: 1, Steps: 1, Tokens: 1, Size: values})
		id := sh.Header.ID(m.cfg.Run)
		m.StoredOwn(1_000_000, StoreOwn{ID: id, Header: sh, Payload: payload, Seq: 1}, nil)
		return id
	}
	id := publish()
	m.Effects()
	for range 1000 {
		runtime.GC()
		select {
		case <-gone:
			if m.headers[id] == nil {
				t.Error("the header is gone as well")
			}
			return
		default:
			runtime.Gosched()
		}
	}
	t.Error("the payload of a published delta is still held")
}

// lone is the machine of an observer of a run of one fragment of so many values.
func lone(values int, accept, union uint32) *Machine {
	p := outertest.Plain(1, 1<<40, 1)
	p.WindowAccept, p.WindowUnion, p.Codec, p.MinRoundMs = accept, union, codec.F32, 0
	plan := outer.NewPlan(tensor.NewSlab([]tensor.Spec{{Name: "a", Shape: []int{values}}}).Views, 1)
	key := testKey(1)
	cfg := Config{Params: p, Plan: plan, Key: key, Run: wire.RunID{1}}
	cfg.Gossip = gossip.Config{Self: wire.PeerIDOf(key), Key: key, Run: cfg.Run, WindowAccept: accept, WindowUnion: union}
	return New(cfg, []*outer.Tip{outer.Genesis(plan[0], make([]float32, values), p)})
}

// signed is a header of the owner of a key.
func signed(m *Machine, key ed25519.PrivateKey, h wire.Header) wire.SignedHeader {
	h.Author, h.Codec = wire.PeerIDOf(key), uint8(m.cfg.Params.Codec)
	return wire.SignHeader(key, m.cfg.Run, h)
}

func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}
