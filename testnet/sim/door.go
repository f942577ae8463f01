package sim

import (
	"crypto/ed25519"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// door is how nodes get into a world that admits by invitation: one owner, and one invite for all.
// It is zero in a world that is open.
type door struct {
	owner wire.PeerID
	pass  member.Pass
}

func newDoor(run wire.RunID) door {
	owner, invite := ed25519.NewKeyFromSeed(doorSeed('o')), ed25519.NewKeyFromSeed(doorSeed('i'))
	return door{wire.PeerIDOf(owner), member.Issue(owner, run, member.Invite{}, invite)}
}

// doorSeed is the seed of a key that no node has: theirs are small numbers.
func doorSeed(of byte) []byte {
	seed := make([]byte, ed25519.SeedSize)
	seed[ed25519.SeedSize-1] = of
	return seed
}

// admission is what lets a node in, and what it knows of others, in one life.
type admission struct {
	members     *member.Table
	certificate member.Certificate
}

// enter begins a life in a world that admits by invitation.
func (n *Node) enter() {
	w := n.w
	if n.admission = (admission{}); !w.s.Invited {
		return
	}
	n.members = member.NewTable(w.run, []wire.PeerID{w.door.owner})
	if n.spec.Outsider {
		return
	}
	var err error
	if n.certificate, err = w.door.pass.Admit(w.run, n.key); err == nil {
		_, err = n.members.Add(n.certificate)
	}
	if err != nil {
		n.broken("sim", "certificate: %v", err)
	}
}

// certified is the digest of the node's certificate, none where it has none.
func (n *Node) certified() (id wire.Digest) {
	if n.members == nil || n.spec.Outsider {
		return id
	}
	return n.certificate.ID(n.w.run)
}

// stranger reports whether a message comes of nobody whom this node knows to be admitted. As a
// validator, it tells the machine whom to ask.
func (n *Node) stranger(from *Node, m wire.Message) bool {
	who, stranger := n.members.Stranger(m)
	if stranger {
		n.machine.Step(n.clock(), gossip.Stranger{From: from.id, Stranger: who})
	}
	return stranger
}
