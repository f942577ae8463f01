package store

import (
	"fmt"
	"math"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// PutEquivocation keeps the proof that an author signed two deltas for one round of
// one fragment. One proof is enough: others of the same round do nothing. The
// caller has checked it. Not durable before a commit.
func (s *Store) PutEquivocation(a, b wire.SignedHeader) error {
	if err := a.Header.Validate(); err != nil {
		return fmt.Errorf("put equivocation proof: %w", err)
	}
	if err := b.Header.Validate(); err != nil {
		return fmt.Errorf("put equivocation proof: %w", err)
	}
	key := append(roundKey(int(a.Header.Fragment), a.Header.Round), a.Header.Author[:]...)
	return s.update(func(tx *bbolt.Tx) error {
		bucket := entriesOf(tx, bucketEquivocation)
		if bucket.Get(key) != nil {
			return nil
		}
		return bucket.Put(key, b.Append(a.Append(nil)))
	})
}

// Equivocation returns all proofs, by fragment, round and author.
func (s *Store) Equivocation() ([]wire.Equivocation, error) {
	var all []wire.Equivocation
	last := afterKey(wire.MaxFragments-1, math.MaxUint32)
	err := s.scan(bucketEquivocation, fragmentKey(0), last, func(_, v []byte) error {
		a, err := wire.ParseSignedHeader(v[:len(v)/2])
		if err != nil {
			return fmt.Errorf("equivocation proof: %w: %w", ErrCorrupt, err)
		}
		b, err := wire.ParseSignedHeader(v[len(v)/2:])
		if err != nil {
			return fmt.Errorf("equivocation proof: %w: %w", ErrCorrupt, err)
		}
		all = append(all, wire.Equivocation{A: a, B: b})
		return nil
	})
	return all, err
}
