package wire

import "encoding/binary"

// CodecRevocation is the codec of a header that is a revocation: an owner's signed statement that an author, or
// all whom an invite admitted, count no more from its round on. It has no values. Its certificate is
// the name revoked, and its payload a reason in words.
const CodecRevocation uint8 = 255

// Revocation says whether a header is one.
func (h Header) Revocation() bool { return h.Codec == CodecRevocation }

// MaxReason bounds the reason of a revocation in bytes. The outer step has the same.
const MaxReason = 256

// stepsKeeps are the steps of a revocation that keeps an author.
const stepsKeeps = 2

// Keeps says whether a revocation has an author stay when the invite is revoked by which it came.
func (h Header) Keeps() bool { return h.Revocation() && h.Steps == stepsKeeps }

// domainKept is of KeptName.
const domainKept = "atoll kept 1"

// KeptName is what a revocation names that has an author stay when its invite is revoked. The outer step has the same.
func KeptName(invite, author PeerID) Digest {
	return Sum(append(append([]byte(domainKept), invite[:]...), author[:]...))
}

// InviteNumber is what a revocation that keeps an author has as tokens: it says for which invite it counts.
func InviteNumber(invite PeerID) uint64 { return binary.BigEndian.Uint64(invite[:]) }

// NewEnd are the headers that revoke an invite from a round of a fragment on and have some authors stay that came by it: these
// first. The last one counts only where the others are in the set of its round: so nobody is out for a moment.
func NewEnd(fragment int, round uint32, invite PeerID, kept []PeerID, reason []byte) (end []Header) {
	for _, author := range kept {
		h := NewRevocation(fragment, round, KeptName(invite, author), reason)
		h.Steps, h.Tokens = stepsKeeps, InviteNumber(invite)
		end = append(end, h)
	}
	h := NewRevocation(fragment, round, Digest(invite), reason)
	h.Tokens = uint64(len(kept))
	return append(end, h)
}

// NewRevocation is the header of a revocation of a name, from a round of a fragment on, for its
// owner to sign. The reason has 1 to MaxReason bytes.
func NewRevocation(fragment int, round uint32, name Digest, reason []byte) Header {
	return Header{
		Fragment: uint16(fragment), Round: round, Base: round - 1, Steps: 1, Codec: CodecRevocation,
		Size: uint32(len(reason)), Payload: Sum(reason), Certificate: name,
	}
}
