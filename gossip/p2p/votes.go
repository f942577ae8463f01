package p2p

import (
	"sync"

	"atoll/gossip"
	"atoll/gossip/finality"
	"atoll/gossip/wire"
)

// VoteGate is a finality.Gate for Config.Check, which runs in several goroutines. Nothing passes one that is nil.
type VoteGate struct {
	mu   sync.Mutex
	gate *finality.Gate
}

// NewVoteGate is finality.NewGate.
func NewVoteGate(self wire.PeerID, stepMs int64) *VoteGate {
	return &VoteGate{gate: finality.NewGate(self, stepMs)}
}

// Set is finality.Gate.Set.
func (g *VoteGate) Set(height uint32, table finality.Table) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.gate.Set(height, table)
}

// Spares is gossip.ErrHeldBack for a vote that goes no further whatever its signature is. Messages without one pass.
func (g *VoteGate) Spares(now finality.Time, m wire.Message) error {
	return g.ask(m, func(v wire.Vote) bool { return g.gate.Spares(now, v) })
}

// Check is gossip.ErrHeldBack for a vote that goes no further at a time in milliseconds, and counts one that does. Messages
// without one pass.
func (g *VoteGate) Check(now finality.Time, m wire.Message) error {
	return g.ask(m, func(v wire.Vote) bool { return g.gate.Pass(now, v) })
}

func (g *VoteGate) ask(m wire.Message, passes func(wire.Vote) bool) error {
	if m.Vote == nil {
		return nil
	}
	if g == nil {
		return gossip.ErrHeldBack
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if !passes(m.Vote.Vote) {
		return gossip.ErrHeldBack
	}
	return nil
}
