package wire

import (
	"bytes"
	"fmt"
)

// Evidence proves that a peer signed two deltas for one round of one fragment.
type Evidence struct{ A, B SignedHeader }

// Check verifies the proof: one author, fragment and round, two different
// headers, both signed in the run.
func (e Evidence) Check(run RunID) error {
	a, b := e.A.Header, e.B.Header
	switch {
	case a.Author != b.Author:
		return invalid("evidence author", b.Author, "%v in both headers", a.Author)
	case a.Fragment != b.Fragment:
		return invalid("evidence fragment", b.Fragment, "%d in both headers", a.Fragment)
	case a.Round != b.Round:
		return invalid("evidence round", b.Round, "%d in both headers", a.Round)
	case a.Revocation() || b.Revocation():
		return invalid("evidence", a.Author, "headers of deltas: an owner may revoke several in one round")
	case a == b:
		return invalid("evidence", a.Author, "two different headers")
	}
	if err := e.A.Verify(run); err != nil {
		return err
	}
	return e.B.Verify(run)
}

// sorted puts the smaller header first, so that a pair has one encoding.
func (e Evidence) sorted() Evidence {
	if bytes.Compare(e.A.Header.Append(nil), e.B.Header.Append(nil)) > 0 {
		e.A, e.B = e.B, e.A
	}
	return e
}

// EncodeEvidence returns the gossip message that carries e.
func EncodeEvidence(e Evidence) []byte {
	e = e.sorted()
	return e.B.Append(e.A.Append([]byte{Version, byte(KindEvidence)}))
}

func decodeEvidence(body []byte) (Evidence, error) {
	if len(body) != 2*SignedHeaderSize {
		return Evidence{}, fmt.Errorf("evidence: %w: %d bytes, want %d", ErrSize, len(body), 2*SignedHeaderSize)
	}
	a, err := ParseSignedHeader(body[:SignedHeaderSize])
	if err != nil {
		return Evidence{}, err
	}
	b, err := ParseSignedHeader(body[SignedHeaderSize:])
	if err != nil {
		return Evidence{}, err
	}
	e := Evidence{A: a, B: b}
	if e.sorted() != e {
		return Evidence{}, invalid("evidence", a.Header.Author, "the smaller header first")
	}
	return e, nil
}
