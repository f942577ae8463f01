package store

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"slices"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// scanPage is the number of entries copied at a time under the lock while a
// range is read.
const scanPage = 1024

// scan calls f with copies of the entries of a bucket with from <= key < to, in
// order, and those that segments have. f runs outside the lock and may use the store.
func (s *Store) scan(bucket, from, to []byte, f func(k, v []byte) error) error {
	return s.scanPages(bucket, from, to, s.layered, f)
}

// scanIndex is scan without segments.
func (s *Store) scanIndex(bucket, from, to []byte, f func(k, v []byte) error) error {
	return s.scanPages(bucket, from, to, nil, f)
}

func (s *Store) scanPages(bucket, from, to []byte, layered func(tx *bbolt.Tx, bucket, from, to []byte, p scanned) (scanned, error), f func(k, v []byte) error) error {
	for from != nil {
		var p scanned
		err := s.view(func(tx *bbolt.Tx) (err error) {
			if p = page(entriesOf(tx, bucket).Cursor(), from, to); layered != nil {
				p, err = layered(tx, bucket, from, to, p)
			}
			return err
		})
		if err != nil {
			return err
		}
		for i, k := range p.keys {
			if err := f(k, p.values[i]); err != nil {
				return err
			}
		}
		from = p.next
	}
	return nil
}

// scanned is a page of a scan.
type scanned struct {
	keys, values [][]byte
	next         []byte // the first key of the next page; nil after the last
}

// page copies up to scanPage entries.
func page(c *bbolt.Cursor, from, to []byte) (p scanned) {
	for k, v := c.Seek(from); k != nil && bytes.Compare(k, to) < 0; k, v = c.Next() {
		if len(p.keys) == scanPage {
			p.next = bytes.Clone(k)
			return p
		}
		p.add(bytes.Clone(k), bytes.Clone(checked(k, v)))
	}
	return p
}

func (p *scanned) add(k, v []byte) { p.keys, p.values = append(p.keys, k), append(p.values, v) }

// cut ends a page before a key.
func (p *scanned) cut(end []byte) {
	n, _ := slices.BinarySearchFunc(p.keys, end, bytes.Compare)
	p.keys, p.values, p.next = p.keys[:n], p.values[:n], end
}

// sort puts keys in order. The first of equal ones stays.
func (p *scanned) sort() {
	order := make([]int, len(p.keys))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return bytes.Compare(p.keys[a], p.keys[b]) })
	order = slices.CompactFunc(order, func(a, b int) bool { return bytes.Equal(p.keys[a], p.keys[b]) })
	keys, values := p.keys, p.values
	p.keys, p.values = nil, nil
	for _, i := range order {
		p.add(keys[i], values[i])
	}
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
