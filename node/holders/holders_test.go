package holders

import (
	"slices"
	"testing"

	"atoll/gossip/wire"
)

func TestHolders(t *testing.T) {
	h, message, delta := New(), wire.Digest{1}, wire.Digest{2}
	a, b, c := wire.PeerID{1}, wire.PeerID{2}, wire.PeerID{3}
	for _, p := range []wire.PeerID{a, b, a} {
		if got := h.Has(message, p); got != (wire.Digest{}) {
			t.Fatalf("before it came it announces %v", got)
		}
	}
	if had := h.Came(message, delta); !slices.Equal(had, []wire.PeerID{a, b}) {
		t.Errorf("%v had it before", had)
	}
	if got := h.Has(message, c); got != delta {
		t.Errorf("it announces %v", got)
	}
	if had := h.Came(message, delta); had != nil {
		t.Errorf("once more: %v had it before", had)
	}
	heartbeat := wire.Digest{3}
	h.Came(heartbeat, wire.Digest{})
	if got := h.Has(heartbeat, a); got != (wire.Digest{}) || h.early.Len() > 0 {
		t.Errorf("a heartbeat announces %v, and %d messages have not come", got, h.early.Len())
	}
}

// Made up messages have their limits.
func TestHoldersAreBounded(t *testing.T) {
	h := New()
	for i := range 2 * maxEarlyMessages {
		h.Has(wire.Sum([]byte{byte(i), byte(i >> 8)}), wire.PeerID{1})
	}
	for i := range 2 * maxEarlyHolders {
		h.Has(wire.Digest{1}, wire.PeerID{byte(i)})
	}
	for i := range 2 * maxAnnounced {
		h.Came(wire.Sum([]byte{1, byte(i), byte(i >> 8)}), wire.Digest{2})
	}
	if n, early := h.deltas.Len(), h.early.Len(); n != maxAnnounced || early != maxEarlyMessages {
		t.Errorf("%d messages are kept, and %d that did not come", n, early)
	}
	if had := h.Came(wire.Digest{1}, wire.Digest{2}); len(had) != maxEarlyHolders {
		t.Errorf("%d peers are kept", len(had))
	}
}
