package store

import (
	"errors"
	"fmt"
	"path/filepath"

	"go.etcd.io/bbolt"
)

// Installed is what one fragment goes on from when tips are taken whole.
type Installed struct {
	Round  uint32  // that the tip is of
	Tip    []byte  // encoded
	Keep   uint32  // recorded rounds up to it stay: they lead to First
	First  uint32  // round of the first of Rounds
	Rounds []Round // consecutive
}

// Install replaces what there is of fragments 0, 1, ...: of each, the tip
// becomes the only base, and the rounds recorded above Keep give way to Rounds.
// All of it is durable when Install returns. After an error or a crash there is
// all of it or nothing, in all fragments alike: the tips are on disk under
// names of their own before one commit of the index changes over to them.
func (s *Store) Install(fragments []Installed) error {
	if err := s.install(fragments); err != nil {
		return fmt.Errorf("install tips of %d fragments: %w", len(fragments), err)
	}
	return nil
}

func (s *Store) install(fragments []Installed) error {
	if err := checkFragment(len(fragments) - 1); err != nil {
		return err
	}
	if err := s.writable(); err != nil {
		return err
	}
	var temps []string
	for _, f := range fragments {
		tmp, err := writeTemp(s.dir, f.Tip, synced)
		if err != nil {
			return errors.Join(err, removeAll(temps))
		}
		temps = append(temps, tmp)
	}
	err := s.alone(func(tx *bbolt.Tx) error {
		for p, f := range fragments {
			if err := s.installOne(tx, p, f, temps[p]); err != nil {
				return fmt.Errorf("fragment %d: %w", p, err)
			}
		}
		return syncDir(filepath.Join(s.dir, basesDir))
	})
	if err != nil {
		return errors.Join(err, removeAll(temps))
	}
	return nil
}

// installOne changes the index over to one fragment's tip.
func (s *Store) installOne(tx *bbolt.Tx, p int, f Installed, tmp string) error {
	key, entry := roundKey(p, f.Round), baseEntry(f.Tip)
	if err := install(tmp, s.path(baseFile(key, entry)), unsynced); err != nil {
		return err
	}
	bases := tx.Bucket(bucketBases)
	for _, old := range keysBetween(bases, fragmentKey(p), fragmentKey(p+1)) {
		s.retireBase(bases, old)
		if err := bases.Delete(old); err != nil {
			return err
		}
	}
	if err := bases.Put(key, entry); err != nil {
		return err
	}
	if err := truncateRounds(tx, p, f.Keep); err != nil {
		return err
	}
	return putRounds(tx, p, f.First, f.Rounds)
}

// alone runs f in a transaction of its own and commits it: the index changes by
// all that f does or, after an error, by nothing. A file that could not be
// removed after the commit is no error: Open sweeps it.
func (s *Store) alone(f func(tx *bbolt.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.writableLocked(); err != nil {
		return err
	}
	if err := s.commit(); s.tx == nil {
		return err
	}
	if err := f(s.tx); err != nil {
		return errors.Join(err, s.undo())
	}
	if err := s.commit(); s.tx == nil {
		return err
	}
	return nil
}

// undo gives up what was changed since the last commit.
func (s *Store) undo() error {
	err := s.tx.Rollback()
	s.tx, s.pending, s.stale = nil, 0, nil
	if err == nil {
		s.tx, err = s.db.Begin(true)
	}
	if err != nil {
		s.failed = fmt.Errorf("roll back index of %s: %w: restart", s.dir, err)
	}
	return err
}

func removeAll(paths []string) error {
	var err error
	for _, p := range paths {
		err = errors.Join(err, remove(p))
	}
	return err
}
