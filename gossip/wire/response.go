package wire

import (
	"errors"
	"fmt"
)

// Status is the first byte of every answer.
type Status uint8

// Statuses. All but OK have no body.
const (
	OK       Status = iota + 1
	NotFound        // ask another
	Busy            // ask later
	Refused         // do not ask again
)

// statusSize is the length of an answer without a body.
const statusSize = 1

var statusNames = [...]string{"", "ok", "not found", "busy", "refused"}

// String returns the status as logs and counters name it.
func (s Status) String() string {
	if s < OK || s > Refused {
		return fmt.Sprintf("status %d", uint8(s))
	}
	return statusNames[s]
}

// Response is one answer on a stream.
type Response struct {
	Status Status
	Body   []byte
}

// Encode returns the answer's bytes. Only OK carries a body.
func (r Response) Encode() []byte {
	if r.Status != OK {
		return []byte{byte(r.Status)}
	}
	b := make([]byte, 0, statusSize+len(r.Body))
	return append(append(b, byte(OK)), r.Body...)
}

// DecodeResponse decodes an answer of at most limit bytes, status included;
// see RequestKind.MaxResponse. Body shares memory with b.
func DecodeResponse(b []byte, limit int) (Response, error) {
	if len(b) < statusSize || len(b) > limit {
		return Response{}, fmt.Errorf("decode response: %w: %d bytes, want %d..%d", ErrSize, len(b), statusSize, limit)
	}
	r := Response{Status: Status(b[0]), Body: b[statusSize:]}
	if r.Status < OK || r.Status > Refused {
		return Response{}, fmt.Errorf("decode response: %w: %v", ErrKind, r.Status)
	}
	if r.Status != OK && len(r.Body) > 0 {
		return Response{}, fmt.Errorf("decode response: %w: %d bytes after %v", ErrSize, len(r.Body), r.Status)
	}
	return r, nil
}

// OpenResponse is the body of an answer of at most limit bytes, or why there is none: it is
// malformed, or its status says so.
func OpenResponse(b []byte, limit int) ([]byte, error) {
	r, err := DecodeResponse(b, limit)
	if err != nil {
		return nil, err
	}
	return r.Body, r.Err()
}

// Err is nil for OK, else ErrNotFound, ErrBusy or ErrRefused.
func (r Response) Err() error {
	switch r.Status {
	case OK:
		return nil
	case NotFound:
		return ErrNotFound
	case Busy:
		return ErrBusy
	}
	return ErrRefused
}

// OpenGenesis is the document of an answer to GetGenesis, or why there is none.
func OpenGenesis(run RunID, answer []byte) ([]byte, error) {
	doc, err := OpenResponse(answer, GetGenesis.MaxResponse())
	if err != nil {
		return nil, err
	}
	return doc, CheckGenesis(run, doc)
}

// CheckGenesis refuses a genesis document that is not the run's.
func CheckGenesis(run RunID, doc []byte) error {
	if of := RunID(Sum(doc)); of != run {
		return fmt.Errorf("genesis: %w: it is of run %v, not %v", ErrInvalid, of, run)
	}
	return nil
}

// PeerList is the body that answers GetPeerList.
type PeerList struct {
	_ struct{} `cbor:",toarray"`

	Records [][]byte // signed capability records, each as hello.Signed.Encode made it, at most MaxPeerList
	Words   [][]byte // owners' words, each as member.Word.Encode made it, at most MaxWords
}

// Encode returns the body's bytes.
func (l PeerList) Encode() []byte { return Marshal(l) }

// DecodePeerList decodes a peer list. Neither records nor words are opened.
func DecodePeerList(b []byte) (l PeerList, err error) {
	if len(b) > maxPeerListBody {
		return l, fmt.Errorf("decode peer list: %w: %d bytes, at most %d", ErrSize, len(b), maxPeerListBody)
	}
	if err := Unmarshal(b, &l); err != nil {
		return l, fmt.Errorf("decode peer list: %w", err)
	}
	return l, errors.Join(withinSizes("record", l.Records, MaxPeerList, MaxRecord), withinSizes("word", l.Words, MaxWords, MaxWord))
}

// withinSizes refuses more items than most, and one of more bytes than longest.
func withinSizes(what string, items [][]byte, most, longest int) error {
	if len(items) > most {
		return fmt.Errorf("decode: %w: %d times a %s, at most %d", ErrSize, len(items), what, most)
	}
	for _, b := range items {
		if len(b) > longest {
			return fmt.Errorf("decode: %w: %s of %d bytes, at most %d", ErrSize, what, len(b), longest)
		}
	}
	return nil
}

// EncodeCertificates returns the body that carries certificates, at most MaxCertificates of them.
func EncodeCertificates(certificates [][]byte) []byte { return Marshal(certificates) }

// DecodeCertificates decodes certificates. They are not opened.
func DecodeCertificates(b []byte) ([][]byte, error) {
	if len(b) > maxCertificatesBody {
		return nil, fmt.Errorf("decode certificates: %w: %d bytes, at most %d", ErrSize, len(b), maxCertificatesBody)
	}
	var certificates [][]byte
	if err := Unmarshal(b, &certificates); err != nil {
		return nil, fmt.Errorf("decode certificates: %w", err)
	}
	return certificates, withinSizes("certificate", certificates, MaxCertificates, MaxCertificate)
}

// RangeAnswer tells what a node holds of one Range.
type RangeAnswer struct {
	_ struct{} `cbor:",toarray"`

	Closed uint32   // last closed round of the fragment
	Base   uint32   // oldest round that it can still refold from
	Chain  Digest   // chain digest at From-1; zero if unknown
	State  Digest   // state digest at From-1; zero if unknown
	Sets   []Digest // SetDigest of From, From+1, ... up to To or the last round with a delta
}

// EncodeRounds returns the body that answers GetRounds, an answer for each
// range in the order in which they were asked.
func EncodeRounds(answers []RangeAnswer) []byte { return Marshal(answers) }

// Set is the peer's set digest of the round that is i after the first asked for; none
// where the answer ends before it.
func (a RangeAnswer) Set(i int) Digest {
	if i < len(a.Sets) {
		return a.Sets[i]
	}
	return Digest{}
}

// DecodeRounds decodes the answers to the ranges that were asked: as many, and
// none with more sets than its range has rounds.
func DecodeRounds(b []byte, asked []Range) ([]RangeAnswer, error) {
	if len(b) > maxRoundsBody {
		return nil, fmt.Errorf("decode rounds: %w: %d bytes, at most %d", ErrSize, len(b), maxRoundsBody)
	}
	var answers []RangeAnswer
	if err := Unmarshal(b, &answers); err != nil {
		return nil, fmt.Errorf("decode rounds: %w", err)
	}
	if len(answers) != len(asked) {
		return nil, fmt.Errorf("decode rounds: %w: %d answers to %d ranges", ErrSize, len(answers), len(asked))
	}
	for i, a := range answers {
		if len(a.Sets) > asked[i].Rounds() {
			return nil, fmt.Errorf("decode rounds: %w: %d sets for %d rounds", ErrSize, len(a.Sets), asked[i].Rounds())
		}
	}
	return answers, nil
}

// EncodeHeaders returns the body that answers GetHeaders: the encodings one
// after the other, at most MaxHeaders of them, only whole rounds.
func EncodeHeaders(headers []SignedHeader) []byte {
	b := make([]byte, 0, len(headers)*SignedHeaderSize)
	for _, h := range headers {
		b = h.Append(b)
	}
	return b
}

// DecodeHeaders decodes and validates headers. Signatures are not verified.
func DecodeHeaders(b []byte) ([]SignedHeader, error) {
	if len(b) > maxHeadersBody || len(b)%SignedHeaderSize != 0 {
		return nil, fmt.Errorf("decode headers: %w: %d bytes, want at most %d headers of %d", ErrSize, len(b), MaxHeaders, SignedHeaderSize)
	}
	headers := make([]SignedHeader, 0, len(b)/SignedHeaderSize)
	for ; len(b) > 0; b = b[SignedHeaderSize:] {
		h, err := ParseSignedHeader(b[:SignedHeaderSize])
		if err != nil {
			return nil, fmt.Errorf("decode headers: %w", err)
		}
		headers = append(headers, h)
	}
	return headers, nil
}

// Found is the encoded response with a body, or NotFound where there is none.
func Found(body []byte) []byte {
	if body == nil {
		return Response{Status: NotFound}.Encode()
	}
	return Response{Status: OK, Body: body}.Encode()
}
