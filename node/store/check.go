package store

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"atoll/node/store/pages"
)

// checkIndex looks for damage: pages that lead astray, entries that cannot be
// found or do not match their checksum. It reads the index some three times,
// seconds for a gigabyte.
func (s *Store) checkIndex() error {
	if err := s.checkPages(); err != nil {
		return s.broken(err)
	}
	if err := checkEntries(s.tx); err != nil {
		return s.broken(err)
	}
	return nil
}

func (s *Store) checkPages() error {
	info, err := s.file.Stat()
	if err != nil {
		return err
	}
	return pages.Check(s.file, s.db.Info().PageSize, info.Size())
}

// checkLeftover refuses a folder that has payloads and no index: without the
// index they mean nothing, and a fresh one would take them for litter.
func checkLeftover(dir string) error {
	info, err := os.Stat(filepath.Join(dir, indexFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) || err == nil && info.Size() > 0 {
		return err
	}
	for _, sub := range []string{deltasDir, basesDir, segmentsDir} {
		entries, err := os.ReadDir(filepath.Join(dir, sub))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("open store %s: %w", dir, err)
		}
		if len(entries) > 0 {
			return indexError(dir, fmt.Errorf("it is missing or empty, and %s has files", filepath.Join(dir, sub)))
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
	for _, name := range []string{indexFile, deltasDir, basesDir, segmentsDir} {
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

// IsFresh says that no node has run in a folder: it has neither a key nor an index.
func IsFresh(dir string) bool {
	for _, name := range []string{keyFile, indexFile} {
		if _, err := os.Stat(filepath.Join(dir, name)); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	return true
}

// probeSize is what Probe writes: enough for the records of a minute, so that a
// disk with less is as good as full.
const probeSize = 1 << 20

// Probe writes and removes a file in a node's folder, synced: nil if there is
// room and the disk takes it.
func (d Disk) Probe(dir string) error {
	if err := makeTemp(dir); err != nil { // of a run that no node has begun
		return fmt.Errorf("try to write to %s: %w", dir, err)
	}
	tmp, err := d.writeTemp(dir, synced, make([]byte, probeSize))
	if err != nil {
		return fmt.Errorf("try to write to %s: %w", dir, err)
	}
	return d.remove(tmp)
}
