package gossip

import (
	"errors"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// Peers are of two classes. Who is known has shown more than a key, which costs nothing: the link
// names it, an invite admits it and not as a guest, or a delta of it was folded here. All others are strangers, once
// the run has begun; before that nobody could have shown anything. What is shared by all keeps
// room for those that are known: strangers have one part in strangersShare of it at most, and give
// way first.
const strangersShare = 8

// known reports whether an author is more than a key.
func (t *peers) known(id wire.PeerID) bool {
	switch {
	case id == t.cfg.Self || t.trusts(id):
		return true
	case t.cfg.Members != nil:
		return t.cfg.Members.Member(id) && !t.guest(id)
	}
	return t.chain.Contributed(id)
}

// stranger reports whether an author is a mere key, though others are more.
func (t *peers) stranger(id wire.PeerID) bool { return t.begun() && !t.known(id) }

// begun reports whether something was folded on the chain of this node.
func (t *peers) begun() bool { return t.chain.FoldedTokens() > 0 }

// keep adds a certificate to those known, and has one that is new made durable: after a restart
// this node must still know whose deltas it holds.
func (t *peers) keep(c member.Certificate, add func(member.Certificate) (bool, error)) error {
	fresh, err := add(c)
	if fresh {
		t.Emit(Admitted{Certificate: c})
	}
	return err
}

// admit reports whether a record is of a node that may take part, and keeps its certificate.
func (t *peers) admit(rec *hello.Record) bool {
	if t.cfg.Members == nil {
		return true
	}
	c, err := member.CertificateIn(*rec)
	if err == nil {
		err = t.keep(c, t.cfg.Members.Add)
	}
	return err == nil || errors.Is(err, member.ErrFull) && t.cfg.Members.Member(rec.Author)
}
