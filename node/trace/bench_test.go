package trace

import (
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
)

// BenchmarkLife is what the life of one delta costs a node that traces: a run has some a
// second.
func BenchmarkLife(b *testing.B) {
	g := newRig(nil)
	g.cfg.Out = discard{}
	author := wire.PeerID{2}
	for round := range uint32(b.N) {
		h := g.header(author, round+1)
		id := g.id(h)
		g.sees(1010, gossip.Offer{ID: id, Header: h, From: author})
		g.asks(1020, uint64(round), author, id)
		g.Answered(uint64(round), 1030, 1040, []byte{byte(wire.OK)}, nil)
		g.stores(1050, id, h)
		g.closes(1060, round+1)
		g.adopts(1070, g.folds(1070, round+1, id))
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }
