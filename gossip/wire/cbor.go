package wire

import (
	"bytes"
	"crypto/ed25519"
	"fmt"

	"github.com/fxamacker/cbor/v2"
)

// Limits on any CBOR item, checked before its contents are looked at.
const (
	maxArray  = 4096 // the longest array there is: MaxRangeRounds sets, MaxChunks chunks
	maxMap    = 64   // maps are capability records and heartbeats, which have some twenty keys
	maxNested = 4    // manifest, fragments, fragment, chunks
)

var (
	encMode = must(encOptions().EncMode())
	decMode = must(decOptions(cbor.ExtraDecErrorUnknownField).DecMode())
	newMode = must(decOptions(cbor.ExtraDecErrorNone).DecMode())
)

func encOptions() cbor.EncOptions {
	o := cbor.CoreDetEncOptions()
	o.NilContainers = cbor.NilContainerAsEmpty
	o.TagsMd = cbor.TagsForbidden
	return o
}

func decOptions(unknown cbor.ExtraDecErrorCond) cbor.DecOptions {
	return cbor.DecOptions{
		DupMapKey:         cbor.DupMapKeyEnforcedAPF,
		IndefLength:       cbor.IndefLengthForbidden,
		TagsMd:            cbor.TagsForbidden,
		MaxArrayElements:  maxArray,
		MaxMapPairs:       maxMap,
		MaxNestedLevels:   maxNested,
		ExtraReturnErrors: unknown,
	}
}

func must[T any](v T, err error) T {
	if err != nil {
		panic(err) // the options above are constants: it fails always or never
	}
	return v
}

// Marshal returns the canonical CBOR of v, a structure of this project whose
// fields are numbers, strings, byte arrays, and slices or structures of these.
func Marshal(v any) []byte {
	return must(encMode.Marshal(v))
}

// Unmarshal decodes b into v, a pointer to a zero value. It takes only the
// bytes that Marshal makes. It refuses duplicate or unknown keys, indefinite
// lengths, tags, trailing bytes, numbers longer than need be, and more nesting
// or larger arrays than our structures have.
func Unmarshal(b []byte, v any) error {
	if err := decMode.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	if !bytes.Equal(b, Marshal(v)) {
		return fmt.Errorf("%w: not canonical", ErrEncoding)
	}
	return nil
}

// UnmarshalOpen is Unmarshal for a structure that a newer version may have
// added keys to: those are skipped, within the same limits. The bytes have to
// be kept, as Marshal may not restore them.
func UnmarshalOpen(b []byte, v any) error {
	if err := newMode.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%w: %w", ErrEncoding, err)
	}
	return nil
}

// seal appends to dst the CBOR of v and the signature over it.
func seal(dst []byte, key ed25519.PrivateKey, domain string, run RunID, v any) []byte {
	b := Marshal(v)
	sig := Sign(key, domain, run, b)
	return append(append(dst, b...), sig[:]...)
}

// unseal decodes into v what seal appended and returns what was signed. The
// caller verifies, with the author that it finds in v.
func unseal(b []byte, v any) (signed []byte, sig Signature, err error) {
	if signed, sig, err = cut(b); err != nil {
		return nil, sig, err
	}
	return signed, sig, Unmarshal(signed, v)
}

// cut tells what was signed from the signature behind it.
func cut(b []byte) (signed []byte, sig Signature, err error) {
	n := len(b) - len(sig)
	if n < 0 {
		return nil, sig, fmt.Errorf("%w: %d bytes, a signature alone has %d", ErrSize, len(b), len(sig))
	}
	return b[:n], Signature(b[n:]), nil
}
