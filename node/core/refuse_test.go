package core

import (
	"errors"
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// A header that breaks the rules is refused by name. Its payload is neither fetched nor
// stored, and it opens no round.
func TestBadHeadersAreRefused(t *testing.T) {
	payload := make([]byte, 17)
	good := wire.Header{Round: 1, Steps: 8, Tokens: 8, Size: 17, Payload: wire.Sum(payload)}
	for name, c := range map[string]struct {
		spoil   func(h *wire.Header)
		refused int
	}{
		"a good one":      {func(*wire.Header) {}, 0},
		"too many tokens": {func(h *wire.Header) { h.Tokens = 1 << 40 }, 1},
		"too many steps":  {func(h *wire.Header) { h.Steps = 1 << 30 }, 1},
		"too large":       {func(h *wire.Header) { h.Size = 1 << 20 }, 1},
		"a certificate":   {func(h *wire.Header) { h.Certificate[31] = 1 }, 1},
	} {
		m, h := lone(4, 4, 8), good
		c.spoil(&h)
		sh := signed(m, testKey(2), h)
		msg := wire.Message{Header: &sh}
		if h.Size == good.Size {
			msg.Inline = payload
		}
		m.Step(1_000_000, gossip.Received{From: sh.Header.Author, Message: msg})
		taken, refused := 0, 0
		for _, e := range m.Effects() {
			switch e := inner(e).(type) {
			case gossip.Call, StoreDelta:
				taken++
			case Refused:
				refused++
				if e.Header.Author != sh.Header.Author {
					t.Errorf("%s: refuses a header of %v", name, e.Header.Author)
				}
			}
		}
		count, _ := m.View().Counts()
		known, _ := m.Rounds().Fragment(0).Known(1, outer.ID(sh.Header.ID(m.cfg.Run)))
		if refused != c.refused || count != uint64(c.refused) || (taken > 0) != (c.refused == 0) || known != (c.refused == 0) {
			t.Errorf("%s: %d refused, %d counted, %d fetched or stored, known to the rounds %v", name, refused, count, taken, known)
		}
	}
}

// proof shows that the owner of a key signed two deltas for one round.
func proof(m *Machine, key byte, round uint32) wire.Equivocation {
	h := wire.Header{Round: round, Steps: 1, Tokens: 1, Size: 17}
	a := signed(m, testKey(key), h)
	h.Tokens++
	return wire.Equivocation{A: a, B: signed(m, testKey(key), h)}
}

// Two deltas of a guest for one round, or of a key that nobody here knows, exclude nobody, also where an older store has
// them as equivocation proof.
func TestGuestsAreNotExcluded(t *testing.T) {
	const now = 1_000_000
	for name, c := range map[string]struct{ guest, unknown, excluded bool }{"a member": {excluded: true}, "a guest": {guest: true}, "unknown": {unknown: true}} {
		m := invited(t, map[byte]bool{2: c.guest}, nil)
		h := wire.Header{Round: 1, Steps: 1, Tokens: 1, Size: 17, Certificate: m.cfg.Gossip.Members.Of(wire.PeerIDOf(testKey(2)))[0].ID(m.cfg.Run)}
		if c.unknown {
			h.Certificate[0] ^= 1
		}
		e := wire.Equivocation{A: signed(m, testKey(2), h)}
		h.Tokens++
		e.B = signed(m, testKey(2), h)
		for _, restart := range []bool{false, true} {
			if restart {
				m.Equivocation(now, e)
			} else {
				m.Step(now, gossip.Received{From: wire.PeerID{9}, Message: wire.Message{Equivocation: &e}})
			}
			stored := slices.ContainsFunc(m.Effects(), func(e Effect) bool { _, is := e.(StoreEquivocation); return is })
			if m.Rounds().Excluded(outer.Author(e.A.Header.Author)) != c.excluded || !restart && stored != c.excluded {
				t.Errorf("%s, after a restart %v: stored %v", name, restart, stored)
			}
		}
	}
}

// No more equivocation proof of strangers is kept for one round than there is room for, and none
// about rounds far ahead. Equivocation proof against a delta that the node holds is used all the
// same, and stored once. After a restart the author is out of the round as well.
func TestEquivocationThatIsUsedIsStored(t *testing.T) {
	const now = 1_000_000
	m := lone(4, 4, 8)
	var stored []wire.Equivocation
	says := func(msg wire.Message) {
		m.Step(now, gossip.Received{From: wire.PeerID{9}, Message: msg})
		for _, e := range m.Effects() {
			if e, ok := e.(StoreEquivocation); ok {
				stored = append(stored, e.Equivocation)
			}
		}
	}
	for i := range byte(40) {
		e := proof(m, 100+i, 1)
		says(wire.Message{Equivocation: &e})
	}
	far := proof(m, 90, 1000)
	says(wire.Message{Equivocation: &far})
	if m.Rounds().Excluded(outer.Author(far.A.Header.Author)) {
		t.Error("a proof about a round far ahead is kept")
	}
	used := proof(m, 91, 1)
	says(wire.Message{Header: &used.A})
	for range 2 {
		says(wire.Message{Equivocation: &used})
	}
	if len(stored) != 33 || stored[32] != used {
		t.Fatalf("%d proofs are stored, want the 32 that are kept and the one that is used", len(stored))
	}
	m = lone(4, 4, 8)
	for _, e := range stored {
		m.Equivocation(now, e)
	}
	d := DeltaOf(used.A.Header.ID(m.cfg.Run), used.A.Header, nil)
	if err := m.Rounds().Offer(now, d, true); !errors.Is(err, rounds.ErrExcluded) {
		t.Errorf("after a restart a delta of its author is taken: %v", err)
	}
}
