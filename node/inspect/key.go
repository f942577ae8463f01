package inspect

import (
	"crypto/ed25519"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/node/store"
)

// keyFile is where store.LoadKey keeps an identity.
const keyFile = "key"

// ReadKey returns the identity kept in a folder and, unlike store.LoadKey,
// makes none.
func ReadKey(dir string) (ed25519.PrivateKey, error) {
	if _, err := os.Stat(filepath.Join(dir, keyFile)); errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no key in it; `atoll join --dir %s` makes one, `atoll key import` restores one", dir, dir)
	}
	key, _, err := store.LoadKey(dir)
	return key, err
}

// ImportKey gives a folder an identity. A folder that has one keeps it.
func ImportKey(dir string, key ed25519.PrivateKey) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("import key: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, keyFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("import key: %s has a key already; choose another --dir, or move that key away if the node is never to run again", dir)
	}
	if err != nil {
		return fmt.Errorf("import key: %w", err)
	}
	_, err = f.WriteString(hex.EncodeToString(key.Seed()) + "\n")
	if err = errors.Join(err, f.Sync(), f.Close()); err != nil {
		return fmt.Errorf("import key: %w", err)
	}
	return nil
}
