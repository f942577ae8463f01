package wire

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
)

// Header announces a delta: one learner's outer gradient for one round of one
// fragment. Its encoding is HeaderSize bytes, fields in order, big-endian.
type Header struct {
	Author   PeerID
	Fragment uint16 // below MaxFragments
	Round    uint32 // from 1
	Base     uint32 // rounds closed when the oldest step in it was taken; below Round
	Steps    uint32 // inner steps, at least 1
	Tokens   uint64 // tokens in those steps
	Codec    uint8  // codec of the payload
	Size     uint32 // payload bytes, 1..MaxPayload
	Payload  Digest // BLAKE3 of the payload
	// Certificate is the digest of its author's certificate, zero in a run that is
	// open to everybody. In a revocation it is the name revoked.
	Certificate Digest
}

// SignedHeader is a header and its author's signature.
type SignedHeader struct {
	Header Header
	Sig    Signature
}

const (
	// HeaderSize is the length of an encoded Header.
	HeaderSize = bareHeaderSize + 32
	// bareHeaderSize is its length up to the certificate.
	bareHeaderSize = 32 + 2 + 4 + 4 + 4 + 8 + 1 + 4 + 32
	// SignedHeaderSize is the length of an encoded SignedHeader.
	SignedHeaderSize = HeaderSize + ed25519.SignatureSize
)

// Append appends the encoding of h to b.
func (h Header) Append(b []byte) []byte {
	b = append(b, h.Author[:]...)
	b = binary.BigEndian.AppendUint16(b, h.Fragment)
	b = binary.BigEndian.AppendUint32(b, h.Round)
	b = binary.BigEndian.AppendUint32(b, h.Base)
	b = binary.BigEndian.AppendUint32(b, h.Steps)
	b = binary.BigEndian.AppendUint64(b, h.Tokens)
	b = append(b, h.Codec)
	b = binary.BigEndian.AppendUint32(b, h.Size)
	b = append(b, h.Payload[:]...)
	return append(b, h.Certificate[:]...)
}

// stated is what is signed and hashed of h: its bytes up to the certificate, and the
// certificate if it has one.
func (h Header) stated() []byte {
	b := h.Append(make([]byte, 0, HeaderSize))
	if h.Certificate.IsZero() {
		return b[:bareHeaderSize]
	}
	return b
}

// ParseHeader decodes exactly HeaderSize bytes and validates the header.
func ParseHeader(b []byte) (Header, error) {
	if len(b) != HeaderSize {
		return Header{}, fmt.Errorf("parse header: %w: %d bytes, want %d", ErrSize, len(b), HeaderSize)
	}
	h := Header{
		Author:   PeerID(b[0:32]),
		Fragment: binary.BigEndian.Uint16(b[32:]),
		Round:    binary.BigEndian.Uint32(b[34:]),
		Base:     binary.BigEndian.Uint32(b[38:]),
		Steps:    binary.BigEndian.Uint32(b[42:]),
		Tokens:   binary.BigEndian.Uint64(b[46:]),
		Codec:    b[54],
		Size:     binary.BigEndian.Uint32(b[55:]),
		Payload:  Digest(b[59:91]),

		Certificate: Digest(b[91:123]),
	}
	if err := h.Validate(); err != nil {
		return Header{}, fmt.Errorf("parse header: %w", err)
	}
	return h, nil
}

// Validate checks what holds in every run; the rest is in the run's genesis.
func (h Header) Validate() error {
	switch {
	case int(h.Fragment) >= MaxFragments:
		return invalid("fragment", h.Fragment, "below %d", MaxFragments)
	case h.Round == 0:
		return invalid("round", h.Round, "at least 1")
	case h.Base >= h.Round:
		return invalid("base", h.Base, "below round %d", h.Round)
	case h.Steps == 0:
		return invalid("steps", h.Steps, "at least 1")
	case h.Size == 0 || h.Size > MaxPayload:
		return invalid("size", h.Size, "in 1..%d", MaxPayload)
	case h.Revocation() && h.Certificate.IsZero():
		return invalid("revocation", h.Certificate, "the name of an author or an invite")
	}
	return nil
}

// ID is the id of the delta: BLAKE3 over domain, run and what the header states.
// The signature is no part of it: an author can make many for one header.
func (h Header) ID(run RunID) Digest {
	return Sum(Statement(domainHeaderID, run, h.stated()))
}

// SignHeader signs h, whose Author it sets to the name of key.
func SignHeader(key ed25519.PrivateKey, run RunID, h Header) SignedHeader {
	h.Author = PeerIDOf(key)
	return SignedHeader{Header: h, Sig: Sign(key, domainHeader, run, h.stated())}
}

// Verify checks the signature; the fields are checked by Header.Validate.
func (s SignedHeader) Verify(run RunID) error {
	if err := Verify(s.Header.Author, domainHeader, run, s.Header.stated(), s.Sig); err != nil {
		return fmt.Errorf("verify header of %v: %w", s.Header.Author, err)
	}
	return nil
}

// Append appends the encoding of s, SignedHeaderSize bytes, to b.
func (s SignedHeader) Append(b []byte) []byte {
	return append(s.Header.Append(b), s.Sig[:]...)
}

// ParseSignedHeader decodes exactly SignedHeaderSize bytes. It does not verify
// the signature.
func ParseSignedHeader(b []byte) (SignedHeader, error) {
	if len(b) != SignedHeaderSize {
		return SignedHeader{}, fmt.Errorf("parse signed header: %w: %d bytes, want %d", ErrSize, len(b), SignedHeaderSize)
	}
	h, err := ParseHeader(b[:HeaderSize])
	if err != nil {
		return SignedHeader{}, err
	}
	return SignedHeader{Header: h, Sig: Signature(b[HeaderSize:])}, nil
}
