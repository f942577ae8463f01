package store

import (
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// Folders under the store's.
const (
	tmpDir    = "tmp"
	deltasDir = "deltas"
	basesDir  = "bases"
	chunksDir = "chunks"
)

// Whether a file is synced before its name appears.
const (
	synced   = true
	unsynced = false
)

// file is a file in one of the folders.
type file struct{ sub, name string }

func (s *Store) path(f file) string { return filepath.Join(s.dir, f.sub, f.name) }

// putFile writes a file and enters it in the index by entry. The file appears
// under its name just before the entry does. With sync both are durable when
// putFile returns.
func (s *Store) putFile(f file, b []byte, sync bool, entry func(tx *bbolt.Tx) error) error {
	if err := s.writable(); err != nil {
		return err
	}
	tmp, err := writeTemp(s.dir, b, sync)
	if err != nil {
		return err
	}
	apply := s.update
	if sync {
		apply = s.updateNow
	}
	err = apply(func(tx *bbolt.Tx) error {
		if err := install(tmp, s.path(f), sync); err != nil {
			return err
		}
		return entry(tx)
	})
	if err != nil {
		return errors.Join(err, remove(tmp))
	}
	return nil
}

// writeFile writes b to dir/name, so that the name shows either what was there
// before or all of b. With sync it is durable when writeFile returns.
func writeFile(dir, name string, b []byte, sync bool) error {
	tmp, err := writeTemp(dir, b, sync)
	if err != nil {
		return err
	}
	if err := install(tmp, filepath.Join(dir, name), sync); err != nil {
		return errors.Join(err, remove(tmp))
	}
	return nil
}

// install gives a finished file its name.
func install(tmp, path string, sync bool) error {
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	if sync {
		return syncDir(filepath.Dir(path))
	}
	return nil
}

// remove removes a file that may be gone already.
func remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// writeTemp writes b to a new file of mode 0600 under dir/tmp and returns its
// path.
func writeTemp(dir string, b []byte, sync bool) (string, error) {
	f, err := os.CreateTemp(filepath.Join(dir, tmpDir), "")
	if err != nil {
		return "", err
	}
	_, err = f.Write(b)
	if err == nil && sync {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, remove(f.Name()))
	}
	return f.Name(), nil
}

// syncDir makes the names in a folder durable.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
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

// sweep empties tmp and removes payloads and bases that the index does not
// name: a crash came between the file and the commit.
func (s *Store) sweep() error {
	for _, sub := range []string{tmpDir, deltasDir, basesDir} {
		entries, err := os.ReadDir(filepath.Join(s.dir, sub))
		if err != nil {
			return fmt.Errorf("open store %s: %w", s.dir, err)
		}
		for _, e := range entries {
			if err := s.removeUnnamed(file{sub, e.Name()}); err != nil {
				return fmt.Errorf("open store %s: %w", s.dir, err)
			}
		}
	}
	return nil
}

// removeUnnamed removes a file unless the index names it.
func (s *Store) removeUnnamed(f file) error {
	switch {
	case f.sub == deltasDir && payloadInIndex(s.tx, f.name):
		return nil
	case f.sub == basesDir && baseInIndex(s.tx, f.name):
		return nil
	}
	return remove(s.path(f))
}

// hexName is the file name of a digest.
func hexName(d wire.Digest) string { return hex.EncodeToString(d[:]) }

// parseHexName is the inverse of hexName.
func parseHexName(name string) (d wire.Digest, ok bool) {
	return d, d.UnmarshalText([]byte(name)) == nil
}
