package wire

import (
	"errors"
	"fmt"
)

// What can be wrong with bytes from a peer. A caller may treat ErrVersion as a
// peer to be upgraded; the others are faults of the peer that sent the bytes.
var (
	// ErrSize is a length or count over its limit, or too short to be real.
	ErrSize = errors.New("wrong size")
	// ErrVersion is a message or request of another version of atoll.
	ErrVersion = errors.New("unknown version")
	// ErrKind is a kind or status that this version does not know.
	ErrKind = errors.New("unknown kind")
	// ErrEncoding is CBOR that is not the one canonical encoding of its value.
	ErrEncoding = errors.New("malformed encoding")
	// ErrSignature is a signature that does not belong to these bytes, author,
	// purpose and run.
	ErrSignature = errors.New("signature does not match (damaged, forged, or from another run)")
	// ErrInvalid is a field whose value no honest node sends.
	ErrInvalid = errors.New("invalid")
)

// What a peer answers instead of a body; see Response.Err.
var (
	// ErrNotFound: the peer does not have it. Ask another.
	ErrNotFound = errors.New("peer does not have it")
	// ErrBusy: the peer serves as much as it is willing to. Ask later.
	ErrBusy = errors.New("peer is busy")
	// ErrRefused: the peer will not answer this request. Do not repeat it.
	ErrRefused = errors.New("peer refuses")
)

// invalid names the field, its value and what was expected of it.
func invalid(field string, value any, format string, args ...any) error {
	return fmt.Errorf("%w %s %v: want %s", ErrInvalid, field, value, fmt.Sprintf(format, args...))
}
