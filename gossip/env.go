package gossip

import (
	"atoll/gossip/effect"
	"atoll/gossip/wire"
)

// env is what the machines of one Core share: the effects and calls of effect.Queue,
// configuration, the view of the outer side, and the table of peers.
type env struct {
	*effect.Queue
	cfg    Config
	chain  Chain
	peers  peers
	common []uint32 // per fragment: the last round at which a peer showed this node's chain
	period int64    // own heartbeat period in ms, as of the last tick
	moves  bool     // addresses change while nodes run, as on the internet
}

// misbehaved reports a peer that broke the protocol, remembers why, and has
// it dropped if that goes on.
func (e *env) misbehaved(id wire.PeerID, reason string) {
	e.Emit(Misbehaved{Peer: id, Reason: reason})
	p := e.peers.find(id)
	if p == nil {
		return
	}
	if p.refused != reason {
		p.refused = reason
		e.Event(EventMisbehaved, id, reason)
	}
	p.faults++
	if p.faults >= maxFaults && p.connected {
		p.faults = 0
		e.Emit(Drop{Peer: id, Reason: reason})
	}
}

// usable reports whether p can be asked now: connected and heard recently.
func (e *env) usable(p *peer) bool {
	return p != nil && p.connected && e.heardLately(p)
}

// guest reports whether a peer is a guest of the run: keys are free to guests, so their claims count for nothing.
func (e *env) guest(id wire.PeerID) bool { return e.cfg.Members.Guest(id) }

// trusts reports whether the link names a peer that is no guest.
func (e *env) trusts(id wire.PeerID) bool { return e.cfg.trusts(id) && !e.guest(id) }

// contributed reports whether p is more than a key that anybody can make: the link
// names it, or a delta of it was folded here. A guest never is.
func (e *env) contributed(p *peer) bool { return e.trusts(p.id) || e.chain.Contributed(p.id) }

// poll counts the live peers that may vote, and how many of them say so.
func (e *env) poll(votes, says func(*peer) bool) (peers, yes int) {
	for _, p := range e.peers.list {
		if e.live(p) && votes(p) {
			peers++
			if says(p) {
				yes++
			}
		}
	}
	return peers, yes
}

// fragmentOf checks that f names a fragment of this run.
func (e *env) fragmentOf(f uint16) bool { return int(f) < e.chain.Fragments() }

// unionBase is the newest round of f below which this node reconciles nothing:
// where its history begins, or where the union window does.
func (e *env) unionBase(f int) uint32 {
	closed := e.chain.Closed(f)
	return max(e.chain.Base(f), closed-min(closed, e.cfg.WindowUnion))
}
