package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

const (
	childFolder = "ATOLL_TEST_FILES" // the child of TestKilledWhileItWrites writes here
	filesOfIt   = 20
)

func fillAll(dir string) error {
	for i := range filesOfIt {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprint(i)), make([]byte, 1<<16), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// state is how many files of fillAll a folder has in whole, 0 where there is none. Half a folder is an error.
func state(t *testing.T, dir string) int {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return 0
	}
	if err != nil || len(entries) != filesOfIt {
		t.Fatalf("%d files, %v", len(entries), err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Size() != 1<<16 {
			t.Fatalf("%s has %d bytes, %v", e.Name(), info.Size(), err)
		}
	}
	return len(entries)
}

// Whenever a process is killed, what it writes is there in whole or not at all, and the next try works.
func TestKilledWhileItWrites(t *testing.T) {
	if dir := os.Getenv(childFolder); dir != "" {
		fmt.Println("begins")
		for i := 0; ; i++ {
			err := errors.Join(NewFolder(filepath.Join(dir, fmt.Sprint(i)), fillAll), Write(filepath.Join(dir, "file"), fmt.Appendf(nil, "%8d", i), 0o644))
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	whole := 0
	for range 50 {
		dir := t.TempDir()
		child := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestKilledWhileItWrites$")
		child.Env = append(os.Environ(), childFolder+"="+dir)
		out, err := child.StdoutPipe()
		if err := errors.Join(err, child.Start()); err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Duration(rand.IntN(100_000)) * time.Microsecond)
		if err := child.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		_ = child.Wait()
		i := 0
		for ; state(t, filepath.Join(dir, fmt.Sprint(i))) > 0; i++ {
			whole++
		}
		if b, err := os.ReadFile(filepath.Join(dir, "file")); err == nil && len(b) != 8 || err != nil && (i > 1 || !errors.Is(err, fs.ErrNotExist)) {
			t.Errorf("the file after %d: %q, %v", i, b, err)
		}
		if err := NewFolder(filepath.Join(dir, fmt.Sprint(i)), fillAll); err != nil || state(t, filepath.Join(dir, fmt.Sprint(i))) == 0 {
			t.Errorf("the next try: %v", err)
		}
		if err := Write(filepath.Join(dir, "file"), []byte("whatever"), 0o644); err != nil {
			t.Error(err)
		}
		if left, err := filepath.Glob(filepath.Join(dir, ".*")); len(left) > 0 || err != nil {
			t.Errorf("left over: %v, %v", left, err)
		}
	}
	t.Logf("%d folders were whole", whole)
}

func TestNewFolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "deep", "model")
	full := errors.New("no space left")
	err := NewFolder(path, func(dir string) error {
		if err := fillAll(dir); err != nil {
			return err
		}
		if _, err := os.Lstat(path); err == nil {
			t.Error("half a folder has the name of a whole one")
		}
		return full
	})
	if left, _ := os.ReadDir(filepath.Dir(path)); !errors.Is(err, full) || len(left) > 0 {
		t.Errorf("%v, and it leaves %v", err, left)
	}
	if err := NewFolder(path, fillAll); err != nil || state(t, path) == 0 {
		t.Error(err)
	}
	if err := NewFolder(path+"/", func(string) error { t.Error("asked to fill a folder that is there"); return nil }); !errors.Is(err, fs.ErrExist) || state(t, path) == 0 {
		t.Error(err)
	}
}

// What has a name keeps it until the new one is whole; a link and a device stay what they are.
func TestWrite(t *testing.T) {
	dir := t.TempDir()
	path, link := filepath.Join(dir, "page"), filepath.Join(dir, "link")
	write(t, path, "old")
	if err := os.Chmod(path, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := Write(path, []byte("newer"), 0o644); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(path); err != nil || OthersRead(info.Mode()) {
		t.Errorf("what was private is not: %v, %v", info.Mode(), err)
	}
	if b, err := os.ReadFile(path); string(b) != "newer" {
		t.Errorf("%q, %v", b, err)
	}
	if err := os.Symlink(path, link); err != nil {
		t.Skip("no links here: ", err)
	}
	if err := errors.Join(Write(link, []byte("new"), 0o600), Write(os.DevNull, []byte("new"), 0o600)); err != nil {
		t.Error(err)
	}
	if info, err := os.Lstat(link); err != nil || info.Mode().IsRegular() {
		t.Errorf("the link is a file: %v", err)
	}
	if b, err := os.ReadFile(path); string(b) != "new" {
		t.Errorf("%q, %v", b, err)
	}
}

// Two processes that write one name do not take each other's parts away.
func TestPartsOfOthers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model")
	other := filepath.Join(filepath.Dir(path), fmt.Sprintf(".model.%d%s", os.Getppid(), partEnd))
	dead := filepath.Join(filepath.Dir(path), ".model.999999999"+partEnd)
	if err := errors.Join(os.Mkdir(other, 0o755), os.Mkdir(dead, 0o755), NewFolder(path, fillAll)); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(other); err != nil {
		t.Errorf("the part of a process that runs: %v", err)
	}
	if _, err := os.Lstat(dead); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("the part of one that is no more: %v", err)
	}
}
