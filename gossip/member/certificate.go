package member

import (
	"fmt"
	"strings"

	"atoll/gossip/wire"
)

// domainCertificate is of the signature of a node's key with an invite, domainID of the digest
// that names a certificate.
const (
	domainCertificate = "atoll certificate 1"
	domainID          = "atoll certificate id 1"
)

// Certificate says that an owner invited, and that the invited one admits a node. It does not name the owner: genesis does.
type Certificate struct {
	Invite    Invite
	InviteSig wire.Signature // of an owner, of the invite
	Author    wire.PeerID    // the node
	Sig       wire.Signature // with the invite's key, of what the certificate states
}

// Size is the length of an encoded Certificate.
const Size = inviteSize + 64 + 32 + 64

// stated is what a certificate says, without signatures.
func (c Certificate) stated() []byte {
	return append(c.Invite.append(make([]byte, 0, inviteSize+32)), c.Author[:]...)
}

// Encode returns the certificate's Size bytes.
func (c Certificate) Encode() []byte {
	b := append(c.Invite.append(make([]byte, 0, Size)), c.InviteSig[:]...)
	b = append(b, c.Author[:]...)
	return append(b, c.Sig[:]...)
}

// Parse decodes exactly Size bytes. It verifies nothing.
func Parse(b []byte) (Certificate, error) {
	if len(b) != Size {
		return Certificate{}, fmt.Errorf("certificate: %w: %d bytes, want %d", wire.ErrSize, len(b), Size)
	}
	v, err := parseInvite(b[:inviteSize])
	if err != nil {
		return Certificate{}, err
	}
	rest := b[inviteSize:]
	return Certificate{Invite: v, InviteSig: wire.Signature(rest[:64]), Author: wire.PeerID(rest[64:96]), Sig: wire.Signature(rest[96:])}, nil
}

// ID names the certificate: BLAKE3 over domain, run and what it states. Signatures are no part
// of it: who signs can make many for one statement.
func (c Certificate) ID(run wire.RunID) wire.Digest {
	return wire.Sum(wire.Statement(domainID, run, c.stated()))
}

// Verify checks both signatures, that of the invite by the run's owners: who does not know these yet passes none, and then anybody's will do.
func (c Certificate) Verify(run wire.RunID, owners []wire.PeerID) error {
	if c.Invite.Alone && c.Author != c.Invite.Key {
		return fmt.Errorf("certificate of %v: %w: the invite is for %v alone", c.Author, wire.ErrInvalid, c.Invite.Key)
	}
	if len(owners) > 0 {
		if err := verifyInvite(run, c.Invite, c.InviteSig, owners); err != nil {
			return fmt.Errorf("certificate of %v: %w", c.Author, err)
		}
	}
	if err := wire.Verify(c.Invite.Key, domainCertificate, run, c.stated(), c.Sig); err != nil {
		return fmt.Errorf("certificate of %v: %w", c.Author, err)
	}
	return nil
}

// verifyInvite checks that one of the owners signed the invite.
func verifyInvite(run wire.RunID, v Invite, sig wire.Signature, owners []wire.PeerID) error {
	for _, owner := range owners {
		if wire.Verify(owner, domainInvite, run, v.append(nil), sig) == nil {
			return nil
		}
	}
	return fmt.Errorf("its invite is of no owner of this run: %w", wire.ErrSignature)
}

// Revoked reports whether the text of a refusal shows that the owner who signed the invite of c has revoked it, or its author. That is
// for newcomers, who know no other owner yet.
func (c Certificate) Revoked(run wire.RunID, text string) bool {
	_, after, _ := strings.Cut(text, proofMark)
	w, err := wordIn(after)
	owners := []wire.PeerID{w.Statement.Header.Author}
	_, proven := NewTable(run, owners).Proof(c, text)
	return err == nil && proven && c.Verify(run, owners) == nil
}
