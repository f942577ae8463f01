package store

import (
	"fmt"
	"math"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// PutEvidence keeps the proof that an author signed two deltas for one round of
// one fragment. One proof is enough: others of the same round do nothing. The
// caller has checked it. Not durable before a commit.
func (s *Store) PutEvidence(a, b wire.SignedHeader) error {
	if err := a.Header.Validate(); err != nil {
		return fmt.Errorf("put evidence: %w", err)
	}
	if err := b.Header.Validate(); err != nil {
		return fmt.Errorf("put evidence: %w", err)
	}
	key := append(roundKey(int(a.Header.Fragment), a.Header.Round), a.Header.Author[:]...)
	return s.update(func(tx *bbolt.Tx) error {
		bucket := entriesOf(tx, bucketEvidence)
		if bucket.Get(key) != nil {
			return nil
		}
		return bucket.Put(key, b.Append(a.Append(nil)))
	})
}

// Evidence returns all proofs, by fragment, round and author.
func (s *Store) Evidence() ([]wire.Evidence, error) {
	var all []wire.Evidence
	last := afterKey(wire.MaxFragments-1, math.MaxUint32)
	err := s.scan(bucketEvidence, fragmentKey(0), last, func(_, v []byte) error {
		a, err := wire.ParseSignedHeader(v[:len(v)/2])
		if err != nil {
			return fmt.Errorf("evidence: %w: %w", ErrCorrupt, err)
		}
		b, err := wire.ParseSignedHeader(v[len(v)/2:])
		if err != nil {
			return fmt.Errorf("evidence: %w: %w", ErrCorrupt, err)
		}
		all = append(all, wire.Evidence{A: a, B: b})
		return nil
	})
	return all, err
}
