package wire

import (
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
)

// Phase says what a vote is for.
type Phase uint8

// The phases of a view, in order.
const (
	Propose   Phase = iota + 1 // what the view's proposer would have certified
	Prevote                    // what the voter would take of it
	Precommit                  // what the voter has seen more than two thirds prevote for
)

// String names the phase.
func (p Phase) String() string {
	names := [...]string{"", "proposal", "prevote", "precommit"}
	if int(p) < len(names) {
		return names[p]
	}
	return fmt.Sprintf("phase %d", uint8(p))
}

// Limits on votes.
const (
	// MaxView bounds Vote.View. A view takes seconds, and one more must not overflow.
	MaxView = 1 << 30
	// MaxVote bounds a vote in bytes: all of its numbers at their largest.
	MaxVote = 1 + digestItem + 1 + 3*numberItem + digestItem + numberItem + 64
)

// Vote is one voter's word on what is final; package finality says what it means.
type Vote struct {
	_ struct{} `cbor:",toarray"`

	Author PeerID
	Phase  Phase
	Height uint32 // of the certificate that it is for, from 0
	View   uint32 // attempt at that height, from 0
	Round  uint32 // of the value voted for; 0 in a vote for none
	Value  Digest // of the value voted for; zero in a vote for none
	Proof  uint32 // in a proposal: 1 + the view whose prevotes were for the value, 0 if it needs none
}

// SignedVote is a vote and its author's signature.
type SignedVote struct {
	Vote
	Sig Signature
}

// SignVote signs v, whose Author it sets to the name of key.
func SignVote(key ed25519.PrivateKey, run RunID, v Vote) SignedVote {
	v.Author = PeerIDOf(key)
	return SignedVote{v, Sign(key, domainVote, run, Marshal(v))}
}

// Verify checks the signature.
func (s SignedVote) Verify(run RunID) error {
	if err := Verify(s.Author, domainVote, run, Marshal(s.Vote), s.Sig); err != nil {
		return fmt.Errorf("%v of %v: %w", s.Phase, s.Author, err)
	}
	return nil
}

// Validate checks ranges. Its error names the field.
func (v Vote) Validate() error {
	switch {
	case v.Phase < Propose || v.Phase > Precommit:
		return invalid("phase", uint8(v.Phase), "%d..%d", Propose, Precommit)
	case v.View > MaxView:
		return invalid("view", v.View, "at most %d", MaxView)
	case (v.Round == 0) != v.Value.IsZero():
		return invalid("round", v.Round, "0 in a vote for none, and only there")
	case v.Phase == Propose && v.Round == 0:
		return invalid("round", v.Round, "above 0 in a proposal")
	case v.Phase != Propose && v.Proof != 0:
		return invalid("proof", v.Proof, "0 in what is no proposal")
	case v.Proof > v.View:
		return invalid("proof", v.Proof, "1 + a view before %d", v.View)
	}
	return nil
}

// Encode returns the vote's bytes, with the signature behind them.
func (s SignedVote) Encode() []byte { return append(Marshal(s.Vote), s.Sig[:]...) }

// Short names a vote among those of a height: the first bytes of the digest of its bytes.
func (s SignedVote) Short() uint64 {
	d := Sum(s.Encode())
	return binary.BigEndian.Uint64(d[:])
}

// OpenVote decodes a vote of the run, within limits, and verifies its signature.
func OpenVote(run RunID, b []byte) (SignedVote, error) {
	s, err := decodeVote(b)
	if err == nil {
		err = s.Verify(run)
	}
	if err != nil {
		return SignedVote{}, fmt.Errorf("open vote: %w", err)
	}
	return s, nil
}

func decodeVote(b []byte) (SignedVote, error) {
	if len(b) > MaxVote {
		return SignedVote{}, fmt.Errorf("%w: %d bytes, at most %d", ErrSize, len(b), MaxVote)
	}
	var s SignedVote
	_, sig, err := unseal(b, &s.Vote)
	if err == nil {
		err = s.Validate()
	}
	if err != nil {
		return SignedVote{}, err
	}
	s.Sig = sig
	return s, nil
}
