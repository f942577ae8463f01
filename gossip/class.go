package gossip

import "atoll/gossip/wire"

// Peers are of two classes. Who is known has shown more than a key, which costs nothing: the link
// names it, an invite admits it and not as a guest, or a delta of it was folded here. All others are strangers, once
// the run has begun; before that nobody could have shown anything. What is shared by all keeps
// room for those that are known: strangers have one part in strangersShare of it at most, and give
// way first.
const strangersShare = 8

// known reports whether an author is more than a key.
func (e *env) known(id wire.PeerID) bool {
	switch {
	case id == e.cfg.Self || e.trusts(id):
		return true
	case e.cfg.Members != nil:
		return e.cfg.Members.Member(id) && !e.guest(id)
	}
	return e.chain.Contributed(id)
}

// stranger reports whether an author is a mere key, though others are more.
func (e *env) stranger(id wire.PeerID) bool { return e.begun() && !e.known(id) }

// begun reports whether something was folded on the chain of this node.
func (e *env) begun() bool { return e.chain.FoldedTokens() > 0 }
