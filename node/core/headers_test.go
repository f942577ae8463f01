package core

import (
	"bytes"
	"crypto/ed25519"
	"runtime"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/codec"
)

// A delta that the rounds hold can be listed to others, also where folds are so far
// behind that its round has left the union window: tips of an older round may bring
// it back, and then nobody else would ever hear of it.
func TestHeadersStayAsLongAsTheirDeltas(t *testing.T) {
	p := outer.Defaults(1, 1<<40, 1)
	p.WindowAccept, p.WindowUnion, p.Codec, p.MinRoundMs = 4, 8, codec.F32, 0
	plan := outer.NewPlan(tensor.NewSlab([]tensor.Spec{{Name: "a", Shape: []int{2, 2}}}).Views, 1)
	self, other := testKey(1), testKey(2)
	cfg := Config{Params: p, Plan: plan, Key: self, Run: wire.RunID{1}}
	cfg.Gossip = gossip.Config{Self: wire.PeerIDOf(self), Key: self, Run: cfg.Run, WindowAccept: 4, WindowUnion: 8}
	m := New(cfg, []*outer.Tip{outer.Genesis(plan[0], make([]float32, plan[0].Len), p)})
	now := Time(1_000_000)
	for r := uint32(1); r <= 4*forgetEvery; r++ {
		h := wire.Header{Author: wire.PeerIDOf(other), Round: r, Base: r - 1, Steps: 1, Tokens: 1, Precision: 1, Codec: uint8(p.Codec), Size: 17}
		sh := wire.SignHeader(other, cfg.Run, h)
		id := sh.Header.ID(cfg.Run)
		m.offer(now, id, &sh, true)
		m.rounds.Held(now, 0, r, outer.ID(id))
		m.rounds.CloseTo(now, 0, r)
		m.pump(now) // nothing is ever folded
	}
	if held := len(m.rounds.Set(0, 1)); m.rounds.Closed(0) != 4*forgetEvery || m.rounds.Base(0) != 0 || held != 1 {
		t.Fatalf("closed %d with base %d and %d deltas of round 1", m.rounds.Closed(0), m.rounds.Base(0), held)
	}
	if len(chain{m}.Signed(0, 1)) != 1 {
		t.Error("the delta of round 1 is held and cannot be listed")
	}
}

// A header is kept for as long as its delta may be asked for; the payload of an own delta is on disk by then, and must
// not stay in memory as well: the deltas of a run are many times its model.
func TestPublishedPayloadsLeaveMemory(t *testing.T) {
	p := outer.Defaults(1, 1<<40, 1)
	const values = 1 << 18
	plan := outer.NewPlan(tensor.NewSlab([]tensor.Spec{{Name: "a", Shape: []int{values}}}).Views, 1)
	self := testKey(1)
	cfg := Config{Params: p, Plan: plan, Key: self, Run: wire.RunID{1}}
	cfg.Gossip = gossip.Config{Self: wire.PeerIDOf(self), Key: self, Run: cfg.Run, WindowAccept: p.WindowAccept, WindowUnion: p.WindowUnion}
	m := New(cfg, []*outer.Tip{outer.Genesis(plan[0], make([]float32, values), p)})
	gone := make(chan struct{})
	publish := func() wire.Digest {
		payload := make([]byte, values)
		runtime.AddCleanup(&payload[0], func(gone chan struct{}) { close(gone) }, gone)
		h := wire.Header{Author: wire.PeerIDOf(self), Round: 1, Steps: 1, Tokens: 1, Precision: 1, Codec: uint8(p.Codec), Size: values}
		sh := wire.SignHeader(self, cfg.Run, h)
		id := sh.Header.ID(cfg.Run)
		m.StoredOwn(1_000_000, StoreOwn{ID: id, Header: sh, Payload: payload, Seq: 1})
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

func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}
