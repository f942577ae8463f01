package member

import (
	"encoding/base64"
	"fmt"
	"strings"

	"atoll/gossip/wire"
)

// RevokedError says that an owner of the run revoked a node, or the invite by which it came. A node that
// was away hears of it from peers that refuse it. These may lie, so the owner's signed statement comes along.
type RevokedError struct {
	Statement wire.SignedHeader
}

// proofMark stands before the owner's statement in the text of a RevokedError.
const proofMark = "proof "

// Error is for people, and for the node that it is about.
func (e *RevokedError) Error() string {
	return "an owner of the run has revoked it, " + proofMark + base64.RawURLEncoding.EncodeToString(e.Statement.Append(nil))
}

// Shown is the text of a refusal for people: without the owner's statement, which is for the node that is refused.
func Shown(text string) string {
	before, after, found := strings.Cut(text, ", "+proofMark)
	if !found {
		return text
	}
	return before + strings.TrimLeft(after, base64Letters)
}

const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// AddRevocation records an owner's statement, which it verifies, that an author, or all whom an invite admitted,
// count no more. It reports whether that is new. Their deltas from before stay in the run, so their
// certificates are kept.
func (t *Table) AddRevocation(statement wire.SignedHeader) (fresh bool, err error) {
	if err := t.checkRevocation(statement); err != nil {
		return false, err
	}
	name := wire.PeerID(statement.Header.Certificate)
	t.mu.Lock()
	defer t.mu.Unlock()
	_, known := t.revoked[name]
	if !known {
		t.revoked[name] = statement
		t.changes++
	}
	return !known, nil
}

// Knows reports whether an owner's statement about a name is known.
func (t *Table) Knows(name wire.PeerID) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	_, known := t.revoked[name]
	return known
}

func (t *Table) checkRevocation(statement wire.SignedHeader) error {
	h := statement.Header
	if err := h.Validate(); err != nil {
		return err
	}
	if !h.Revocation() {
		return fmt.Errorf("header of %v: %w: it is no revocation", h.Author, wire.ErrInvalid)
	}
	if err := t.checkOwner(h.Author); err != nil {
		return err
	}
	return statement.Verify(t.run)
}

// checkOwner tells whether an author may revoke others.
func (t *Table) checkOwner(author wire.PeerID) error {
	if !t.owns(author) {
		return fmt.Errorf("revocation by %v: %w: it is no owner of this run", author, wire.ErrInvalid)
	}
	return nil
}

// Revoked says of a certificate whether an owner revoked its author or its invite: nil, or a
// *RevokedError.
func (t *Table) Revoked(c Certificate) error {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if statement, revoked := t.statementAgainst(c); revoked {
		return &RevokedError{statement}
	}
	return nil
}

// statementAgainst is an owner's statement by which a certificate is revoked. The caller holds the lock.
func (t *Table) statementAgainst(c Certificate) (statement wire.SignedHeader, revoked bool) {
	if statement, revoked = t.revoked[c.Author]; !revoked {
		statement, revoked = t.revoked[c.Invite.Key]
	}
	return statement, revoked
}

// isRevoked is asked for each peer and message, and mostly nobody is revoked. The caller holds the lock.
func (t *Table) isRevoked(c *Certificate) bool {
	if len(t.revoked) == 0 {
		return false
	}
	_, revoked := t.statementAgainst(*c)
	return revoked
}

// Proof is the owner's statement in the text of a refusal, that a certificate is revoked. It is false where
// there is none, or one that is not true.
func (t *Table) Proof(c Certificate, text string) (statement wire.SignedHeader, ok bool) {
	_, after, found := strings.Cut(text, proofMark)
	if t == nil || !found {
		return statement, false
	}
	size := base64.RawURLEncoding.EncodedLen(wire.SignedHeaderSize)
	b, err := base64.RawURLEncoding.DecodeString(after[:min(size, len(after))])
	if err == nil {
		statement, err = wire.ParseSignedHeader(b)
	}
	name := wire.PeerID(statement.Header.Certificate)
	return statement, err == nil && (name == c.Author || name == c.Invite.Key) && t.checkRevocation(statement) == nil
}
