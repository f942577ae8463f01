package store

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"
)

// Put keeps a small value under a key of the caller's. Not durable before a
// commit.
func (s *Store) Put(key string, value []byte) error {
	err := s.update(func(tx *bbolt.Tx) error { return entriesOf(tx, bucketMeta).Put([]byte(key), bytes.Clone(value)) })
	if err != nil {
		return fmt.Errorf("put %q: %w", key, err)
	}
	return nil
}

// Get returns the value of a key, or ErrNotFound.
func (s *Store) Get(key string) ([]byte, error) {
	var value []byte
	err := s.view(func(tx *bbolt.Tx) error {
		v := entriesOf(tx, bucketMeta).Get([]byte(key))
		if v == nil {
			return ErrNotFound
		}
		value = bytes.Clone(v)
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("get %q: %w", key, err)
	}
	return value, nil
}
