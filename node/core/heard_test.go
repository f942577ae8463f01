package core

import (
	"math"
	"testing"

	"atoll/gossip/wire"
)

// A word is worth the tokens of the last deltas: a large one wears off with those that
// follow, and once nobody is believed only a new one counts.
func TestWordIsWorthWhatIsDelivered(t *testing.T) {
	h, a := newHeard(1), wire.PeerID{1}
	h.had(a, 64)
	h.had(a, 1000)
	h.had(a, 8)
	if got := h.of(a).worth; got != 1000 {
		t.Errorf("of three deltas that were there the word is worth %d, want the largest", got)
	}
	for _, want := range []uint64{500, 250, 125, 100} {
		if h.delivered(a, 100); h.of(a).worth != want {
			t.Errorf("the word is worth %d, want %d", h.of(a).worth, want)
		}
	}
	if h.delivered(a, 2000); h.of(a).worth != 2000 {
		t.Errorf("the word is worth %d after a delta of 2000", h.of(a).worth)
	}
	if got := h.most(h.of(a)); got != math.MaxUint64 {
		t.Errorf("the word counts for %d at most though words are not weighed", got)
	}
	h.weighed = true
	if got := h.most(h.of(a)); got != 2000*trustTimes {
		t.Errorf("the word counts for %d at most, want %d times the delta's 2000 tokens", got, trustTimes)
	}
	if h.doubt(); h.of(a).believed {
		t.Error("is believed after a doubt")
	}
	if h.delivered(a, 8); !h.of(a).believed || h.of(a).worth != 8 {
		t.Errorf("after a doubt and a delta of 8: %+v", h.of(a))
	}
}

// Of more authors than the table holds no more are believed.
func TestBelievedAreBounded(t *testing.T) {
	h := newHeard(1)
	for i := range maxHeard + 10 {
		h.delivered(wire.PeerID{byte(i), byte(i >> 8)}, 1)
	}
	if len(h.authors) != maxHeard || h.believed != maxHeard {
		t.Errorf("%d authors are kept and %d believed, want %d", len(h.authors), h.believed, maxHeard)
	}
}
