package core

import (
	"math"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"atoll/gossip/wire"
)

// A claim is worth the tokens of the last deltas: a large one wears off with those that
// follow, and once nobody is believed only a new one counts.
func TestClaimIsWorthWhatIsDelivered(t *testing.T) {
	h, a := newHeard(1), wire.PeerID{1}
	h.had(a, 64)
	h.had(a, 1000)
	h.had(a, 8)
	if got := h.of(a).worth; got != 1000 {
		t.Errorf("of three deltas that were there the claim is worth %d, want the largest", got)
	}
	for _, want := range []uint64{500, 250, 125, 100} {
		if h.delivered(a, 100); h.of(a).worth != want {
			t.Errorf("the claim is worth %d, want %d", h.of(a).worth, want)
		}
	}
	if h.delivered(a, 2000); h.of(a).worth != 2000 {
		t.Errorf("the claim is worth %d after a delta of 2000", h.of(a).worth)
	}
	if got := h.most(h.of(a)); got != math.MaxUint64 {
		t.Errorf("the claim counts for %d at most though claims are not weighed", got)
	}
	h.weighed = true
	if got := h.most(h.of(a)); got != 2000*trustTimes {
		t.Errorf("the claim counts for %d at most, want %d times the delta's 2000 tokens", got, trustTimes)
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

// author is a peer whose heartbeats and deltas reach a node late, or in another order.
type author struct {
	h                 heard
	id                wire.PeerID
	tokens, published uint64
	seq               uint64
	rounds            uint32
}

func (a *author) heartbeat() *wire.Heartbeat {
	a.seq++
	return &wire.Heartbeat{Author: a.id, Seq: a.seq, Incarnation: 1, Tokens: a.tokens, Unpublished: []uint64{a.tokens - a.published}, Closed: []uint32{a.rounds}}
}

func (a *author) publishes() wire.Header {
	h := wire.Header{Author: a.id, Tokens: a.tokens - a.published, Round: a.rounds + 1}
	a.published = a.tokens
	a.rounds++ // it closes when the delta is made
	return h
}

// In whatever order heartbeats and headers come, and however many are lost, what came and what
// an author has left is all that it made. Where a header overtook heartbeats it is so from the next
// heartbeat on that knows of it.
func TestNothingThatIsMadeIsMissed(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := &author{h: newHeard(1), id: wire.PeerID{1}}
		heartbeats, headers := []*wire.Heartbeat{a.heartbeat()}, []wire.Header(nil)
		a.h.says(0, a.id, heartbeats[0], 1000)
		heard, came := 0, uint64(0)
		for range rapid.IntRange(1, 60).Draw(t, "events") {
			switch rapid.IntRange(0, 4).Draw(t, "event") {
			case 0:
				a.tokens += 10
				heartbeats = append(heartbeats, a.heartbeat())
			case 1, 2:
				headers = append(headers, a.publishes())
				heartbeats = append(heartbeats, a.heartbeat())
			case 3: // any heartbeat that is newer than the last
				if heard < len(heartbeats)-1 {
					heard += rapid.IntRange(1, len(heartbeats)-1-heard).Draw(t, "heartbeat")
					a.h.says(0, a.id, heartbeats[heard], 1000)
				}
			case 4: // any header
				if n := len(headers); n > 0 {
					i := rapid.IntRange(0, n-1).Draw(t, "header")
					a.h.delta(headers[i])
					came += headers[i].Tokens
					headers = slices.Delete(headers, i, i+1)
				}
			}
		}
		for _, b := range []*wire.Heartbeat{a.heartbeat(), a.heartbeat()} {
			a.h.says(0, a.id, b, 1000)
			if got := came + a.h.of(a.id).unpublished(b, 0); got != a.tokens {
				t.Fatalf("%d tokens are known of %d", got, a.tokens)
			}
		}
	})
}

// What came of a time before the first heartbeat is no part of what heartbeats say later.
func TestOldDeltasPayNoDebts(t *testing.T) {
	a := &author{h: newHeard(1), id: wire.PeerID{1}, tokens: 100}
	old := a.publishes()
	a.h.says(0, a.id, a.heartbeat(), 1000)
	a.h.delta(old)
	a.tokens += 10
	a.h.says(0, a.id, a.heartbeat(), 1000)
	a.tokens += 10
	b := a.heartbeat()
	if a.h.says(0, a.id, b, 1000); a.h.of(a.id).unpublished(b, 0) != 20 {
		t.Errorf("%d tokens are unpublished, want 20", a.h.of(a.id).unpublished(b, 0))
	}
	a.tokens, a.published, a.seq = 30, 30, 0
	b = a.heartbeat()
	b.Incarnation = 2
	if a.h.says(0, a.id, b, 1000); a.h.of(a.id).unpublished(b, 0) != 0 {
		t.Errorf("a new process owes %d tokens", a.h.of(a.id).unpublished(b, 0))
	}
}

// What is owed for long never comes.
func TestDebtsAreWrittenOff(t *testing.T) {
	a := &author{h: newHeard(1), id: wire.PeerID{1}}
	a.h.says(0, a.id, a.heartbeat(), 1000)
	a.tokens = 50
	lost := a.publishes()
	for at, want := range []uint64{50, 50, 50, 50, 0, 0} {
		a.tokens += 10
		late := a.publishes()
		b := a.heartbeat()
		a.h.says(int64(at)*600, a.id, b, 1000)
		a.h.delta(late)
		if got := a.h.of(a.id).unpublished(b, 0); got != want {
			t.Errorf("after %d ms %d tokens are owed, want %d", 600*at, got, want)
		}
	}
	if a.h.delta(lost); a.h.of(a.id).owed[0] != 0 {
		t.Error("what was written off is paid")
	}
}
