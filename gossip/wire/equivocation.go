package wire

import (
	"bytes"
	"fmt"
)

// Equivocation is a proof that a peer signed two deltas for one round of one fragment.
type Equivocation struct{ A, B SignedHeader }

// Check verifies the proof: one author, fragment and round, two different
// headers, both signed in the run.
func (e Equivocation) Check(run RunID) error {
	a, b := e.A.Header, e.B.Header
	switch {
	case a.Author != b.Author:
		return invalid("equivocation proof author", b.Author, "%v in both headers", a.Author)
	case a.Fragment != b.Fragment:
		return invalid("equivocation proof fragment", b.Fragment, "%d in both headers", a.Fragment)
	case a.Round != b.Round:
		return invalid("equivocation proof round", b.Round, "%d in both headers", a.Round)
	case a.Revocation() || b.Revocation():
		return invalid("equivocation proof", a.Author, "headers of deltas: an owner may revoke several in one round")
	case a == b:
		return invalid("equivocation proof", a.Author, "two different headers")
	}
	if err := e.A.Verify(run); err != nil {
		return err
	}
	return e.B.Verify(run)
}

// sorted puts the smaller header first, so that a pair has one encoding.
func (e Equivocation) sorted() Equivocation {
	if bytes.Compare(e.A.Header.Append(nil), e.B.Header.Append(nil)) > 0 {
		e.A, e.B = e.B, e.A
	}
	return e
}

// EncodeEquivocation returns the gossip message that carries e.
func EncodeEquivocation(e Equivocation) []byte {
	e = e.sorted()
	return e.B.Append(e.A.Append([]byte{Version, byte(KindEquivocation)}))
}

func decodeEquivocation(body []byte) (Equivocation, error) {
	if len(body) != 2*SignedHeaderSize {
		return Equivocation{}, fmt.Errorf("equivocation proof: %w: %d bytes, want %d", ErrSize, len(body), 2*SignedHeaderSize)
	}
	a, err := ParseSignedHeader(body[:SignedHeaderSize])
	if err != nil {
		return Equivocation{}, err
	}
	b, err := ParseSignedHeader(body[SignedHeaderSize:])
	if err != nil {
		return Equivocation{}, err
	}
	e := Equivocation{A: a, B: b}
	if e.sorted() != e {
		return Equivocation{}, invalid("equivocation proof", a.Header.Author, "the smaller header first")
	}
	return e, nil
}
