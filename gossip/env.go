package gossip

import (
	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// env is what the machines of one Core share beside the peers: the effects and calls of
// effect.Queue, configuration, and the view of the outer side. The machines that keep the table of
// peers have the peers alone.
type env struct {
	*effect.Queue
	*peers.Table
	heartbeats *peers.Heartbeats
	cfg        Config
	chain      Chain
}

func newEnv(cfg Config, chain Chain) (*env, *peers.Peers) {
	e := &env{Queue: &effect.Queue{}, cfg: cfg, chain: chain}
	m := peers.New(e.Queue, peers.Config{
		Self: cfg.Self, Key: cfg.Key, Run: cfg.Run, Incarnation: cfg.Incarnation, Trusted: cfg.Trusted, Members: cfg.Members,
		HeartbeatMinMs: cfg.HeartbeatMinMs, TargetPeers: cfg.TargetPeers, Common: cfg.Common,
		OpenRecord: cfg.OpenRecord, Know: e.knows, Notes: newNotes, Bulk: bulk,
	}, chain)
	e.Table, e.heartbeats = m.Table, &m.Heartbeats
	return e, m
}

// fragmentOf checks that f names a fragment of this run.
func (e *env) fragmentOf(f uint16) bool { return int(f) < e.chain.Fragments() }

// unionBase is the newest round of f below which this node reconciles nothing:
// where its history begins, or where the union window does.
func (e *env) unionBase(f int) uint32 {
	closed := e.chain.Closed(f)
	return max(e.chain.Base(f), closed-min(closed, e.cfg.WindowUnion))
}

// final reports whether a delta is older than what this node can still fold.
func (e *env) final(h wire.Header) bool { return h.Round <= e.unionBase(int(h.Fragment)) }
