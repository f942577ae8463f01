package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// An entry of the headers bucket is one byte and the signed header.
const (
	headerOnly  = 0 // the payload is not here
	payloadHeld = 1
)

// PutDelta keeps a delta of another node with its payload, which must match the
// header. Keeping one again does nothing. Not durable before a commit: others
// can send it again.
func (s *Store) PutDelta(id wire.Digest, h wire.SignedHeader, payload []byte) error {
	if _, held, err := s.lookupAt(int(h.Header.Fragment), h.Header.Round, id); err == nil && held {
		return nil
	}
	if err := s.checkPayload(id, h, payload); err != nil {
		return fmt.Errorf("put %s: %w", describe(id, h), err)
	}
	if err := s.putFile(payloadFile(id, h.Header), payload, s.enter(id, h)); err != nil {
		return fmt.Errorf("put %s: %w", describe(id, h), err)
	}
	return nil
}

// enter is the change that enters a delta with its payload, wherever its header is.
func (s *Store) enter(id wire.Digest, h wire.SignedHeader) change {
	var sealed *sealedAt
	looked := false
	return func(tx *bbolt.Tx) error {
		if !looked && entryOf(tx, id) == nil {
			// A segment that cannot be read counts as none.
			sealed, _ = s.sealedIn(tx, int(h.Header.Fragment), h.Header.Round, h.Header.Round, id)
		}
		looked = true
		if sealed != nil {
			return keepSealed(tx, sealed)
		}
		return putHeader(tx, id, h, payloadHeld)
	}
}

// PutHeader keeps a header whose payload is not here: history of the time
// before this node joined, or a payload that was dropped. It never takes away a
// payload. Not durable before a commit.
func (s *Store) PutHeader(id wire.Digest, h wire.SignedHeader) error {
	if err := s.checkID(id, h); err != nil {
		return fmt.Errorf("put header of %s: %w", describe(id, h), err)
	}
	if _, _, err := s.lookupAt(int(h.Header.Fragment), h.Header.Round, id); err == nil {
		return nil
	}
	return s.update(func(tx *bbolt.Tx) error { return putHeader(tx, id, h, headerOnly) })
}

// Has reports whether the header of a delta is here, and whether its payload is.
func (s *Store) Has(id wire.Digest) (header, payload bool) {
	_, held, err := s.lookup(id)
	return err == nil, err == nil && held
}

// Header returns the signed header of a delta, or ErrNotFound.
func (s *Store) Header(id wire.Digest) (wire.SignedHeader, error) {
	h, _, err := s.lookup(id)
	return h, err
}

// HeaderAt is Header of a delta whose fragment and round are known. One that is not here costs next to nothing then.
func (s *Store) HeaderAt(fragment int, round uint32, id wire.Digest) (wire.SignedHeader, error) {
	h, _, err := s.lookupAt(fragment, round, id)
	return h, err
}

// Payload returns the payload of a delta after checking it against the header.
// The error is ErrNotFound if only the header is here or not even that, and
// ErrCorrupt, naming the delta, if the disk has damaged it: DropPayload and
// fetch it again.
func (s *Store) Payload(id wire.Digest) ([]byte, error) {
	h, held, err := s.lookup(id)
	if err != nil {
		return nil, err
	}
	if !held {
		return nil, fmt.Errorf("payload of %s: %w", describe(id, h), ErrNotFound)
	}
	b, err := readVerified(s.path(payloadFile(id, h.Header)), int64(h.Header.Size), h.Header.Payload)
	if err != nil {
		return nil, fmt.Errorf("payload of %s: %w", describe(id, h), err)
	}
	return b, nil
}

// DropPayload forgets a payload and keeps the header. The file goes with the
// next commit. Dropping one that is not here does nothing.
func (s *Store) DropPayload(id wire.Digest) error {
	var sealed *sealedAt
	return s.update(func(tx *bbolt.Tx) error {
		if sealed != nil { // it is done again
			return s.dropSealed(tx, sealed)
		}
		h, held, at, err := s.lookupIn(tx, id)
		if err != nil || !held {
			return err
		}
		if at != nil {
			sealed = at
			return s.dropSealed(tx, sealed)
		}
		s.stale = append(s.stale, payloadFile(id, h.Header))
		return putHeader(tx, id, h, headerOnly)
	})
}

// ForgetDelta forgets a delta, payload and header. The file goes with the next commit. Forgetting
// one that is not here does nothing, nor does forgetting one that a segment has: its round is final.
func (s *Store) ForgetDelta(id wire.Digest) error {
	return s.update(func(tx *bbolt.Tx) error {
		v := entryOf(tx, id)
		if v == nil {
			return nil
		}
		h, held, err := parseEntry(id, v)
		if err != nil {
			return err
		}
		if held {
			s.stale = append(s.stale, payloadFile(id, h.Header))
		}
		return deleteHeader(tx, id)
	})
}

// Headers calls f with each header of a fragment's rounds from..to, both
// included, by round and then author. f may use the store.
func (s *Store) Headers(fragment int, from, to uint32, f func(id wire.Digest, h wire.SignedHeader) error) error {
	return s.eachHeader(fragment, from, to, func(id wire.Digest, h wire.SignedHeader, _ bool) error { return f(id, h) })
}

// Held is Headers of the deltas whose payload is here.
func (s *Store) Held(fragment int, from, to uint32, f func(id wire.Digest, h wire.SignedHeader) error) error {
	return s.eachHeader(fragment, from, to, func(id wire.Digest, h wire.SignedHeader, held bool) error {
		if !held {
			return nil
		}
		return f(id, h)
	})
}

func (s *Store) eachHeader(fragment int, from, to uint32, f func(id wire.Digest, h wire.SignedHeader, held bool) error) error {
	if err := checkFragment(fragment); err != nil {
		return fmt.Errorf("headers: %w", err)
	}
	return s.scan(bucketHeaders, roundKey(fragment, from), afterKey(fragment, to), func(k, v []byte) error {
		id := wire.Digest(k[len(k)-len(wire.Digest{}):])
		h, held, err := parseEntry(id, v)
		if err != nil {
			return err
		}
		return f(id, h, held)
	})
}

// checkPayload returns an error unless id, header and payload belong together.
func (s *Store) checkPayload(id wire.Digest, h wire.SignedHeader, payload []byte) error {
	if err := s.checkID(id, h); err != nil {
		return err
	}
	if len(payload) != int(h.Header.Size) || wire.Sum(payload) != h.Header.Payload {
		return fmt.Errorf("%w: payload of %d bytes does not match the header", ErrCorrupt, len(payload))
	}
	return nil
}

// checkID returns an error unless h is valid in this run and has this id.
func (s *Store) checkID(id wire.Digest, h wire.SignedHeader) error {
	if err := h.Header.Validate(); err != nil {
		return err
	}
	if want := h.Header.ID(s.run); id != want {
		return fmt.Errorf("id is %v by its header", want)
	}
	return nil
}

// lookup returns the header of a delta and whether its payload is here.
func (s *Store) lookup(id wire.Digest) (h wire.SignedHeader, held bool, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		h, held, _, err = s.lookupIn(tx, id)
		return err
	})
	return h, held, err
}

// lookupAt is lookup of a delta whose fragment and round are known.
func (s *Store) lookupAt(fragment int, round uint32, id wire.Digest) (h wire.SignedHeader, held bool, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		if v := entryOf(tx, id); v != nil {
			h, held, err = parseEntry(id, v)
			return err
		}
		sealed, err := s.sealedIn(tx, fragment, round, round, id)
		h, held, err = ofSealed(tx, id, sealed, err)
		return err
	})
	return h, held, err
}

// lookupIn is lookup in a transaction. It says where a segment has the header, if one has it.
func (s *Store) lookupIn(tx *bbolt.Tx, id wire.Digest) (h wire.SignedHeader, held bool, sealed *sealedAt, err error) {
	if v := entryOf(tx, id); v != nil {
		h, held, err = parseEntry(id, v)
		return h, held, nil, err
	}
	sealed, err = s.sealed(tx, id)
	h, held, err = ofSealed(tx, id, sealed, err)
	return h, held, sealed, err
}

// ofSealed is the header that a segment has, or what went wrong when it was looked for.
func ofSealed(tx *bbolt.Tx, id wire.Digest, a *sealedAt, err error) (wire.SignedHeader, bool, error) {
	if err != nil {
		return wire.SignedHeader{}, false, err
	}
	if a == nil {
		return wire.SignedHeader{}, false, fmt.Errorf("delta %v: %w", id, ErrNotFound)
	}
	return a.header().SignedHeader, a.holds(tx), nil
}

// headerPrefix is the key of a header in the headers bucket, without the delta's id at its end.
func headerPrefix(h wire.Header) []byte {
	return append(roundKey(int(h.Fragment), h.Round), h.Author[:]...)
}

// putHeader enters a header under its round and its id.
func putHeader(tx *bbolt.Tx, id wire.Digest, h wire.SignedHeader, held byte) error {
	prefix := headerPrefix(h.Header)
	if err := entriesOf(tx, bucketIDs).Put(id[:], prefix); err != nil {
		return fmt.Errorf("index %s: %w", describe(id, h), err)
	}
	key, headers := append(bytes.Clone(prefix), id[:]...), entriesOf(tx, bucketHeaders)
	more := -payloadBytes(id, headers.Get(key))
	if held == payloadHeld {
		more += int64(h.Header.Size)
	}
	err := errors.Join(headers.Put(key, h.Append([]byte{held})), weigh(tx, int(h.Header.Fragment), h.Header.Round, more))
	if err != nil {
		return fmt.Errorf("index %s: %w", describe(id, h), err)
	}
	return nil
}

// deleteHeader undoes putHeader.
func deleteHeader(tx *bbolt.Tx, id wire.Digest) error {
	prefix := entriesOf(tx, bucketIDs).Get(id[:])
	if prefix == nil {
		return nil
	}
	key, headers := append(bytes.Clone(prefix), id[:]...), entriesOf(tx, bucketHeaders)
	freed := payloadBytes(id, headers.Get(key))
	return errors.Join(headers.Delete(key), entriesOf(tx, bucketIDs).Delete(id[:]),
		weigh(tx, int(binary.BigEndian.Uint16(key)), roundOf(key), -freed))
}

// parseEntry decodes what putHeader entered.
func parseEntry(id wire.Digest, v []byte) (h wire.SignedHeader, held bool, err error) {
	if len(v) == 0 {
		return h, false, fmt.Errorf("index entry of delta %v: %w: it is empty", id, ErrCorrupt)
	}
	if h, err = wire.ParseSignedHeader(v[1:]); err != nil {
		return h, false, fmt.Errorf("index entry of delta %v: %w: %w", id, ErrCorrupt, err)
	}
	return h, v[0] == payloadHeld, nil
}

// entryOf returns the entry of a delta, nil if there is none.
func entryOf(tx *bbolt.Tx, id wire.Digest) []byte {
	prefix := entriesOf(tx, bucketIDs).Get(id[:])
	if prefix == nil {
		return nil
	}
	return entriesOf(tx, bucketHeaders).Get(append(bytes.Clone(prefix), id[:]...))
}

// describe names a delta in errors.
func describe(id wire.Digest, h wire.SignedHeader) string {
	return fmt.Sprintf("delta %v of %v, fragment %d round %d", id, h.Header.Author, h.Header.Fragment, h.Header.Round)
}
