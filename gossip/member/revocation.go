package member

import (
	"bytes"
	"cmp"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"

	"atoll/gossip/wire"
)

// Word is an owner's word that a name counts no more: what it signed, and why in words, "" where that is not known. It signed the
// digest of the words.
type Word struct {
	Statement wire.SignedHeader
	Reason    string
}

// fits reports whether the reason is the one of the statement.
func (w Word) fits() bool {
	return w.Reason == "" || len(w.Reason) <= wire.MaxReason && wire.Sum([]byte(w.Reason)) == w.Statement.Header.Payload
}

// Encode is the word as it travels: the statement and the reason. One that is too long is left out: what counts is the statement.
func (w Word) Encode() []byte {
	b := w.Statement.Append(nil)
	if len(w.Reason) <= wire.MaxReason {
		b = append(b, w.Reason...)
	}
	return b
}

// Kept is the word where members are kept: of one length, which no certificate has.
func (w Word) Kept() []byte {
	b := w.Encode()
	return append(b, make([]byte, wire.MaxWord-len(b))...)
}

// ParseWord decodes what Encode made. It verifies no signature.
func ParseWord(b []byte) (w Word, err error) {
	size := min(wire.SignedHeaderSize, len(b))
	w.Statement, err = wire.ParseSignedHeader(b[:size])
	if w.Reason = string(b[size:]); err == nil && !w.fits() {
		err = fmt.Errorf("a signed statement with another reason: %w", wire.ErrInvalid)
	}
	return w, err
}

// ParseWords decodes those of a peer list.
func ParseWords(encoded [][]byte) (words []Word, err error) {
	for _, b := range encoded {
		w, err := ParseWord(b)
		if err != nil {
			return nil, err
		}
		words = append(words, w)
	}
	return words, nil
}

// ParseKept decodes what Kept made.
func ParseKept(b []byte) (Word, error) {
	if len(b) != wire.MaxWord {
		return Word{}, fmt.Errorf("a signed statement of %d bytes: %w", len(b), wire.ErrInvalid)
	}
	return ParseWord(slices.Concat(b[:wire.SignedHeaderSize], bytes.TrimRight(b[wire.SignedHeaderSize:], "\x00")))
}

// Text says for people who said it, from which round on, and why.
func (w Word) Text() string {
	h := w.Statement.Header
	text := fmt.Sprintf("by owner %v, from round %d on", h.Author, h.Round)
	if w.Reason == "" {
		return text
	}
	return text + ": " + strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return unicode.ReplacementChar
		}
		return r
	}, w.Reason)
}

// RevokedError says that an owner of the run revoked a node, or the invite by which it came. A node that
// was away hears of it from peers that refuse it. These may lie, so the owner's signed statement comes along.
type RevokedError struct{ Word }

// proofMark stands before the owner's word in the text of a RevokedError.
const proofMark = "proof "

// Error is for people, and for the node that it is about.
func (e *RevokedError) Error() string {
	return "an owner of the run has revoked it, " + proofMark + base64.RawURLEncoding.EncodeToString(e.Encode())
}

// Shown is the text of a refusal for people, without what proves it to the node that is refused. What that says people read only
// where Proof took it: a peer may have made it up.
func Shown(text string) string {
	before, after, found := strings.Cut(text, ", "+proofMark)
	if !found {
		return text
	}
	return before + strings.TrimLeft(after, base64Letters)
}

// wordIn is the word that a text begins with.
func wordIn(text string) (w Word, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text[:len(text)-len(strings.TrimLeft(text, base64Letters))])
	if err != nil {
		return w, err
	}
	return ParseWord(b)
}

const base64Letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// AddWords has owners' words count, which it verifies: those that keep somebody first, so that nobody is out meanwhile who stays. It
// returns those that are new, and stops at one that no owner of the run signed.
func (t *Table) AddWords(words ...Word) (fresh []Word, err error) {
	if t == nil && len(words) > 0 {
		return nil, fmt.Errorf("a revocation: %w: the run is open, and has no owner", wire.ErrInvalid)
	}
	for _, keeps := range []bool{true, false} {
		for _, w := range words {
			if w.Statement.Header.Keeps() != keeps {
				continue
			}
			isNew, err := t.AddRevocation(w.Statement)
			if err != nil {
				return fresh, err
			}
			if t.explain(w); isNew {
				fresh = append(fresh, w)
			}
		}
	}
	return fresh, nil
}

// AddRevocation records an owner's statement, which it verifies, that an author, or all whom an invite admitted,
// count no more. It reports whether that is new. Their deltas from before stay in the run, so their
// certificates are kept. Of two ends of an invite the one that keeps fewer is recorded: the other may never have counted.
func (t *Table) AddRevocation(statement wire.SignedHeader) (fresh bool, err error) {
	name := wire.PeerID(statement.Header.Certificate)
	if w, known := t.Word(name); known && w.Statement.Header.Tokens <= statement.Header.Tokens {
		return false, nil
	}
	if err := t.checkRevocation(statement); err != nil {
		return false, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.revoked[name]; !known && statement.Header.Keeps() {
		t.kept[statement.Header.Tokens]++
	}
	t.revoked[name] = statement
	delete(t.reasons, name)
	t.changes++
	return true, nil
}

// Words are the owners' words, as many as a peer list has: those of the earliest rounds.
func (t *Table) Words() (words []Word) {
	if t == nil {
		return nil
	}
	t.mu.RLock()
	defer t.mu.RUnlock()
	for name, statement := range t.revoked {
		words = append(words, Word{statement, t.reasons[name]})
	}
	slices.SortFunc(words, func(a, b Word) int {
		x, y := a.Statement.Header, b.Statement.Header
		return cmp.Or(cmp.Compare(x.Round, y.Round), x.Certificate.Compare(y.Certificate))
	})
	return words[:min(len(words), wire.MaxWords)]
}

// EncodedWords are Words as a peer list has them.
func (t *Table) EncodedWords() (encoded [][]byte) {
	for _, w := range t.Words() {
		encoded = append(encoded, w.Encode())
	}
	return encoded
}

// explain has the reason of a word known, if its statement is.
func (t *Table) explain(w Word) {
	name := wire.PeerID(w.Statement.Header.Certificate)
	t.mu.Lock()
	defer t.mu.Unlock()
	if kept, known := t.revoked[name]; known && w.Reason != "" && w.Statement.Header.Payload == kept.Header.Payload && w.fits() {
		t.reasons[name] = w.Reason
	}
}

// Word is what an owner said of a name: an author or an invite.
func (t *Table) Word(name wire.PeerID) (w Word, known bool) {
	t.mu.RLock()
	defer t.mu.RUnlock()
	w.Statement, known = t.revoked[name]
	w.Reason = t.reasons[name]
	return w, known
}

// WordAgainst is an owner's word by which nobody listens to an author any more.
func (t *Table) WordAgainst(author wire.PeerID) (w Word, known bool) {
	if !t.Out(author) {
		return w, false
	}
	for _, c := range t.Of(author) {
		if e := (*RevokedError)(nil); errors.As(t.Revoked(c), &e) {
			return e.Word, true
		}
	}
	return w, false
}

// OutBy is WordAgainst as people read it.
func (t *Table) OutBy(author wire.PeerID) (word string, out bool) {
	w, out := t.WordAgainst(author)
	if out {
		word = w.Text()
	}
	return word, out
}

// Knows reports whether an owner's statement about a name is known, and counts: an invite's does once all whom it keeps are known.
func (t *Table) Knows(name wire.PeerID) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	statement, known := t.revoked[name]
	return known && (statement.Header.Keeps() || t.counts(statement))
}

// counts reports whether all whom the end of an invite keeps are known. The caller holds the lock.
func (t *Table) counts(statement wire.SignedHeader) bool {
	return statement.Header.Tokens <= t.kept[wire.InviteNumber(wire.PeerID(statement.Header.Certificate))]
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
		return &RevokedError{Word{statement, t.reasons[wire.PeerID(statement.Header.Certificate)]}}
	}
	return nil
}

// statementAgainst is an owner's statement by which a certificate is revoked. The caller holds the lock.
func (t *Table) statementAgainst(c Certificate) (statement wire.SignedHeader, revoked bool) {
	if statement, revoked = t.revoked[c.Author]; revoked && t.counts(statement) {
		return statement, true
	}
	if statement, revoked = t.revoked[c.Invite.Key]; revoked {
		_, kept := t.revoked[wire.PeerID(wire.KeptName(c.Invite.Key, c.Author))]
		revoked = !kept && t.counts(statement)
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

// Proof is the owner's word in the text of a refusal, that a certificate is revoked. It is false where
// there is none, or one that is not true.
func (t *Table) Proof(c Certificate, text string) (w Word, ok bool) {
	_, after, found := strings.Cut(text, proofMark)
	if t == nil || !found {
		return w, false
	}
	w, err := wordIn(after)
	name := wire.PeerID(w.Statement.Header.Certificate)
	about := name == c.Author || name == c.Invite.Key && w.Statement.Header.Tokens == 0 // one that keeps some does not say whom
	return w, err == nil && about && t.checkRevocation(w.Statement) == nil
}
