package wire

import (
	"fmt"
	"math"
)

// RequestKind says what is asked for.
type RequestKind uint8

// Requests, and the body of an answer with status OK.
const (
	GetGenesis      RequestKind = iota + 1 // Run -> the genesis document's bytes
	GetPeerList                            // -> PeerList
	GetPayload                             // Digest (delta id), WaitMs -> the payload's bytes
	GetRounds                              // Ranges -> EncodeRounds
	GetHeaders                             // Rounds -> EncodeHeaders
	GetManifest                            // -> EncodeManifest
	GetChunk                               // Digest -> the chunk's bytes, packed
	GetSnapshot                            // At -> EncodeManifest of the tips of those rounds
	GetOwn                                 // -> EncodeHeaders: the newest known of the asker's own, one a fragment
	GetCertificates                        // Certificates, Authors -> EncodeCertificates: those, and one of each author
	GetHoldings                            // Digests -> EncodeHoldings: which parts of these blobs the peer has
	GetPart                                // Digest, Parts -> Part.Encode: one of these parts of a blob, as the server chooses
)

var requestNames = [...]string{"", "genesis", "peer list", "payload", "rounds", "headers", "manifest", "chunk", "snapshot", "own", "certificates", "holdings", "part"}

// String returns the kind as logs and counters name it.
func (k RequestKind) String() string {
	if k < GetGenesis || k > GetPart {
		return fmt.Sprintf("request %d", uint8(k))
	}
	return requestNames[k]
}

// MaxResponse is the longest whole answer to a request of this kind, status
// included: what the asker has to be ready to read.
func (k RequestKind) MaxResponse() int {
	switch k {
	case GetGenesis:
		return statusSize + MaxGenesis
	case GetPeerList:
		return statusSize + maxPeerListBody
	case GetPayload:
		return statusSize + MaxPayload
	case GetRounds:
		return statusSize + maxRoundsBody
	case GetHeaders, GetOwn:
		return statusSize + maxHeadersBody
	case GetManifest, GetSnapshot:
		return statusSize + MaxManifest
	case GetChunk:
		return statusSize + maxChunkBody
	case GetCertificates:
		return statusSize + maxCertificatesBody
	case GetHoldings:
		return statusSize + maxHoldingsBody
	case GetPart:
		return statusSize + maxPartBody
	}
	return statusSize
}

// Large reports whether the answer to a request of this kind may be larger than a message: a paused node
// neither asks for such nor gives it.
func (k RequestKind) Large() bool {
	return k == GetPayload || k == GetChunk || k == GetPart || k == GetManifest || k == GetSnapshot
}

// AtOnce reports whether the time of an answer shows the way to a peer: it comes at once. Those for payloads and snapshots may
// wait for what they ask for, or for a slot; certificates and holdings are asked for too rarely to count.
func (k RequestKind) AtOnce() bool {
	return k == GetPeerList || k == GetRounds || k == GetHeaders || k == GetOwn
}

// Range is a run of rounds of one fragment, both ends included, From from 1.
type Range struct {
	_ struct{} `cbor:",toarray"`

	Fragment uint16
	From, To uint32
}

// Rounds is the number of rounds in r.
func (r Range) Rounds() int { return int(r.To-r.From) + 1 }

// Validate checks order and limits. Its error names the field.
func (r Range) Validate() error {
	switch {
	case int(r.Fragment) >= MaxFragments:
		return invalid("range fragment", r.Fragment, "below %d", MaxFragments)
	case r.From == 0:
		return invalid("range from", r.From, "at least 1")
	case r.To < r.From:
		return invalid("range to", r.To, "at least %d, its start", r.From)
	case r.To-r.From >= MaxRangeRounds:
		return invalid("range to", r.To, "at most %d rounds from %d", MaxRangeRounds, r.From)
	}
	return nil
}

// RoundKey names one round of one fragment.
type RoundKey struct {
	_ struct{} `cbor:",toarray"`

	Fragment uint16
	Round    uint32
}

// Rounds that no tip has, in a request for a snapshot.
const (
	NewestTip = math.MaxUint32     // the newest that the peer would give in a manifest
	NoTip     = math.MaxUint32 - 1 // nothing of this fragment
)

// Request is one question on a stream. Only the fields of its kind travel.
type Request struct {
	Kind   RequestKind
	Run    RunID      // GetGenesis
	Digest Digest     // GetPayload: the delta's id; GetChunk: the chunk's digest; GetPart: the blob's
	WaitMs uint32     // GetPayload: how long the server may wait for it, up to MaxWaitMs
	Ranges []Range    // GetRounds
	Rounds []RoundKey // GetHeaders
	At     []uint32   // GetSnapshot: the round of each fragment's tip, in order of fragment, or NewestTip or NoTip

	Certificates []Digest // GetCertificates, as the next
	Authors      []PeerID

	Digests []Digest // GetHoldings: of the blobs
	Parts   PartSet  // GetPart: those that would do
}

// The fields of each kind that has any, as they travel.
type (
	genesisFields struct {
		_   struct{} `cbor:",toarray"`
		Run RunID
	}
	payloadFields struct {
		_      struct{} `cbor:",toarray"`
		ID     Digest
		WaitMs uint32
	}
	roundsFields struct {
		_      struct{} `cbor:",toarray"`
		Ranges []Range
	}
	headersFields struct {
		_      struct{} `cbor:",toarray"`
		Rounds []RoundKey
	}
	chunkFields struct {
		_      struct{} `cbor:",toarray"`
		Digest Digest
	}
	tipsFields struct {
		_  struct{} `cbor:",toarray"`
		At []uint32
	}
	certificatesFields struct {
		_            struct{} `cbor:",toarray"`
		Certificates []Digest
		Authors      []PeerID
	}
	holdingsFields struct {
		_       struct{} `cbor:",toarray"`
		Digests []Digest
	}
	partFields struct {
		_      struct{} `cbor:",toarray"`
		Digest Digest
		Parts  []byte
	}
)

// Encode returns the request's bytes. A server refuses one that fails
// Validate.
func (r Request) Encode() []byte {
	b := []byte{Version, byte(r.Kind)}
	switch r.Kind {
	case GetGenesis:
		b = append(b, Marshal(genesisFields{Run: r.Run})...)
	case GetPayload:
		b = append(b, Marshal(payloadFields{ID: r.Digest, WaitMs: r.WaitMs})...)
	case GetRounds:
		b = append(b, Marshal(roundsFields{Ranges: r.Ranges})...)
	case GetHeaders:
		b = append(b, Marshal(headersFields{Rounds: r.Rounds})...)
	case GetChunk:
		b = append(b, Marshal(chunkFields{Digest: r.Digest})...)
	case GetSnapshot:
		b = append(b, Marshal(tipsFields{At: r.At})...)
	case GetCertificates:
		b = append(b, Marshal(certificatesFields{Certificates: append([]Digest{}, r.Certificates...), Authors: append([]PeerID{}, r.Authors...)})...)
	case GetHoldings:
		b = append(b, Marshal(holdingsFields{Digests: r.Digests})...)
	case GetPart:
		b = append(b, Marshal(partFields{Digest: r.Digest, Parts: r.Parts.bytes()})...)
	}
	return b
}

// DecodeRequest decodes and validates one request.
func DecodeRequest(b []byte) (Request, error) {
	if len(b) < messageHead || len(b) > MaxRequest {
		return Request{}, fmt.Errorf("decode request: %w: %d bytes, want %d..%d", ErrSize, len(b), messageHead, MaxRequest)
	}
	if b[0] != Version {
		return Request{}, fmt.Errorf("decode request: %w: %d, this atoll speaks %d", ErrVersion, b[0], Version)
	}
	r, err := decodeFields(RequestKind(b[1]), b[messageHead:])
	if err == nil {
		err = r.Validate()
	}
	if err != nil {
		return Request{}, fmt.Errorf("decode %v request: %w", RequestKind(b[1]), err)
	}
	return r, nil
}

func decodeFields(k RequestKind, b []byte) (r Request, err error) {
	r.Kind = k
	switch k {
	case GetGenesis:
		err = withFields(b, func(f genesisFields) { r.Run = f.Run })
	case GetPayload:
		err = withFields(b, func(f payloadFields) { r.Digest, r.WaitMs = f.ID, f.WaitMs })
	case GetRounds:
		err = withFields(b, func(f roundsFields) { r.Ranges = f.Ranges })
	case GetHeaders:
		err = withFields(b, func(f headersFields) { r.Rounds = f.Rounds })
	case GetChunk:
		err = withFields(b, func(f chunkFields) { r.Digest = f.Digest })
	case GetSnapshot:
		err = withFields(b, func(f tipsFields) { r.At = f.At })
	case GetCertificates:
		err = withFields(b, func(f certificatesFields) { r.Certificates, r.Authors = f.Certificates, f.Authors })
	case GetHoldings:
		err = withFields(b, func(f holdingsFields) { r.Digests = f.Digests })
	case GetPart:
		r.Digest, r.Parts, err = decodeWanted(b)
	case GetPeerList, GetManifest, GetOwn:
		if len(b) != 0 {
			err = fmt.Errorf("%w: %d bytes after a kind without fields", ErrSize, len(b))
		}
	default:
		err = fmt.Errorf("%w %d", ErrKind, uint8(k))
	}
	return r, err
}

// decodeWanted decodes the fields of GetPart.
func decodeWanted(b []byte) (Digest, PartSet, error) {
	var f partFields
	if err := Unmarshal(b, &f); err != nil {
		return Digest{}, PartSet{}, err
	}
	if len(f.Parts) == 0 {
		return Digest{}, PartSet{}, invalid("parts", 0, "at least one")
	}
	parts, err := partSet(f.Parts)
	return f.Digest, parts, err
}

// withFields decodes the fields of a kind and hands them to take.
func withFields[F any](b []byte, take func(f F)) error {
	var f F
	err := Unmarshal(b, &f)
	take(f)
	return err
}

// Validate checks the request's limits. Its error names the field.
func (r Request) Validate() error {
	if r.WaitMs > MaxWaitMs {
		return invalid("wait", r.WaitMs, "at most %d ms", MaxWaitMs)
	}
	if err := validateRanges(r.Ranges); err != nil {
		return err
	}
	if len(r.At) > MaxFragments {
		return invalid("at", len(r.At), "at most %d fragments", MaxFragments)
	}
	if n := max(len(r.Authors), len(r.Certificates)); n > MaxAuthors {
		return invalid("certificates", n, "at most %d", MaxAuthors)
	}
	if len(r.Digests) > MaxHoldings {
		return invalid("digests", len(r.Digests), "at most %d", MaxHoldings)
	}
	return validateRoundKeys(r.Rounds)
}

func validateRanges(ranges []Range) error {
	if len(ranges) > MaxRanges {
		return invalid("ranges", len(ranges), "at most %d", MaxRanges)
	}
	total := 0
	for _, r := range ranges {
		if err := r.Validate(); err != nil {
			return err
		}
		total += r.Rounds()
	}
	if total > MaxRangesRounds {
		return invalid("ranges", total, "at most %d rounds in all", MaxRangesRounds)
	}
	return nil
}

func validateRoundKeys(keys []RoundKey) error {
	if len(keys) > MaxRoundKeys {
		return invalid("rounds", len(keys), "at most %d", MaxRoundKeys)
	}
	for _, k := range keys {
		if int(k.Fragment) >= MaxFragments {
			return invalid("fragment", k.Fragment, "below %d", MaxFragments)
		}
		if k.Round == 0 {
			return invalid("round", k.Round, "at least 1")
		}
	}
	return nil
}
