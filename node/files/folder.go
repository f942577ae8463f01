package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// partEnd ends the names of what is not whole yet: hidden, beside the name that it gets, with the process that writes it.
const partEnd = ".atoll-part"

// part is a new name of that kind. What processes left that are no more goes.
func part(path string) string {
	dir, base := filepath.Dir(path), "."+filepath.Base(path)+"."
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		middle, ours := strings.CutPrefix(e.Name(), base)
		middle, ends := strings.CutSuffix(middle, partEnd)
		if pid, err := strconv.Atoi(middle); ours && ends && err == nil && (pid == os.Getpid() || !alive(pid)) {
			_ = os.RemoveAll(filepath.Join(dir, e.Name()))
		}
	}
	return filepath.Join(dir, base+strconv.Itoa(os.Getpid())+partEnd)
}

// NewFolder makes a folder of what fill writes into the one that it is given. Under its name the folder is whole or not there,
// also after a crash and on a full disk; what an earlier try left goes. Its error is fs.ErrExist where the name is taken.
func NewFolder(path string, fill func(dir string) error) error {
	path = filepath.Clean(path)
	if _, err := os.Lstat(path); err == nil {
		return &fs.PathError{Op: "write", Path: path, Err: fs.ErrExist}
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	dir := part(path)
	if err := os.Mkdir(dir, 0o755); err != nil {
		return &fs.PathError{Op: "write", Path: path, Err: errors.Unwrap(err)}
	}
	err := fill(dir)
	if err == nil {
		err = syncBelow(dir)
	}
	if err == nil {
		err = Rename(dir, path)
	}
	if err != nil {
		return errors.Join(named(err, dir, path), os.RemoveAll(dir))
	}
	return SyncDir(filepath.Dir(path))
}

// named has an error speak of the name that people know in place of the part's.
func named(err error, part, path string) error {
	var failed *fs.PathError
	if errors.As(err, &failed) && strings.HasPrefix(failed.Path, part) {
		failed.Path = path + strings.TrimPrefix(failed.Path, part)
	}
	return err
}

// Write writes a file, in place of the one that had its name and with the mode of that. The name shows what was there before or all
// of b, also after a crash and on a full disk. What is no file, a link or a device, it writes to, and a file in a folder that takes no
// other.
func Write(path string, b []byte, mode fs.FileMode) error {
	info, err := os.Lstat(path)
	if err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, b, mode)
	}
	if err == nil {
		mode = info.Mode().Perm()
	}
	name := part(filepath.Clean(path))
	f, failed := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if failed != nil {
		return os.WriteFile(path, b, mode)
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close()); err == nil {
		err = Rename(name, path)
	}
	if err != nil {
		return errors.Join(named(err, name, path), os.RemoveAll(name))
	}
	return SyncDir(filepath.Dir(path))
}

// syncBelow makes what is in a folder durable.
func syncBelow(dir string) error {
	return filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return SyncDir(path)
		}
		return syncFile(path)
	})
}

func syncFile(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}
