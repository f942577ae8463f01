//go:build unix

package files

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
)

// Rename gives a file another name, in place of the file that had it.
func Rename(from, to string) error { return os.Rename(from, to) }

// Remove removes a file.
func Remove(path string) error { return os.Remove(path) }

// SyncDir makes the names in a folder durable.
func SyncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// Unlock gives back the lock that bbolt holds on its file.
func Unlock(f *os.File) error { return syscall.Flock(int(f.Fd()), syscall.LOCK_UN) }

// OthersRead says that the mode of a file lets other users read it.
func OthersRead(mode fs.FileMode) bool { return mode.Perm()&0o077 != 0 }

// Free is how many bytes this user may still write to the disk of a folder.
func Free(dir string) (int64, error) {
	var disk syscall.Statfs_t
	if err := syscall.Statfs(dir, &disk); err != nil {
		return 0, &fs.PathError{Op: "statfs", Path: dir, Err: err}
	}
	return int64(disk.Bavail) * int64(disk.Bsize), nil
}

// alive says that there is a process of that number.
func alive(pid int) bool { return !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) }
