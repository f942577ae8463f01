package p2p

import (
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"pgregory.net/rapid"
)

// countedStream counts how often it was reset.
type countedStream struct {
	network.Stream
	from   peer.ID
	resets int
}

func (s *countedStream) Reset() error { s.resets++; return nil }

// Requests that never end to arrive are bounded, and whoever has no more of them than others have
// loses none to those that have many.
func TestReading(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var r reading
		few := &countedStream{from: "few"}
		r.begin(few.from, few)
		all := []*countedStream{few}
		for range rapid.IntRange(1, 2*maxReading).Draw(t, "streams") {
			s := &countedStream{from: peer.ID(rapid.SampledFrom([]string{"a", "b", "c"}).Draw(t, "peer"))}
			all = append(all, s)
			r.begin(s.from, s)
			if r.count > maxReading {
				t.Fatalf("%d are read", r.count)
			}
		}
		open := 0
		for _, s := range all {
			if s.resets > 1 {
				t.Fatal("one is reset twice")
			}
			open += 1 - s.resets
		}
		if open != min(len(all), maxReading) || open != r.count || few.resets > 0 {
			t.Fatalf("%d of %d are open, %d are counted, and the only one of a peer is reset: %v", open, len(all), r.count, few.resets > 0)
		}
		for _, s := range all {
			r.end(s.from, s)
		}
		if r.count != 0 || len(r.streams) != 0 {
			t.Fatalf("%d are left", r.count)
		}
	})
}
