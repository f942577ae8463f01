package peers

import (
	"errors"

	"atoll/gossip/effect"
	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// Peers are of two classes. Who is known has shown more than a key, which costs nothing: the link
// names it, an invite admits it and not as a guest, or a delta of it was folded here. All others are strangers, once
// the run has begun; before that nobody could have shown anything. What is shared by all keeps
// room for those that are known: strangers have one part in StrangersShare of it at most, and give
// way first.
const StrangersShare = 8

// Known reports whether an author is more than a key.
func (t *Table) Known(id wire.PeerID) bool {
	switch {
	case id == t.Config.Self || t.Trusts(id):
		return true
	case t.Config.Members != nil:
		return t.Config.Members.Member(id) && !t.Guest(id)
	}
	return t.chain.Contributed(id)
}

// Stranger reports whether an author is a mere key, though others are more.
func (t *Table) Stranger(id wire.PeerID) bool { return t.Begun() && !t.Known(id) }

// Begun reports whether something was folded on the chain of this node.
func (t *Table) Begun() bool { return t.chain.FoldedTokens() > 0 }

// KeepCertificate adds a certificate to those known, and has one that is new made durable: after a restart
// this node must still know whose deltas it holds.
func (t *Table) KeepCertificate(c member.Certificate, add func(member.Certificate) (bool, error)) error {
	fresh, err := add(c)
	if fresh {
		t.Emit(effect.Admitted{Certificate: c})
	}
	return err
}

// admit reports whether a record is of a node that may take part, and keeps its certificate.
func (t *Table) admit(rec *hello.Record) bool {
	if t.Config.Members == nil {
		return true
	}
	c, err := member.CertificateIn(*rec)
	if err == nil {
		err = t.KeepCertificate(c, t.Config.Members.Add)
	}
	return err == nil || errors.Is(err, member.ErrFull) && t.Config.Members.Member(rec.Author)
}
