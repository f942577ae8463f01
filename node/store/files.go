package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"atoll/gossip/wire"
)

// Folders under the store's.
const (
	tmpDir    = "tmp"
	deltasDir = "deltas"
	basesDir  = "bases"
	chunksDir = "chunks"

	segmentsDir = "segments"
)

// Whether a file is synced before its name appears.
const (
	synced   = true
	unsynced = false
)

// file is a file in one of the folders, or in one below it; its name has slashes then.
type file struct{ sub, name string }

func (s *Store) path(f file) string { return filepath.Join(s.dir, f.sub, f.name) }

// putFile writes a file and enters it in the index by entry. The file appears
// under its name just before the entry does.
func (s *Store) putFile(f file, b []byte, entry change) error {
	return s.placeFile(f, b, unsynced, func(place func() error) error { return s.updateAfter(place, entry) })
}

// putFileNow is putFile, after which both are durable.
func (s *Store) putFileNow(f file, b []byte, entry change) error {
	return s.placeFile(f, b, synced, func(place func() error) error { return s.updateNow(place, entry) })
}

// placeFile writes a file, which gets its name when enter calls place.
func (s *Store) placeFile(f file, b []byte, sync bool, enter func(place func() error) error) error {
	if err := s.writable(); err != nil {
		return err
	}
	tmp, err := s.disk.writeTemp(s.dir, sync, b)
	if err != nil {
		return err
	}
	return s.placeTemp(tmp, f, sync, enter)
}

// placeTemp gives a finished file its name when enter calls place, and removes it where that fails.
func (s *Store) placeTemp(tmp string, f file, sync bool, enter func(place func() error) error) error {
	if err := enter(func() error { return s.name(tmp, f, sync) }); err != nil {
		return errors.Join(err, s.disk.remove(tmp))
	}
	return nil
}

// name gives a finished file its name.
func (s *Store) name(tmp string, f file, sync bool) error {
	if err := s.makeFolder(f); err != nil {
		return err
	}
	return s.disk.install(tmp, s.path(f), sync)
}

// readSized reads a file that must have size bytes: ErrCorrupt if it is absent
// or has another size, found before memory is taken.
func readSized(path string, size int64) ([]byte, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: file is missing", ErrCorrupt)
	}
	if err != nil {
		return nil, err
	}
	if info.Size() != size {
		return nil, fmt.Errorf("%w: file has %d bytes, not %d", ErrCorrupt, info.Size(), size)
	}
	return os.ReadFile(path)
}

// readVerified is readSized for a file that must have a certain hash.
func readVerified(path string, size int64, want wire.Digest) ([]byte, error) {
	b, err := readSized(path, size)
	if err != nil {
		return nil, err
	}
	if got := wire.Sum(b); got != want {
		return nil, fmt.Errorf("%w: content hashes to %v, not %v", ErrCorrupt, got, want)
	}
	return b, nil
}

// sweep empties tmp and removes payloads, bases and segments that the index does
// not name: a crash came between the file and the commit.
func (s *Store) sweep() error {
	err := errors.Join(s.sweepFiles(tmpDir, "."), s.sweepFiles(basesDir, "."), s.sweepDeltas())
	fragments, e := os.ReadDir(filepath.Join(s.dir, segmentsDir))
	for _, f := range fragments {
		err = errors.Join(err, s.sweepFiles(segmentsDir, f.Name()))
	}
	if err = errors.Join(err, e); err != nil {
		return fmt.Errorf("open store %s: %w", s.dir, err)
	}
	return nil
}

// removeUnnamed removes a file unless the index names it.
func (s *Store) removeUnnamed(f file) error {
	switch {
	case f.sub == deltasDir && s.payloadNamed(s.tx, f.name):
		return nil
	case f.sub == segmentsDir && segmentInIndex(s.tx, f.name):
		return nil
	case f.sub == basesDir && baseInIndex(s.tx, f.name):
		return nil
	}
	if err := s.disk.remove(s.path(f)); err != nil || f.sub != deltasDir {
		return err
	}
	block := file{f.sub, path.Dir(f.name)}
	if fragment, n, ok := parseBlock(block.name); ok && !blockHeld(s.tx, fragment, n) {
		s.dropFolder(block)
	}
	return nil
}

// hexName is the file name of a digest.
func hexName(d wire.Digest) string { return hex.EncodeToString(d[:]) }

// parseHexName is the inverse of hexName.
func parseHexName(name string) (d wire.Digest, ok bool) {
	return d, d.UnmarshalText([]byte(name)) == nil
}
