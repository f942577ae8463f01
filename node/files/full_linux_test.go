package files

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Wherever a disk becomes full, a folder is whole or not there, a file what it was, and the next try works once there is room.
func TestFullDiskWhileItWrites(t *testing.T) {
	disk := t.TempDir()
	resize := func(flags uintptr, bytes int) error {
		return syscall.Mount("tmpfs", disk, "tmpfs", flags, fmt.Sprintf("size=%d", bytes))
	}
	if err := resize(0, 1<<20); err != nil {
		t.Skip("mounts a file system, which takes root: ", err)
	}
	t.Cleanup(func() { _ = syscall.Unmount(disk, 0) })
	path, file := filepath.Join(disk, "model"), filepath.Join(disk, "page")
	write(t, file, "old")
	old := make([]byte, 1<<17)
	for range 50 {
		if err := resize(syscall.MS_REMOUNT, os.Getpagesize()*(8+rand.IntN(filesOfIt<<16/os.Getpagesize()-8))); err != nil {
			t.Fatal(err)
		}
		err := NewFolder(path, fillAll)
		if failed := (*fs.PathError)(nil); !errors.Is(err, syscall.ENOSPC) || !errors.As(err, &failed) || !strings.HasPrefix(failed.Path, path+"/") {
			t.Fatalf("on a full disk: %v", err)
		}
		if left, err := os.ReadDir(disk); err != nil || len(left) != 1 {
			t.Fatalf("left over: %v, %v", left, err)
		}
		if err := Write(file, old, 0o644); err != nil {
			if b, err := os.ReadFile(file); err != nil || len(b) != len("old") && len(b) != len(old) {
				t.Fatalf("half a file, of %d bytes: %v", len(b), err)
			}
		}
		if err := errors.Join(resize(syscall.MS_REMOUNT, 4<<20), NewFolder(path, fillAll), Write(file, []byte("old"), 0o644)); err != nil || state(t, path) == 0 {
			t.Fatal("the next try: ", err)
		}
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}
