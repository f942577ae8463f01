package store

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// OwnMeta is what a learner must know about its own delta beyond the header.
type OwnMeta struct {
	Seq uint64 // counts the learner's own deltas
}

// OwnDelta is a delta that this node made and has not forgotten.
type OwnDelta struct {
	ID     wire.Digest
	Header wire.SignedHeader
	OwnMeta
}

// ownSize is the length of an entry of the own bucket: id and seq.
const ownSize = len(wire.Digest{}) + 8

// PutOwn keeps a delta that this node made and raises the mark of its fragment
// to its round. Both are durable when PutOwn returns: only then may its first
// byte leave. A round at or below the mark is refused with ErrMark. After an
// error the delta is not there and the mark is where it was: nothing of it may
// leave, and its round may be signed again.
func (s *Store) PutOwn(id wire.Digest, h wire.SignedHeader, payload []byte, own OwnMeta) error {
	s.own.Lock()
	defer s.own.Unlock()
	mark, err := s.checkOwn(id, h, payload)
	if err != nil {
		return fmt.Errorf("put own %s: %w", describe(id, h), err)
	}
	err = s.putFileNow(payloadFile(id, h.Header), payload, func(tx *bbolt.Tx) error { return putOwn(tx, id, h, own) })
	if err != nil {
		err = errors.Join(err, s.withdraw(id, h, mark))
		return fmt.Errorf("put own %s: %w", describe(id, h), err)
	}
	return nil
}

func putOwn(tx *bbolt.Tx, id wire.Digest, h wire.SignedHeader, own OwnMeta) error {
	if err := putHeader(tx, id, h, payloadHeld); err != nil {
		return err
	}
	if err := putMark(tx, int(h.Header.Fragment), h.Header.Round); err != nil {
		return err
	}
	return entriesOf(tx, bucketOwn).Put(slotOf(h), binary.BigEndian.AppendUint64(id[:], own.Seq))
}

// slotOf is the key of the one delta that a node may sign for a round.
func slotOf(h wire.SignedHeader) []byte { return roundKey(int(h.Header.Fragment), h.Header.Round) }

// withdraw undoes an own delta whose commit failed. Such a commit may still
// hold if it failed at its last step. Then the next commit undoes it, before
// anything else can leave. A crash before that finds the delta as if PutOwn had
// been cut off right after it.
func (s *Store) withdraw(id wire.Digest, h wire.SignedHeader, mark uint32) error {
	stands := func(tx *bbolt.Tx) bool {
		v := entriesOf(tx, bucketOwn).Get(slotOf(h))
		return len(v) == ownSize && wire.Digest(v) == id
	}
	gone := false
	err := s.view(func(tx *bbolt.Tx) error {
		if gone = !stands(tx); gone {
			return s.removeUnnamed(payloadFile(id, h.Header))
		}
		return nil
	})
	if err != nil || gone {
		return err
	}
	return s.update(func(tx *bbolt.Tx) error {
		if !stands(tx) {
			return nil
		}
		s.stale = append(s.stale, payloadFile(id, h.Header))
		return errors.Join(entriesOf(tx, bucketOwn).Delete(slotOf(h)), deleteHeader(tx, id), putMark(tx, int(h.Header.Fragment), mark))
	})
}

// checkOwn checks the mark, which it returns, and that id, header and payload
// belong together.
func (s *Store) checkOwn(id wire.Digest, h wire.SignedHeader, payload []byte) (mark uint32, err error) {
	if err := s.checkPayload(id, h, payload); err != nil {
		return 0, err
	}
	mark, err = s.Mark(int(h.Header.Fragment))
	if err == nil && h.Header.Round <= mark {
		err = fmt.Errorf("%w: the mark is at %d: publish for a later round", ErrMark, mark)
	}
	return mark, err
}

// Mark is the highest round of a fragment that this node has signed or given up
// signing, 0 at first.
func (s *Store) Mark(fragment int) (uint32, error) {
	if err := checkFragment(fragment); err != nil {
		return 0, fmt.Errorf("mark: %w", err)
	}
	var mark uint32
	err := s.view(func(tx *bbolt.Tx) error {
		if v := entriesOf(tx, bucketMarks).Get(fragmentKey(fragment)); v != nil {
			mark = binary.BigEndian.Uint32(v)
		}
		return nil
	})
	return mark, err
}

// RaiseMark raises the mark of a fragment to round, for a key that was restored
// on an empty disk. Durable when it returns; a lower round does nothing. After an
// error it waits for the next commit that succeeds, before all changes that come
// later: what says that every mark is known must not outlive one.
func (s *Store) RaiseMark(fragment int, round uint32) error {
	s.own.Lock()
	defer s.own.Unlock()
	mark, err := s.Mark(fragment)
	if err != nil || round <= mark {
		return err
	}
	if err := s.update(func(tx *bbolt.Tx) error { return putMark(tx, fragment, round) }); err != nil {
		return err
	}
	return s.Flush()
}

func putMark(tx *bbolt.Tx, fragment int, round uint32) error {
	return entriesOf(tx, bucketMarks).Put(fragmentKey(fragment), binary.BigEndian.AppendUint32(nil, round))
}

// Own returns this node's own deltas that were not forgotten, by Seq. One whose header is in a segment that was set aside
// is left out: its round is older than any that a restart folds, and its mark stays.
func (s *Store) Own() ([]OwnDelta, error) {
	var own []OwnDelta
	last := afterKey(wire.MaxFragments-1, math.MaxUint32)
	err := s.scan(bucketOwn, fragmentKey(0), last, func(k, v []byte) error {
		if len(v) != ownSize {
			return fmt.Errorf("own delta: %w: entry of %d bytes, not %d", ErrCorrupt, len(v), ownSize)
		}
		id := wire.Digest(v)
		h, _, err := s.lookupAt(int(binary.BigEndian.Uint16(k)), roundOf(k), id)
		if errors.Is(err, ErrNotFound) {
			return nil
		}
		if err != nil {
			return err
		}
		seq := binary.BigEndian.Uint64(v[len(id):])
		own = append(own, OwnDelta{ID: id, Header: h, OwnMeta: OwnMeta{Seq: seq}})
		return nil
	})
	slices.SortFunc(own, func(a, b OwnDelta) int { return cmp.Compare(a.Seq, b.Seq) })
	return own, err
}

// ForgetOwn takes a delta off the list that Own returns: it is final, folded or
// returned. Header, payload and mark stay. Not durable before a commit.
func (s *Store) ForgetOwn(id wire.Digest) error {
	var slot []byte
	err := s.view(func(tx *bbolt.Tx) (err error) {
		if slot = ownSlot(tx, id); slot == nil {
			_, _, _, err = s.lookupIn(tx, id)
		}
		return err
	})
	if err != nil || slot == nil {
		return err
	}
	return s.update(func(tx *bbolt.Tx) error {
		own := entriesOf(tx, bucketOwn)
		if v := own.Get(slot); len(v) != ownSize || wire.Digest(v) != id {
			return nil
		}
		return own.Delete(slot)
	})
}

// ownSlot is the key of an own delta that is not forgotten, nil if it is.
func ownSlot(tx *bbolt.Tx, id wire.Digest) []byte {
	own := entriesOf(tx, bucketOwn)
	for _, k := range keysBetween(own, fragmentKey(0), fragmentKey(wire.MaxFragments)) {
		if v := own.Get(k); len(v) == ownSize && wire.Digest(v) == id {
			return k
		}
	}
	return nil
}
