package wire

import (
	"fmt"
)

// RequestKind says what is asked for.
type RequestKind uint8

// Requests, and the body of an answer with status OK.
const (
	GetGenesis  RequestKind = iota + 1 // Run -> the genesis document's bytes
	GetRoster                          // -> EncodeRoster
	GetPayload                         // Digest (delta id), WaitMs -> the payload's bytes
	GetRounds                          // Ranges -> EncodeRounds
	GetHeaders                         // Rounds -> EncodeHeaders
	GetManifest                        // -> EncodeManifest
	GetChunk                           // Digest -> the chunk's bytes
)

var requestNames = [...]string{"", "genesis", "roster", "payload", "rounds", "headers", "manifest", "chunk"}

// String returns the kind as logs and counters name it.
func (k RequestKind) String() string {
	if k < GetGenesis || k > GetChunk {
		return fmt.Sprintf("request %d", uint8(k))
	}
	return requestNames[k]
}

// MaxResponse is the longest whole answer to a request of this kind, status
// included: what the asker has to be ready to read.
func (k RequestKind) MaxResponse() int {
	switch k {
	case GetGenesis:
		return 1 + MaxGenesis
	case GetRoster:
		return 1 + maxRosterBody
	case GetPayload:
		return 1 + MaxPayload
	case GetRounds:
		return 1 + maxRoundsBody
	case GetHeaders:
		return 1 + maxHeadersBody
	case GetManifest:
		return 1 + MaxManifest
	case GetChunk:
		return 1 + ChunkSize
	}
	return 1
}

// Range is a run of rounds of one fragment, both ends included, From from 1.
type Range struct {
	_ struct{} `cbor:",toarray"`

	Fragment uint16
	From, To uint32
}

// Rounds is the number of rounds in r.
func (r Range) Rounds() int { return int(r.To-r.From) + 1 }

// RoundKey names one round of one fragment.
type RoundKey struct {
	_ struct{} `cbor:",toarray"`

	Fragment uint16
	Round    uint32
}

// Request is one question on a stream. Only the fields of its kind travel.
type Request struct {
	Kind   RequestKind
	Run    RunID      // GetGenesis
	Digest Digest     // GetPayload: the delta's id; GetChunk: the chunk's digest
	WaitMs uint32     // GetPayload: how long the server may wait for it, up to MaxWaitMs
	Ranges []Range    // GetRounds
	Rounds []RoundKey // GetHeaders
}
