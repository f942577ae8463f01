package store

import (
	"errors"
	"fmt"
	"path/filepath"
	"runtime/debug"

	"go.etcd.io/bbolt"
)

const (
	// maxPending is the number of changes after which the index is committed.
	// That many share the two fsyncs of a commit, and a kill loses no more of
	// what others can send again.
	maxPending = 512

	// maxWaiting bounds the changes that wait in memory while the index cannot
	// be committed: some 20 MiB, and hours of records of a usual run.
	maxWaiting = 1 << 16
)

// change is a change to the index. It must check before it writes: what it
// wrote before an error stays. It must come to the same when it is done again.
type change func(tx *bbolt.Tx) error

// view runs f in the open transaction. What f gets from it must be copied.
func (s *Store) view(f func(tx *bbolt.Tx) error) error {
	return s.locked(func() error {
		if s.tx == nil {
			return s.failed
		}
		return f(s.tx)
	})
}

// update makes one change to the index and commits if enough are pending.
func (s *Store) update(f change) error { return s.updateAfter(nil, f) }

// updateAfter is update; place, unless nil, is called just before the change.
func (s *Store) updateAfter(place func() error, f change) error {
	return s.locked(func() error {
		if len(s.pending) >= maxWaiting {
			return fmt.Errorf("index of %s: %d changes wait for a commit that fails: %w", s.dir, len(s.pending), ErrWaiting)
		}
		if err := s.change(place, f); err != nil {
			return err
		}
		s.pending = append(s.pending, f)
		if len(s.pending)%maxPending != 0 {
			return nil
		}
		if err := s.commit(); s.tx == nil {
			return err
		}
		return nil // what could not be committed is still pending; Flush says why
	})
}

// updateNow is updateAfter followed by a commit: when it returns, this change
// and all before it are durable. After an error this one is not in the index
// and will not be, unless the commit itself failed half-way: see withdraw.
func (s *Store) updateNow(place func() error, f change) error {
	return s.locked(func() error {
		if err := s.change(place, f); err != nil {
			return err
		}
		return s.commit()
	})
}

func (s *Store) change(place func() error, f change) error {
	if err := s.writableLocked(); err != nil {
		return err
	}
	if place != nil {
		if err := place(); err != nil {
			return err
		}
	}
	return f(s.tx)
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
// where the caller needs what it put to survive. After an error all of it is
// still pending: Flush again when the disk may be well.
func (s *Store) Flush() error {
	return s.locked(func() error {
		if s.tx == nil {
			return s.failed
		}
		if len(s.pending) == 0 {
			return nil
		}
		return s.commit()
	})
}

// commit makes the transaction durable, begins the next, and removes the files
// that the index no longer names. After an error what was pending is pending
// again, in a new transaction; a change that was not is gone.
func (s *Store) commit() error {
	failed := s.endTx()
	if failed == nil {
		s.pending = nil
	}
	if err := s.beginTx(); err != nil {
		return err
	}
	if failed != nil {
		return fmt.Errorf("commit index of %s: %w", s.dir, failed)
	}
	s.removeStale()
	return nil
}

// endTx commits the transaction.
func (s *Store) endTx() error {
	op := Op{Kind: OpCommit, Path: filepath.Join(s.dir, indexFile)}
	if err := s.disk.Ask(op); err != nil {
		return errors.Join(err, s.tx.Rollback())
	}
	if err := s.tx.Commit(); err != nil {
		return err // bbolt has rolled back
	}
	op.Kind = OpCommitted
	return s.disk.Ask(op)
}

// rollback gives up what was changed since the last commit and is not pending.
func (s *Store) rollback() error {
	return errors.Join(s.tx.Rollback(), s.beginTx())
}

// beginTx begins a transaction with what is pending.
func (s *Store) beginTx() error {
	s.tx = nil
	tx, err := s.db.Begin(true)
	if err != nil {
		return s.broken(err)
	}
	s.tx = tx
	for _, f := range s.pending {
		if err := f(tx); err != nil {
			return s.broken(err)
		}
	}
	return nil
}

// removeStale removes files that the index no longer names. What cannot be
// removed now is tried again after the next commit, and swept by Open.
func (s *Store) removeStale() {
	if s.lent > 0 {
		return
	}
	left := s.stale[:0]
	for _, f := range s.stale {
		if s.removeUnnamed(f) != nil {
			left = append(left, f)
		}
	}
	s.stale = left
}

// locked runs f under the lock. A panic of bbolt, or a fault where its map
// reaches beyond a truncated file, means that the index is damaged.
func (s *Store) locked(f func() error) (err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return guard(f, s.broken)
}

// guard runs f and turns a panic and a fault of memory into what damaged
// returns.
func guard(f func() error, damaged func(why error) error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if r := recover(); r != nil {
			err = damaged(fmt.Errorf("%v", r))
		}
	}()
	return f()
}

// broken ends the use of the index for good.
func (s *Store) broken(why error) error {
	if s.failed != nil {
		return s.failed
	}
	s.failed = indexError(s.dir, why)
	tx := s.tx
	s.tx = nil
	_ = guard(func() error { // a panic in here leaves the file to the end of the process
		if tx == nil {
			return letGo(s.file) // bbolt failed as it began: it waits for itself in Close
		}
		_ = tx.Rollback()
		return s.db.Close()
	}, func(why error) error { return why })
	return s.failed
}
