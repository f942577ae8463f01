package wire

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"fmt"
)

// PeerID names a node: its raw ed25519 public key.
type PeerID [32]byte

// Digest is a BLAKE3 hash of 256 bits: of a header (a delta's id), a payload,
// a chunk, a set of ids, a chain or a state.
type Digest [32]byte

// RunID names a run: BLAKE3 of the canonical bytes of its genesis.
type RunID [32]byte

// Signature is an ed25519 signature; see Sign for what it covers.
type Signature [64]byte

// PeerIDOf returns the name of the node that holds key.
func PeerIDOf(key ed25519.PrivateKey) PeerID {
	return PeerID(key.Public().(ed25519.PublicKey))
}

// String returns the first shortHex hex digits, enough to tell peers apart on
// a screen; MarshalText has all of them.
func (p PeerID) String() string    { return short(p[:]) }
func (d Digest) String() string    { return short(d[:]) }
func (r RunID) String() string     { return short(r[:]) }
func (s Signature) String() string { return short(s[:]) }

// MarshalText writes all bytes in hex.
func (p PeerID) MarshalText() ([]byte, error)    { return marshalHex(p[:]) }
func (d Digest) MarshalText() ([]byte, error)    { return marshalHex(d[:]) }
func (r RunID) MarshalText() ([]byte, error)     { return marshalHex(r[:]) }
func (s Signature) MarshalText() ([]byte, error) { return marshalHex(s[:]) }

// UnmarshalText reads what MarshalText wrote and nothing shorter or longer.
func (p *PeerID) UnmarshalText(t []byte) error    { return unmarshalHex("peer id", p[:], t) }
func (d *Digest) UnmarshalText(t []byte) error    { return unmarshalHex("digest", d[:], t) }
func (r *RunID) UnmarshalText(t []byte) error     { return unmarshalHex("run id", r[:], t) }
func (s *Signature) UnmarshalText(t []byte) error { return unmarshalHex("signature", s[:], t) }

// shortHex is the number of hex digits in a String.
const shortHex = 10

func short(b []byte) string { return hex.EncodeToString(b[:shortHex/2]) }

func marshalHex(b []byte) ([]byte, error) {
	return hex.AppendEncode(nil, b), nil
}

func unmarshalHex(what string, dst, text []byte) error {
	if len(text) != hex.EncodedLen(len(dst)) {
		return fmt.Errorf("parse %s: %d characters, want %d hex digits", what, len(text), hex.EncodedLen(len(dst)))
	}
	raw := make([]byte, len(dst))
	if _, err := hex.Decode(raw, text); err != nil {
		return fmt.Errorf("parse %s: %w", what, err)
	}
	copy(dst, raw)
	return nil
}

// Compare orders by bytes: negative, zero or positive.
func (p PeerID) Compare(q PeerID) int { return bytes.Compare(p[:], q[:]) }

// Compare orders by bytes: negative, zero or positive.
func (d Digest) Compare(e Digest) int { return bytes.Compare(d[:], e[:]) }

// IsZero reports whether d stands for "none" or "unknown".
func (d Digest) IsZero() bool { return d == Digest{} }
