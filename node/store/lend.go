package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
)

// Lend is the index as it is now, for OpenLent of another process on this machine. What it names stays on the disk until done is
// called: all files but the index never change, and go only after the index has forgotten them.
func (s *Store) Lend() (index []byte, done func(), err error) {
	err = s.locked(func() error {
		if err := s.writableLocked(); err != nil {
			return err
		}
		if len(s.pending) > 0 {
			if err := s.commit(); err != nil {
				return err
			}
		}
		now, err := s.db.Begin(false)
		if err != nil {
			return s.broken(err)
		}
		var b bytes.Buffer
		_, err = now.WriteTo(&b)
		if err = errors.Join(err, now.Rollback()); err != nil {
			return fmt.Errorf("copy the index of %s: %w", s.dir, err)
		}
		index = b.Bytes()
		s.lent++
		return nil
	})
	return index, s.returned, err
}

// returned ends one loan. What waited for it is removed after the next commit.
func (s *Store) returned() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lent--
}

// OpenLent opens a folder for reading while a node runs on it, by an index that it lent. done ends the loan at Close, and if this fails.
func OpenLent(dir string, index []byte, done func()) (*Store, error) {
	tmp, err := os.MkdirTemp("", "atoll-index-")
	end := func() error {
		done()
		return os.RemoveAll(tmp)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(tmp, indexFile), index, 0o600)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("open store %s: %w", dir, err), end())
	}
	s, err := openToRead(dir, tmp)
	if err != nil {
		return nil, errors.Join(err, end())
	}
	s.ended = end
	return s, nil
}
