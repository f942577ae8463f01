package headers

import (
	"testing"

	"atoll/gossip/wire"
)

func TestEquivocationRing(t *testing.T) {
	v := newEquivocation(&base{})
	for i := range uint32(3 * maxEquivocation) {
		k := slot{author: wire.PeerID{byte(i), byte(i >> 8)}, round: i}
		if !v.remember(k) || v.remember(k) {
			t.Fatalf("slot %d is not remembered once", i)
		}
	}
	sum := 0
	for _, n := range v.counts {
		sum += n
	}
	if len(v.known) != maxEquivocation || sum != maxEquivocation {
		t.Errorf("%d known, %d counted, want %d", len(v.known), sum, maxEquivocation)
	}
}

func TestSeenRing(t *testing.T) {
	s := newSeen()
	header := func(round uint32) (wire.Digest, *wire.SignedHeader) {
		h := wire.SignedHeader{Header: wire.Header{Author: wire.PeerID{1}, Round: round}}
		return h.Header.ID(wire.RunID{}), &h
	}
	for i := range uint32(2*MaxSeen + 5) {
		id, h := header(i + 1)
		s.add(id, h, true)
	}
	if len(s.byID) != MaxSeen || len(s.bySlot) != MaxSeen {
		t.Errorf("%d ids and %d slots, want %d", len(s.byID), len(s.bySlot), MaxSeen)
	}
	if id, _ := header(1); s.find(id) != nil {
		t.Error("the oldest is still there")
	}
	if _, h := header(2 * MaxSeen); s.filled(slotOf(h.Header)) == nil {
		t.Error("a new one is not")
	}
}
