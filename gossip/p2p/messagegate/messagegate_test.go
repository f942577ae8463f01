package messagegate

import (
	"errors"
	"sync"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/limit"
	"atoll/gossip/wire"
)

// Gossip asks while the loop tells: with -race this shows that they take turns.
func TestLimiterTakesTurns(t *testing.T) {
	l := NewLimiter(limit.Config{HeartbeatMinMs: 500, WindowAccept: 16})
	var asks sync.WaitGroup
	held := make([]int, 4)
	for part := range held {
		l.Know(wire.PeerID{byte(part + 1)})
		asks.Go(func() {
			for i := range 500 {
				b := wire.Heartbeat{Author: wire.PeerID{byte(part + 1)}, Incarnation: 1, Seq: uint64(i)}
				if errors.Is(l.check(0, wire.PeerID{8}, wire.Message{Heartbeat: &b}), limit.ErrHeldBack) {
					held[part]++
				}
			}
		})
	}
	for i := range 500 {
		l.Know(wire.PeerID{9, byte(i)})
		l.Tick(effect.Time(i), true, []uint32{uint32(i)}, limit.Fit{})
	}
	asks.Wait()
	for part, n := range held {
		if n == 0 || n == 500 {
			t.Errorf("of 500 heartbeats at once of author %d %d are held back", part, n)
		}
	}
	if none := (*Limiter)(nil); none.check(0, wire.PeerID{}, wire.Message{}) != nil {
		t.Error("holds something back before the run is known")
	}
}
