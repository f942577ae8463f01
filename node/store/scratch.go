package store

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Scrap is a file that is of use to this process alone, until Close. It is not durable and the index knows nothing of it. What
// a killed process leaves goes with the next Open, which empties the folder of temporary files.
type Scrap struct {
	path  string
	store *Store
}

// Scratch keeps what fill writes in a file. Scraps that are still there when the store is closed go with it.
func (s *Store) Scratch(fill func(w io.Writer) error) (*Scrap, error) {
	if err := s.writable(); err != nil {
		return nil, fmt.Errorf("scratch: %w", err)
	}
	tmp, err := s.disk.fillTemp(s.dir, unsynced, fill)
	if err != nil {
		return nil, fmt.Errorf("scratch: %w", err)
	}
	scrap := &Scrap{tmp, s}
	s.scraps.Store(scrap, nil)
	return scrap, nil
}

// ReadAt implements io.ReaderAt, from any goroutine. The file is open no longer than that: a node may have as many scraps as
// it has fragments, and descriptors are few. After Close the error is fs.ErrClosed.
func (s *Scrap) ReadAt(b []byte, at int64) (int, error) {
	n, err := s.readAt(b, at)
	if _, open := s.store.scraps.Load(s); err != nil && !open {
		err = fmt.Errorf("read scratch: %w", fs.ErrClosed)
	}
	return n, err
}

func (s *Scrap) readAt(b []byte, at int64) (int, error) {
	f, err := os.Open(s.path)
	if err != nil {
		return 0, err
	}
	n, err := f.ReadAt(b, at)
	return n, errors.Join(err, f.Close())
}

// Close implements io.Closer: it removes the file.
func (s *Scrap) Close() error {
	s.store.scraps.Delete(s)
	return s.store.disk.remove(s.path)
}

// dropScraps closes those that nobody has.
func (s *Store) dropScraps() (err error) {
	s.scraps.Range(func(scrap, _ any) bool {
		err = errors.Join(err, scrap.(*Scrap).Close())
		return true
	})
	return err
}
