package store

import (
	"bytes"
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/gossip/wire"
	"atoll/node/files"
)

const (
	keyFile     = "key"
	genesisFile = "genesis"

	// maxKeyFile bounds what is read as a key: 64 hex digits and a newline.
	maxKeyFile = 2*ed25519.SeedSize + 2
)

// LoadKey returns the identity kept in dir. If there is none it makes one, which
// is durable when LoadKey returns. It needs no open store: of two processes that
// make a key at once, both get the same.
func LoadKey(dir string) (key ed25519.PrivateKey, created bool, err error) {
	return Disk{}.LoadKey(dir)
}

// LoadKey is the function LoadKey on this disk.
func (d Disk) LoadKey(dir string) (key ed25519.PrivateKey, created bool, err error) {
	path := filepath.Join(dir, keyFile)
	key, err = readKey(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return key, false, err
	}
	_, made, err := ed25519.GenerateKey(nil)
	if err == nil {
		created, err = d.putKey(dir, made)
	}
	if err != nil {
		return nil, false, fmt.Errorf("create key %s: %w", path, err)
	}
	key, err = readKey(path)
	return key, created, err
}

// MakeKeyFile makes a key and keeps it in a file that must not exist yet, readable by its owner alone.
func MakeKeyFile(path string) (ed25519.PrivateKey, error) {
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		return nil, fmt.Errorf("create key %s: %w", path, err)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, fmt.Errorf("create key: %w: choose another file, in a folder that exists", err)
	}
	_, err = fmt.Fprintf(f, "%x\n", key.Seed())
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return nil, fmt.Errorf("create key %s: %w", path, err)
	}
	return key, nil
}

// ReadKeyFile returns the key that MakeKeyFile kept. The error is fs.ErrNotExist where there is none.
func ReadKeyFile(path string) (ed25519.PrivateKey, error) { return readKey(path) }

// ReadKey returns the identity kept in dir and, unlike LoadKey, makes none.
func ReadKey(dir string) (ed25519.PrivateKey, error) {
	key, err := readKey(filepath.Join(dir, keyFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no key in it; `atoll join %s` makes one, `atoll key --import` restores one", dir, dir)
	}
	return key, err
}

// ImportKey gives a folder an identity. A folder that has one keeps it.
func ImportKey(dir string, key ed25519.PrivateKey) error {
	created, err := Disk{}.putKey(dir, key)
	if err != nil {
		return fmt.Errorf("import key: %w", err)
	}
	if !created {
		return fmt.Errorf("import key: %s has a key already; choose another folder, or move that key away if the node is never to run again", dir)
	}
	return nil
}

func readKey(path string) (ed25519.PrivateKey, error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, fmt.Errorf("load key: %w", err)
	}
	if mode := info.Mode(); files.OthersRead(mode) {
		return nil, fmt.Errorf("load key %s: mode %o lets others read it: run chmod 600 on it", path, mode.Perm())
	}
	damaged := fmt.Errorf("load key %s: %w: want %d hex digits: restore it from a backup; the key of a node may be removed, and it joins as a new one", path, ErrCorrupt, 2*ed25519.SeedSize)
	if info.Size() > maxKeyFile {
		return nil, damaged
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("load key: %w", err)
	}
	seed, err := hex.DecodeString(string(bytes.TrimSpace(text)))
	if err != nil || len(seed) != ed25519.SeedSize {
		return nil, damaged
	}
	return ed25519.NewKeyFromSeed(seed), nil
}

// putKey makes a key file unless there is one. Linking the finished file into
// place fails where renaming would replace the key of a faster process.
func (d Disk) putKey(dir string, key ed25519.PrivateKey) (created bool, err error) {
	if err := Begin(dir); err != nil {
		return false, err
	}
	tmp, err := d.writeTemp(dir, synced, append(hex.AppendEncode(nil, key.Seed()), '\n'))
	if err != nil {
		return false, err
	}
	err = d.link(tmp, filepath.Join(dir, keyFile))
	created = err == nil
	if errors.Is(err, fs.ErrExist) {
		err = nil
	}
	return created, errors.Join(err, d.remove(tmp), d.syncDir(dir))
}

// SaveGenesis keeps the bytes of a run's genesis in dir, durable when it
// returns. A folder that has another genesis is refused with ErrOtherRun.
func SaveGenesis(dir string, b []byte) error { return Disk{}.SaveGenesis(dir, b) }

// SaveGenesis is the function SaveGenesis on this disk.
func (d Disk) SaveGenesis(dir string, b []byte) error {
	have, err := LoadGenesis(dir)
	switch {
	case err == nil && bytes.Equal(have, b):
		return nil
	case err == nil:
		return fmt.Errorf("save genesis in %s: %w: it has %v, wanted is %v: choose another folder", dir, ErrOtherRun, wire.Sum(have), wire.Sum(b))
	case !errors.Is(err, ErrNotFound):
		return err
	}
	err = Begin(dir)
	if err == nil {
		err = d.writeFile(dir, genesisFile, b, synced)
	}
	if err != nil {
		return fmt.Errorf("save genesis in %s: %w", dir, err)
	}
	return nil
}

// GenesisRemedy is what to do about a folder whose genesis file is damaged.
const GenesisRemedy = "start once with the join link, so that a peer gives it again, or with --genesis and the file that atoll new wrote"

// LoadGenesis returns what SaveGenesis kept. It does not check the bytes: the
// caller compares their hash with the run's id.
func LoadGenesis(dir string) ([]byte, error) {
	b, err := os.ReadFile(filepath.Join(dir, genesisFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("genesis in %s: %w", dir, ErrNotFound)
	}
	if err != nil {
		return nil, fmt.Errorf("load genesis: %w", err)
	}
	return b, nil
}
