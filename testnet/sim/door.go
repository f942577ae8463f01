package sim

import (
	"crypto/ed25519"
	"slices"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/core"
)

// door is how nodes get into a world that admits by invitation: one owner, one invite for all, one
// that was meant for a single node, and one for guests. It is zero in a world that is open.
type door struct {
	owner  wire.PeerID
	key    ed25519.PrivateKey // the owner's
	pass   member.Pass
	leaked member.Pass
	guests member.Pass
	spread map[wire.PeerID]bool // who came by the leaked one
}

func newDoor(run wire.RunID) door {
	owner := ed25519.NewKeyFromSeed(doorSeed('o'))
	pass := func(v member.Invite, of byte) member.Pass {
		return member.Issue(owner, run, v, ed25519.NewKeyFromSeed(doorSeed(of)))
	}
	return door{
		owner: wire.PeerIDOf(owner), key: owner, spread: map[wire.PeerID]bool{},
		pass: pass(member.Invite{}, 'i'), leaked: pass(member.Invite{Uses: 1}, 'l'), guests: pass(member.Invite{Guests: true}, 'g'),
	}
}

// admits is the invite by which a node comes.
func (d door) admits(n *Node) member.Pass {
	switch {
	case n.spec.Guest:
		return d.guests
	case n.spec.Leaked:
		d.spread[n.id] = true
		return d.leaked
	}
	return d.pass
}

// nameOf is what the owner revokes a node by: the leaked invite with all who came by it, or the node alone.
func (d door) nameOf(n *Node) wire.Digest {
	if n.spec.Leaked {
		return wire.Digest(d.leaked.Invite.Key)
	}
	return wire.Digest(n.id)
}

// names says whether an author goes with the name of a revocation.
func (d door) names(name wire.Digest, author wire.PeerID) bool {
	return name == wire.Digest(author) || d.spread[author] && name == wire.Digest(d.leaked.Invite.Key)
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
	if n.admission = (admission{}); w.s.Open {
		return
	}
	n.members = member.NewTable(w.run, []wire.PeerID{w.door.owner})
	n.members.Verify = func(c member.Certificate, owners []wire.PeerID) error {
		return w.verifier.certificate(w.run, c, owners)
	}
	if n.spec.Outsider {
		return
	}
	var err error
	if n.certificate, err = w.door.admits(n).Admit(w.run, n.key); err == nil {
		_, err = n.members.Add(n.certificate)
	}
	if err != nil {
		n.broken("sim", "certificate: %v", err)
	}
}

// knowsLeaked has a node know already who came by the leaked invite, as if a set had brought it: uses bound who enters, and these worlds are
// of what more than these may do where they came in nevertheless.
func (n *Node) knowsLeaked(p *Node) {
	if n.members == nil || !p.spec.Leaked || !p.up {
		return
	}
	if fresh, _ := n.members.AddHeld(p.certificate); fresh {
		_ = n.disk.PutMember(p.certificate) // a full disk forgets it
	}
}

// certified is the digest of the node's certificate, none where it has none.
func (n *Node) certified() (id wire.Digest) {
	if n.members == nil || n.spec.Outsider {
		return id
	}
	return n.certificate.ID(n.w.run)
}

// revoke has the owner revoke a node, or the invite that it came by if that has leaked, by the first node at hand: from its open round of each
// fragment on. It reports whether there is one, in a world that admits by invitation.
func (w *World) revoke(who *Node) bool {
	i := slices.IndexFunc(w.nodes, func(n *Node) bool {
		return n != who && n.up && n.paused == 0 && !n.spec.Outsider && n.liar == nil && n.machine.View().Phase() == core.Ready
	})
	if w.s.Open || i < 0 {
		return false
	}
	by, reason := w.nodes[i], []byte("of the world's")
	by.do(func() {
		for f := range w.plan {
			h := wire.NewRevocation(f, by.machine.Rounds().Fragment(f).Closed()+1, w.door.nameOf(who), reason)
			sh := wire.SignHeader(w.door.key, w.run, h)
			w.checks.revokes(by, sh)
			if err := by.machine.Publish(by.clock(), sh, reason); err != nil {
				by.broken("sim", "revoke node %d: %v", who.index, err)
			}
		}
	})
	return true
}

// revoked is what a process does when its owner's statement comes: one that is revoked ends, and the
// others end their sessions with it.
func (n *Node) revoked(e core.Revoked) {
	n.w.after(0, func() {
		if e.Own && n.liar != nil {
			return // it goes on
		}
		if e.Own {
			n.crash()
			n.gone = true
			n.w.relinkLonely()
			return
		}
		for _, p := range slices.Clone(n.links) {
			if n.up && n.members.Admit(p.said, n.clock()) != nil {
				n.w.disconnect(n, p)
			}
		}
	})
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
