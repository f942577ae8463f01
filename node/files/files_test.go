package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRenameReplaces(t *testing.T) {
	dir := t.TempDir()
	from, to := filepath.Join(dir, "from"), filepath.Join(dir, "to")
	write(t, from, "new")
	write(t, to, "old")
	if err := errors.Join(Rename(from, to), SyncDir(dir)); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(to); err != nil || string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
	if err := Remove(from); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what was renamed is removed: %v", err)
	}
	if err := Remove(to); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotThere(t *testing.T) {
	gone := filepath.Join(t.TempDir(), "gone")
	if err := SyncDir(gone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("sync: %v", err)
	}
	if _, err := Free(gone); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("free: %v", err)
	}
	if err := Rename(gone, gone+"2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("rename: %v", err)
	}
}

func TestFree(t *testing.T) {
	if free, err := Free(t.TempDir()); err != nil || free <= 0 {
		t.Errorf("%d, %v", free, err)
	}
}

func TestUnlockedFile(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(Unlock(f), f.Close()); err != nil {
		t.Error(err)
	}
}
