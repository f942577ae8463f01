package files

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// part is the name of what is not whole yet: hidden, beside the one that it gets, and nobody else's.
func part(path string) string {
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".atoll-part")
}

// NewFolder makes a folder of what fill writes into the one that it is given. Under its name the folder is whole or not there,
// also after a crash and on a full disk; what an earlier try left goes. Its error is fs.ErrExist where the name is taken.
func NewFolder(path string, fill func(dir string) error) error {
	path = filepath.Clean(path)
	if _, err := os.Lstat(path); err == nil {
		return &fs.PathError{Op: "write", Path: path, Err: fs.ErrExist}
	}
	dir := part(path)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.RemoveAll(dir), os.Mkdir(dir, 0o755)); err != nil {
		return err
	}
	err := fill(dir)
	if err == nil {
		err = syncBelow(dir)
	}
	if err == nil {
		err = Rename(dir, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(dir))
	}
	return SyncDir(filepath.Dir(path))
}

// Write writes a file, in place of the one that had its name. The name shows what was there before or all of b, also after a
// crash and on a full disk. What is no file, a link or a device, it writes to.
func Write(path string, b []byte, mode fs.FileMode) error {
	if info, err := os.Lstat(path); err == nil && !info.Mode().IsRegular() {
		return os.WriteFile(path, b, mode)
	}
	name := part(filepath.Clean(path))
	err := os.WriteFile(name, b, mode)
	if err == nil {
		err = syncFile(name)
	}
	if err == nil {
		err = Rename(name, path)
	}
	if err != nil {
		return errors.Join(err, os.RemoveAll(name))
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
