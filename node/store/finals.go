package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// votesKey, among the caller's keys, is where the state of a voter is.
const votesKey = "votes"

// PutVotes keeps what a voter must remember (nothing new if state is nil) and certificates of heights from first on,
// in one step. All of it is durable when PutVotes returns, with all that was put before: only then may a vote leave.
// After an error nothing of it may leave, and it can be put again.
func (s *Store) PutVotes(state []byte, first uint32, certificates [][]byte) error {
	for i, c := range certificates {
		if n := len(c); n == 0 || n > wire.MaxFinal {
			return fmt.Errorf("put votes: the certificate of height %d has %d bytes, want 1 to %d", first+uint32(i), n, wire.MaxFinal)
		}
	}
	err := s.updateNow(nil, func(tx *bbolt.Tx) error {
		for i, c := range certificates {
			if err := entriesOf(tx, bucketFinals).Put(heightKey(first+uint32(i)), c); err != nil {
				return err
			}
		}
		if state == nil {
			return nil
		}
		return entriesOf(tx, bucketMeta).Put([]byte(votesKey), bytes.Clone(state))
	})
	if err != nil {
		return fmt.Errorf("put votes: %w", err)
	}
	return nil
}

// Votes returns the state that was put last, nil if there is none.
func (s *Store) Votes() ([]byte, error) {
	state, err := s.Get(votesKey)
	if errors.Is(err, ErrNotFound) {
		return nil, nil
	}
	return state, err
}

// Finals returns the certificates of a height and those above it, at most so many, up to the first that is missing.
func (s *Store) Finals(from uint32, most int) (certificates [][]byte, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		if tx.Bucket(bucketFinals) == nil {
			return nil // an older folder, opened to be read
		}
		bucket := entriesOf(tx, bucketFinals)
		for len(certificates) < most {
			c := bucket.Get(heightKey(from + uint32(len(certificates))))
			if c == nil {
				return nil
			}
			certificates = append(certificates, bytes.Clone(c))
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read certificates from height %d on: %w", from, err)
	}
	return certificates, nil
}

func heightKey(height uint32) []byte { return binary.BigEndian.AppendUint32(nil, height) }
