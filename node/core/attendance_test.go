package core

import (
	"encoding/binary"
	"testing"

	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

// A learner that gives a payload every few rounds is waited for, one that gave none and came later
// never is, and what is remembered is bounded however many keys there are.
func TestAttendance(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := newAttendance()
		times, more := rapid.Uint64Range(1, 3).Draw(t, "times"), rapid.Uint64Range(0, 4).Draw(t, "more")
		most := map[bool]uint64{false: mostMissedAtFirst*times + more, true: mostMissed*times + more}
		founder, busy, newcomer := wire.PeerID{1}, wire.PeerID{2}, wire.PeerID{3}
		a.record(founder, arrival{at: a.closed})
		missed := map[wire.PeerID]uint64{}
		came := map[wire.PeerID]bool{}
		for range rapid.IntRange(1, 60).Draw(t, "inputs") {
			switch who := rapid.SampledFrom([]wire.PeerID{founder, busy, {}}).Draw(t, "who"); who {
			case wire.PeerID{}:
				deltas := rapid.IntRange(0, 2).Draw(t, "deltas")
				a.roundClosed(deltas)
				if deltas > 0 {
					missed[founder]++
					missed[busy]++
				}
			default:
				a.attended(who)
				missed[who], came[who] = 0, true
			}
			if got, want := a.absent(founder, times, more), missed[founder] > most[came[founder]]; got != want {
				t.Fatalf("a founder that missed %d is absent: %v", missed[founder], got)
			}
			if got, want := a.absent(busy, times, more), !came[busy] || missed[busy] > most[true]; got != want {
				t.Fatalf("one that missed %d is absent: %v", missed[busy], got)
			}
			if !a.absent(newcomer, times, more) {
				t.Fatal("a newcomer of whom nothing came is waited for")
			}
		}
	})
}

// Keys that give one delta each do not push out learners that give more.
func TestAttendanceIsBounded(t *testing.T) {
	a, busy := newAttendance(), wire.PeerID{0, 0, 0, 0, 1}
	for i := range uint32(3 * maxAttending) {
		var id wire.PeerID
		binary.BigEndian.PutUint32(id[:], i+1)
		a.attended(id)
		if i%1000 == 0 {
			a.roundClosed(1)
			a.attended(busy)
		}
		if len(a.arrivals) > maxAttending {
			t.Fatalf("%d are remembered", len(a.arrivals))
		}
	}
	if a.absent(busy, 1, 0) {
		t.Error("one that gave a delta in each round is absent")
	}
}
