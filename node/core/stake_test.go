package core

import (
	"testing"

	"atoll/gossip/wire"
)

// Stakes are known at rounds of the whole run, the finer the shorter it is, and
// take no more than their bound.
func TestStakes(t *testing.T) {
	s := newStakes()
	a, b := wire.PeerID{1}, wire.PeerID{2}
	const rounds = 5000
	for r := uint32(1); r <= rounds; r++ {
		s.add(a)
		if r > 1000 {
			s.add(b)
		}
		s.mark(r)
		if len(s.marks) > maxStakeMarks {
			t.Fatalf("%d marks after %d rounds", len(s.marks), r)
		}
	}
	for _, r := range []uint32{300, 1000, 2500, rounds} {
		got, slack := s.of(a, r), uint64(2*s.spacing)
		if got > uint64(r) || got+slack < uint64(r) {
			t.Errorf("at round %d: %d deltas, want %d at most, within %d", r, got, r, slack)
		}
	}
	if s.of(b, 900) != 0 || s.of(b, rounds) == 0 || s.of(a, 0) != 0 || s.of(wire.PeerID{3}, rounds) != 0 {
		t.Error("deltas where there are none")
	}
	for i := range 2 * maxStakes {
		s.add(wire.PeerID{9, byte(i), byte(i >> 8)})
	}
	if len(s.now) > maxStakes {
		t.Errorf("%d authors are weighed", len(s.now))
	}
}
