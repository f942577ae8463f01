package store

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// Scrap is a file that is of use to this process alone. It is not durable and the index knows nothing of it. Where the system
// lets go of the name of an open file, it has none from the start; otherwise Close removes it, or after a crash the next Open,
// which empties the folder of temporary files.
type Scrap struct {
	*os.File
	store *Store
	named bool // it still has its name
}

// Scratch keeps what fill writes in a file.
func (s *Store) Scratch(fill func(w io.Writer) error) (*Scrap, error) {
	scrap, err := s.newScrap(fill)
	if err != nil {
		return nil, fmt.Errorf("scratch: %w", err)
	}
	return scrap, nil
}

func (s *Store) newScrap(fill func(w io.Writer) error) (*Scrap, error) {
	if err := s.writable(); err != nil {
		return nil, err
	}
	tmp, err := s.disk.fillTemp(s.dir, unsynced, fill)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(tmp)
	if err != nil {
		return nil, errors.Join(err, s.disk.remove(tmp))
	}
	scrap := &Scrap{File: f, store: s, named: s.disk.remove(tmp) != nil}
	s.scraps.Store(scrap, nil)
	return scrap, nil
}

// Close implements io.Closer. A second one is an error, as of a file.
func (s *Scrap) Close() error {
	s.store.scraps.Delete(s)
	err := s.File.Close()
	if s.named && err == nil {
		err = s.store.disk.remove(s.Name())
	}
	return err
}

// dropScraps closes those that nobody has.
func (s *Store) dropScraps() (err error) {
	s.scraps.Range(func(scrap, _ any) bool {
		err = errors.Join(err, scrap.(*Scrap).Close())
		return true
	})
	return err
}
