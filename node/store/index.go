package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// scanPage is the number of entries copied at a time under the lock while a
// range is read.
const scanPage = 1024

// scan calls f with copies of the entries of a bucket with from <= key < to, in
// order. f runs outside the lock and may use the store.
func (s *Store) scan(bucket, from, to []byte, f func(k, v []byte) error) error {
	for from != nil {
		var keys, values [][]byte
		err := s.view(func(tx *bbolt.Tx) error {
			keys, values, from = page(entriesOf(tx, bucket).Cursor(), from, to)
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
		values = append(values, bytes.Clone(checked(k, v)))
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

// roundKeySize is the length of a key of roundKey.
const roundKeySize = 6

// roundKey is the big-endian fragment and round: keys sort by them.
func roundKey(fragment int, round uint32) []byte {
	return binary.BigEndian.AppendUint32(fragmentKey(fragment), round)
}

// afterKey is the first key beyond the keys of a round.
func afterKey(fragment int, round uint32) []byte {
	if round == math.MaxUint32 {
		return fragmentKey(fragment + 1)
	}
	return roundKey(fragment, round+1)
}

// roundOf is the round in a key that begins with fragment and round.
func roundOf(key []byte) uint32 { return binary.BigEndian.Uint32(key[2:]) }
