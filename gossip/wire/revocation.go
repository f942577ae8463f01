package wire

// CodecRevocation is the codec of a header that is a revocation: an owner's signed statement that an author, or
// all whom an invite admitted, count no more from its round on. It has no values. Its certificate is
// the name revoked, and its payload a reason in words.
const CodecRevocation uint8 = 255

// Revocation says whether a header is one.
func (h Header) Revocation() bool { return h.Codec == CodecRevocation }

// NewRevocation is the header of a revocation of a name, from a round of a fragment on, for its
// owner to sign. The reason has 1 to outer.MaxReason bytes.
func NewRevocation(fragment int, round uint32, name Digest, reason []byte) Header {
	return Header{
		Fragment: uint16(fragment), Round: round, Base: round - 1, Steps: 1, Codec: CodecRevocation,
		Size: uint32(len(reason)), Payload: Sum(reason), Certificate: name,
	}
}
