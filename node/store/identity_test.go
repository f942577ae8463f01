package store

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"atoll/gossip/wire"
)

func TestKeyIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new", "folder")
	key, created, err := LoadKey(dir)
	must(t, err)
	again, createdAgain, err := LoadKey(dir)
	must(t, err)
	if !created || createdAgain || !key.Equal(again) || len(key) != ed25519.PrivateKeySize {
		t.Errorf("created %v, then %v, equal %v", created, createdAgain, key.Equal(again))
	}
	info, err := os.Stat(filepath.Join(dir, keyFile))
	must(t, err)
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode %o", info.Mode().Perm())
	}
	openTest(t, dir)
}

func TestKeyMadeByManyAtOnce(t *testing.T) {
	dir := t.TempDir()
	keys := make([]ed25519.PrivateKey, 8)
	errs := make([]error, len(keys))
	var wg sync.WaitGroup
	for i := range keys {
		wg.Go(func() { keys[i], _, errs[i] = LoadKey(dir) })
	}
	wg.Wait()
	must(t, errs...)
	for _, key := range keys {
		if !key.Equal(keys[0]) {
			t.Error("two identities in one folder")
		}
	}
}

func TestDamagedKey(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, keyFile)
	for _, text := range []string{"", "abc", "zz" + hexName(wire.Digest{})[2:], hexName(wire.Digest{}) + "00", string(make([]byte, 1000))} {
		must(t, os.WriteFile(path, []byte(text), 0o600))
		_, _, err := LoadKey(dir)
		wantErr(t, err, ErrCorrupt, path, "backup")
	}
	must(t, os.WriteFile(path, []byte(hexName(wire.Digest{})), 0o600), os.Chmod(path, 0o644))
	if _, _, err := LoadKey(dir); err == nil {
		t.Error("a key that others can read was taken")
	}
}

func TestGenesis(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "n")
	_, err := LoadGenesis(dir)
	wantErr(t, err, ErrNotFound, dir)
	must(t, SaveGenesis(dir, []byte("doc")), SaveGenesis(dir, []byte("doc")))
	err = SaveGenesis(dir, []byte("other"))
	wantErr(t, err, ErrOtherRun, wire.Sum([]byte("doc")).String(), wire.Sum([]byte("other")).String())
	if b, err := LoadGenesis(dir); err != nil || string(b) != "doc" {
		t.Errorf("genesis is %q, %v", b, err)
	}
}

// An imported key is the folder's from then on. None is made by reading, and none is replaced.
func TestImportKey(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "new")
	if _, err := ReadKey(dir); err == nil || !strings.Contains(err.Error(), "atoll key --import") {
		t.Errorf("a folder without a key: %v", err)
	}
	_, key, err := ed25519.GenerateKey(nil)
	must(t, err)
	must(t, ImportKey(dir, key))
	if got, err := ReadKey(dir); err != nil || !got.Equal(key) {
		t.Errorf("read back another key, %v", err)
	}
	if err := ImportKey(dir, key); err == nil || !strings.Contains(err.Error(), "has a key already") {
		t.Errorf("a second import: %v", err)
	}
}
