package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// revoked ends gossip and sessions with the names that the rounds found revoked, where this node has the owner's signed
// statement. A name that only a snapshot tells may have none here, and a snapshot can be anybody's: it keeps deltas out of
// sets, as for all who have these tips, and does nothing else.
func (m *Machine) revoked(e rounds.Revoked) {
	members := m.cfg.Gossip.Members
	if members == nil {
		return // no owner, no revocation: an encoded tip of such a run has none either
	}
	var words []member.Word
	var signed []wire.SignedHeader
	for _, r := range e.Names {
		name := wire.PeerID(r.Name)
		if members.Knows(name) {
			continue
		}
		if all := m.revocationsOf(name); len(all) > 0 {
			words, signed = append(words, member.Word{Statement: all[0]}), append(signed, all...)
		}
	}
	fresh, _ := members.AddWords(words...) // the rounds took none that no owner signed
	m.heed(fresh, signed)
}

// heed keeps owners' words that are new here, and tells of them. Signed are the headers that gossip brought of them.
func (m *Machine) heed(words []member.Word, signed []wire.SignedHeader) {
	var names []wire.PeerID
	for _, w := range words {
		m.emit(StoreRevocation{w})
		if h := w.Statement.Header; !h.Keeps() {
			names = append(names, wire.PeerID(h.Certificate))
		}
	}
	if len(words) > 0 {
		m.emit(Revoked{Names: names, Words: signed, Own: m.ownRevoked(m.cfg.Gossip.Members)})
	}
}

// revocationsOf are the owner's signed statements that revoke a name, of all fragments, among the headers.
func (m *Machine) revocationsOf(name wire.PeerID) (statements []wire.SignedHeader) {
	for _, h := range m.headers {
		if h.Header.Revocation() && wire.PeerID(h.Header.Certificate) == name {
			statements = append(statements, *h)
		}
	}
	slices.SortFunc(statements, older)
	return statements
}

// older orders the statements about one name, so that the order of a map does not choose one. The end of an invite that keeps the fewest
// comes first: one that kept more may never have counted, as some of these never came.
func older(x, y wire.SignedHeader) int {
	a, b := x.Header, y.Header
	return cmp.Or(cmp.Compare(a.Tokens, b.Tokens), cmp.Compare(a.Fragment, b.Fragment), cmp.Compare(a.Round, b.Round), a.Payload.Compare(b.Payload))
}

func (m *Machine) ownRevoked(members *member.Table) bool {
	c, known := members.Find(m.cfg.Certificate)
	return known && members.Revoked(c) != nil
}

// ToldRevoked takes what a peer says that refuses this node. If it shows an owner's signed statement that
// this node is revoked, the node ends.
func (m *Machine) ToldRevoked(now Time, reason string) {
	members := m.cfg.Gossip.Members
	c, known := members.Find(m.cfg.Certificate)
	if !known {
		return
	}
	if w, ok := members.Proof(c, reason); ok {
		fresh, _ := members.AddWords(w) // which Proof has verified
		m.heed(fresh, nil)
	}
}

// invites are the invites by which an author came. An own delta names one of them, and stands or
// falls with it.
func (m *Machine) invites(a outer.Author) [][32]byte {
	members := m.cfg.Gossip.Members
	if wire.PeerID(a) != m.self {
		return members.Invites(wire.PeerID(a))
	}
	if c, known := members.Find(m.cfg.Certificate); known {
		return [][32]byte{c.Invite.Key}
	}
	return nil
}

// Publish takes a revocation that an owner of the run signed, spreads it and enters it into the set
// of its round. The error is for one that no node of the run takes.
func (m *Machine) Publish(now Time, sh wire.SignedHeader, reason []byte) error {
	h := sh.Header
	if err := h.Validate(); err != nil {
		return err
	}
	if !h.Revocation() || int(h.Size) != len(reason) || h.Payload != wire.Sum(reason) {
		return fmt.Errorf("header of %v: %w: it is no revocation with that reason", h.Author, wire.ErrInvalid)
	}
	if err := sh.Verify(m.cfg.Run); err != nil {
		return err
	}
	if err := m.check(h); err != nil {
		return err
	}
	id := h.ID(m.cfg.Run)
	m.offer(now, id, &sh, false)
	if !m.knows(id) {
		m.pump(now)
		return fmt.Errorf("fragment %d round %d: %w: ask again, or a node that has caught up with the run", h.Fragment, h.Round, ErrNotTaken)
	}
	m.gossip.Announce(now, sh, reason)
	m.emit(StoreDelta{ID: id, Header: &sh, Payload: reason})
	m.pump(now)
	return nil
}

// ErrNotTaken says that this node takes no delta for a round.
var ErrNotTaken = errors.New("this node takes nothing for that round now")
