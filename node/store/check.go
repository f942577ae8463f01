package store

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/fnv"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
)

// checkIndex looks for damage: a file that ends before its pages do, entries
// that cannot be found or do not match their checksum, pages in use that are
// taken for free. It reads the index some three times, seconds for a gigabyte.
func (s *Store) checkIndex() error {
	info, err := os.Stat(filepath.Join(s.dir, indexFile))
	if err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	if size := s.tx.Size(); info.Size() < size {
		return s.broken(fmt.Errorf("it has %d bytes of %d", info.Size(), size))
	}
	// In this order: bbolt's own check runs on a goroutine where a fault cannot be
	// caught, so what it walks over is walked over here before.
	for _, check := range []func(*bbolt.Tx) error{s.checkHeads, checkPages, checkEntries, checkTree} {
		if err := check(s.tx); err != nil {
			return s.broken(err)
		}
	}
	return nil
}

// The head of each of the first two pages, as bbolt writes it: after the page's
// own header come magic, version and the rest, then a checksum of these.
const (
	pageHeader = 16
	headSize   = 56
)

// checkHeads makes sure that both heads are whole. bbolt is content with one, but
// the older one knows nothing of the last commit, nor of the marks in it. A head
// fits a sector, so that a loss of power tears none.
func (s *Store) checkHeads(tx *bbolt.Tx) error {
	f, err := os.Open(filepath.Join(s.dir, indexFile))
	if err != nil {
		return err
	}
	defer f.Close()
	head := make([]byte, headSize+8)
	for page := range int64(2) {
		if _, err := f.ReadAt(head, page*int64(tx.DB().Info().PageSize)+pageHeader); err != nil {
			return err
		}
		h := fnv.New64a()
		h.Write(head[:headSize])
		if h.Sum64() != binary.NativeEndian.Uint64(head[headSize:]) {
			return fmt.Errorf("page %d does not match its checksum", page)
		}
	}
	return nil
}

// checkPages makes sure that no page says it goes on beyond the last one.
func checkPages(tx *bbolt.Tx) error {
	for id := 0; ; id++ {
		p, err := tx.Page(id)
		if err != nil || p == nil {
			return err
		}
		if p.Type == "free" {
			continue
		}
		id += p.OverflowCount
		if last, err := tx.Page(id); err != nil || last == nil {
			return errors.Join(fmt.Errorf("page %d goes on for %d pages", p.ID, p.OverflowCount), err)
		}
	}
}

// checkTree has bbolt compare pages in use with those that are free.
func checkTree(tx *bbolt.Tx) error {
	var first error
	for err := range tx.Check() { // to its end, or its goroutine stays
		if first == nil {
			first = err
		}
	}
	return first
}

// checkLeftover refuses a folder that has payloads and no index: without the
// index they mean nothing, and a fresh one would take them for litter.
func checkLeftover(dir string) error {
	info, err := os.Stat(filepath.Join(dir, indexFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > 0 {
		return err
	}
	for _, sub := range []string{deltasDir, basesDir} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("open store %s: %w", dir, err)
		}
		if len(entries) > 0 {
			return indexError(dir, fmt.Errorf("it is missing or empty, and %s has %d files", filepath.Join(dir, sub), len(entries)))
		}
	}
	return nil
}

// asideTime names what SetAside moves away.
const asideTime = "aside-20060102-150405"

// SetAside moves the index of a folder, and the files that mean nothing without
// it, into a folder beside them, whose path it returns. The key stays: a node
// that starts then takes the run from its peers. No store may be open on dir.
func SetAside(dir string, now time.Time) (string, error) {
	aside := filepath.Join(dir, now.UTC().Format(asideTime))
	if err := os.Mkdir(aside, 0o700); err != nil {
		return "", fmt.Errorf("set the index aside: %w", err)
	}
	for _, name := range []string{indexFile, deltasDir, basesDir} {
		err := os.Rename(filepath.Join(dir, name), filepath.Join(aside, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("set the index aside: %w", err)
		}
	}
	return aside, Disk{}.syncDir(dir)
}

// Check opens a folder, on which no node runs, for reading and returns what is
// wrong with its index: ErrIndex, or nil.
func Check(dir string) error {
	if err := checkLeftover(dir); err != nil {
		return err
	}
	s, err := OpenReadOnly(dir)
	if err != nil {
		return err
	}
	return s.Close()
}

// probeSize is what Probe writes: enough for the records of a minute, so that a
// disk with less is as good as full.
const probeSize = 1 << 20

// Probe writes and removes a file in a node's folder, synced: nil if there is
// room and the disk takes it.
func (d Disk) Probe(dir string) error {
	tmp, err := d.writeTemp(dir, make([]byte, probeSize), synced)
	if err != nil {
		return fmt.Errorf("try to write to %s: %w", dir, err)
	}
	return d.remove(tmp)
}
