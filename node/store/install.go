package store

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// Installed is what one fragment goes on from when a snapshot is taken.
type Installed struct {
	Round  uint32        // that the tip is of
	Tip    io.WriterTo   // as a file has it
	Keep   uint32        // recorded rounds up to it stay: they lead to First
	First  uint32        // round of the first of Rounds
	Rounds []Round       // consecutive
	Forget []wire.Digest // own deltas that a restart must not take for in flight: see core.Left
}

// Install replaces what there is of fragments 0, 1, ...: of each, the tip
// becomes the only base, and the rounds recorded above Keep give way to Rounds.
// All of it is durable when Install returns. After an error or a crash there is
// all of it or nothing, in all fragments alike. The tips are on disk under
// names of their own before one commit of the index changes over to them.
func (s *Store) Install(fragments []Installed) error {
	if err := s.install(fragments); err != nil {
		return fmt.Errorf("install a snapshot of %d fragments: %w", len(fragments), err)
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
	var entries [][]byte
	for _, f := range fragments {
		tmp, entry, err := s.writeBase(synced, f.Tip)
		if err != nil {
			return errors.Join(err, s.disk.removeAll(temps))
		}
		temps, entries = append(temps, tmp), append(entries, entry)
	}
	err := s.alone(func(tx *bbolt.Tx) error {
		for p, f := range fragments {
			if err := s.installOne(tx, p, f, temps[p], entries[p]); err != nil {
				return fmt.Errorf("fragment %d: %w", p, err)
			}
		}
		return s.disk.syncDir(filepath.Join(s.dir, basesDir))
	})
	if err != nil {
		return errors.Join(err, s.disk.removeAll(temps))
	}
	return nil
}

// installOne changes the index over to one fragment's tip, whose file is tmp.
func (s *Store) installOne(tx *bbolt.Tx, p int, f Installed, tmp string, entry []byte) error {
	key := roundKey(p, f.Round)
	if err := s.disk.install(tmp, s.path(baseFile(key, entry)), unsynced); err != nil {
		return err
	}
	bases := entriesOf(tx, bucketBases)
	for _, old := range keysBetween(bases, fragmentKey(p), fragmentKey(p+1)) {
		s.retireBase(bases, old)
		if err := bases.Delete(old); err != nil {
			return err
		}
	}
	if err := bases.Put(key, entry); err != nil {
		return err
	}
	if err := forgetOwn(tx, p, f.Forget); err != nil {
		return err
	}
	if err := s.truncateRounds(tx, p, f.Keep); err != nil {
		return err
	}
	return s.putRounds(tx, p, f.First, f.Rounds)
}

// forgetOwn takes deltas of a fragment off the list that Own returns: a restart
// must not put back into the parameters what left them when it was folded, or dropped.
func forgetOwn(tx *bbolt.Tx, p int, ids []wire.Digest) error {
	own := entriesOf(tx, bucketOwn)
	for _, k := range keysBetween(own, fragmentKey(p), fragmentKey(p+1)) {
		if v := own.Get(k); len(v) == ownSize && slices.Contains(ids, wire.Digest(v)) {
			if err := own.Delete(k); err != nil {
				return err
			}
		}
	}
	return nil
}

// alone makes a change in a transaction of its own and commits it: the index
// changes by all of it or, after an error, by nothing.
func (s *Store) alone(f change) error {
	return s.locked(func() error {
		if err := s.writableLocked(); err != nil {
			return err
		}
		if err := s.commit(); err != nil {
			return err
		}
		id := s.tx.ID()
		if err := f(s.tx); err != nil {
			return errors.Join(err, s.rollback())
		}
		err := s.commit()
		if err != nil && s.tx != nil && s.tx.ID() > id {
			return nil // what failed came after the change over: it stands
		}
		return err
	})
}
