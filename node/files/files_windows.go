package files

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"time"

	"golang.org/x/sys/windows"
)

// Windows does not replace or remove a file while somebody has it open. Readers here are done in
// milliseconds; a scanner for viruses takes up to some seconds.
const (
	longestWait = 3 * time.Second
	interval    = 5 * time.Millisecond
)

// Rename gives a file another name, in place of the file that had it.
func Rename(from, to string) error {
	return patiently(func() error { return os.Rename(from, to) })
}

// Remove removes a file.
func Remove(path string) error { return patiently(func() error { return os.Remove(path) }) }

// patiently tries again for as long as somebody else has the file open.
func patiently(change func() error) error {
	for until := time.Now().Add(longestWait); ; time.Sleep(interval) {
		err := change()
		if !isBusy(err) || time.Now().After(until) {
			return err
		}
	}
}

// isBusy says that an error may be one of a file that is open. To replace such a file is denied.
func isBusy(err error) bool {
	return errors.Is(err, windows.ERROR_SHARING_VIOLATION) || errors.Is(err, windows.ERROR_ACCESS_DENIED)
}

// SyncDir makes the names in a folder durable.
func SyncDir(dir string) error {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return &fs.PathError{Op: "sync", Path: dir, Err: err}
	}
	const others = windows.FILE_SHARE_READ | windows.FILE_SHARE_WRITE | windows.FILE_SHARE_DELETE
	folder, err := windows.CreateFile(name, windows.GENERIC_WRITE, others, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_BACKUP_SEMANTICS, 0)
	if err == nil {
		err = errors.Join(windows.FlushFileBuffers(folder), windows.CloseHandle(folder))
	}
	if err == nil || errors.Is(err, windows.ERROR_ACCESS_DENIED) || errors.Is(err, windows.ERROR_INVALID_FUNCTION) {
		return nil // file systems that refuse it keep their names in order by themselves, or not at all
	}
	return &fs.PathError{Op: "sync", Path: dir, Err: err}
}

// Unlock gives back the lock that bbolt holds on its file. To close the file does that as well,
// but some time later.
func Unlock(f *os.File) error {
	last := windows.Overlapped{Offset: math.MaxUint32, OffsetHigh: math.MaxUint32} // the byte that bbolt locks
	err := windows.UnlockFileEx(windows.Handle(f.Fd()), 0, 1, 0, &last)
	if errors.Is(err, windows.ERROR_NOT_LOCKED) {
		return nil
	}
	return err
}

// OthersRead says that the mode of a file lets other users read it. On Windows modes do not tell:
// a file is as private as its folder, which in a user's own folder is private.
func OthersRead(fs.FileMode) bool { return false }

// Free is how many bytes this user may still write to the disk of a folder.
func Free(dir string) (int64, error) {
	name, err := windows.UTF16PtrFromString(dir)
	if err != nil {
		return 0, &fs.PathError{Op: "free space", Path: dir, Err: err}
	}
	var free uint64
	if err := windows.GetDiskFreeSpaceEx(name, &free, nil, nil); err != nil {
		return 0, &fs.PathError{Op: "free space", Path: dir, Err: err}
	}
	return int64(min(free, math.MaxInt64)), nil
}

// alive says that there is a process of that number.
func alive(pid int) bool {
	p, err := os.FindProcess(pid)
	return err == nil && p.Release() == nil
}
