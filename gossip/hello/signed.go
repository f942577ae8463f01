package hello

import (
	"crypto/ed25519"
	"fmt"

	"atoll/gossip/wire"
)

// domain has no version: a record of another one must open, so that Negotiate
// can say which version it is.
const domain = "atoll hello"

// Signed is a record as it travels: the exact bytes that were signed.
type Signed struct {
	Bytes []byte // CBOR of the Record
	Sig   wire.Signature
}

// Sign validates r, with Author set to the name of key, and signs it.
func Sign(key ed25519.PrivateKey, r Record) (Signed, error) {
	r.Author = wire.PeerIDOf(key)
	if err := r.Validate(); err != nil {
		return Signed{}, fmt.Errorf("sign record: %w", err)
	}
	s := Signed{Bytes: wire.Marshal(r)}
	if err := s.checkSize(); err != nil {
		return Signed{}, fmt.Errorf("sign record: %w; name fewer addresses or devices", err)
	}
	s.Sig = wire.Sign(key, domain, r.Run, s.Bytes)
	return s, nil
}

// Open decodes the record within limits, verifies its author's signature and
// validates it. Keys of a newer protocol are skipped.
func (s Signed) Open() (Record, error) {
	if err := s.checkSize(); err != nil {
		return Record{}, fmt.Errorf("open record: %w", err)
	}
	var r Record
	if err := wire.UnmarshalOpen(s.Bytes, &r); err != nil {
		return Record{}, fmt.Errorf("open record: %w", err)
	}
	if err := wire.Verify(r.Author, domain, r.Run, s.Bytes, s.Sig); err != nil {
		return Record{}, fmt.Errorf("open record of %v: %w", r.Author, err)
	}
	if err := r.Validate(); err != nil {
		return Record{}, fmt.Errorf("open record of %v: %w", r.Author, err)
	}
	return r, nil
}

// Encode returns the signed bytes and the signature, at most wire.MaxRecord
// bytes: an entry of a peer list, or a frame of the handshake.
func (s Signed) Encode() []byte {
	b := make([]byte, 0, len(s.Bytes)+len(s.Sig))
	return append(append(b, s.Bytes...), s.Sig[:]...)
}

// Parse splits what Encode joined. It does not open the record. Bytes shares
// memory with b.
func Parse(b []byte) (Signed, error) {
	n := len(b) - len(wire.Signature{})
	if n <= 0 || len(b) > wire.MaxRecord {
		return Signed{}, fmt.Errorf("parse record: %w: %d bytes, want %d..%d", wire.ErrSize, len(b), len(wire.Signature{})+1, wire.MaxRecord)
	}
	return Signed{Bytes: b[:n], Sig: wire.Signature(b[n:])}, nil
}

func (s Signed) checkSize() error {
	if n := len(s.Bytes) + len(s.Sig); n > wire.MaxRecord {
		return fmt.Errorf("%w: %d bytes, at most %d", wire.ErrSize, n, wire.MaxRecord)
	}
	return nil
}
