package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

const (
	// maxPending is the number of changes after which the index is committed,
	// so that the two fsyncs of a commit are shared by that many and a kill
	// loses no more of what others can send again.
	maxPending = 512

	// scanPage is the number of entries copied at a time under the lock while
	// a range is read.
	scanPage = 1024
)

// view runs f in the open transaction. What f gets from it must be copied.
func (s *Store) view(f func(tx *bbolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tx == nil {
		return s.failed
	}
	return f(s.tx)
}

// update runs f, which makes one change to the index, and commits if enough
// are pending.
func (s *Store) update(f func(tx *bbolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.change(f); err != nil {
		return err
	}
	if s.pending < maxPending {
		return nil
	}
	return s.commit()
}

// updateNow is update followed by a commit: when it returns, this change and
// all before it are durable.
func (s *Store) updateNow(f func(tx *bbolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.change(f); err != nil {
		return err
	}
	return s.commit()
}

// change runs f in the open transaction. f must check before it writes: what
// it wrote before an error stays.
func (s *Store) change(f func(tx *bbolt.Tx) error) error {
	if err := s.writableLocked(); err != nil {
		return err
	}
	if err := f(s.tx); err != nil {
		return err
	}
	s.pending++
	return nil
}

// writable returns why the store cannot be written to, if it cannot.
func (s *Store) writable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writableLocked()
}

func (s *Store) writableLocked() error {
	if s.tx == nil {
		return s.failed
	}
	if !s.tx.Writable() {
		return fmt.Errorf("store %s: %w", s.dir, ErrReadOnly)
	}
	return nil
}

// Flush commits what is pending to the index: call it every second or so, and
// where the caller needs what it put to survive.
func (s *Store) Flush() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tx == nil {
		return s.failed
	}
	if s.pending == 0 {
		return nil
	}
	return s.commit()
}

// commit makes the transaction durable, begins the next, and removes the files
// that the index no longer names. After an error the store is unusable: what
// was pending is lost, and going on would leave a hole.
func (s *Store) commit() error {
	err := s.tx.Commit()
	s.tx, s.pending = nil, 0
	if err == nil {
		s.tx, err = s.db.Begin(true)
	}
	if err != nil {
		s.failed = fmt.Errorf("commit index of %s: %w: free space on the disk and restart", s.dir, err)
		return s.failed
	}
	for _, f := range s.stale {
		err = errors.Join(err, s.removeUnnamed(f))
	}
	s.stale = nil
	return err
}

// scan calls f with copies of the entries of a bucket with from <= key < to, in
// order. f runs outside the lock and may use the store.
func (s *Store) scan(bucket, from, to []byte, f func(k, v []byte) error) error {
	for from != nil {
		var keys, values [][]byte
		err := s.view(func(tx *bbolt.Tx) error {
			keys, values, from = page(tx.Bucket(bucket).Cursor(), from, to)
			return nil
		})
		if err != nil {
			return err
		}
		for i, k := range keys {
			if err := f(k, values[i]); err != nil {
				return err
			}
		}
	}
	return nil
}

// page copies up to scanPage entries and returns where the next page begins,
// nil after the last.
func page(c *bbolt.Cursor, from, to []byte) (keys, values [][]byte, next []byte) {
	for k, v := c.Seek(from); k != nil && bytes.Compare(k, to) < 0; k, v = c.Next() {
		if len(keys) == scanPage {
			return keys, values, bytes.Clone(k)
		}
		keys = append(keys, bytes.Clone(k))
		values = append(values, bytes.Clone(v))
	}
	return keys, values, nil
}

// checkFragment returns an error unless fragment can be one.
func checkFragment(fragment int) error {
	if fragment < 0 || fragment >= wire.MaxFragments {
		return fmt.Errorf("fragment %d is outside 0..%d", fragment, wire.MaxFragments-1)
	}
	return nil
}

// fragmentKey is the big-endian fragment.
func fragmentKey(fragment int) []byte {
	return binary.BigEndian.AppendUint16(nil, uint16(fragment))
}

// roundKey is the big-endian fragment and round: keys sort by them.
func roundKey(fragment int, round uint32) []byte {
	return binary.BigEndian.AppendUint32(fragmentKey(fragment), round)
}

// afterKey is the first key beyond those of a round.
func afterKey(fragment int, round uint32) []byte {
	if round == math.MaxUint32 {
		return fragmentKey(fragment + 1)
	}
	return roundKey(fragment, round+1)
}

// roundOf is the round in a key that begins with fragment and round.
func roundOf(key []byte) uint32 { return binary.BigEndian.Uint32(key[2:]) }
