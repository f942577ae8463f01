package store

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/node/files"
)

// Disk is the file system as a store uses it: every change that a store makes
// goes through it. The zero Disk is the plain one. A library for atomic writes would
// make its changes past Before, and a file here gets its name within a commit.
type Disk struct {
	// Before, if set, is called before every change, and its error takes the
	// place of the change. With it tests stop a process between two changes,
	// fill a disk, or tear a write. It may be called from several goroutines.
	Before func(Op) error
	// Free, if set, takes the place of what the system says of the bytes that are free.
	Free func(dir string) (int64, error)
}

// FreeBytes is how many bytes are free on the disk of a folder.
func (d Disk) FreeBytes(dir string) (int64, error) {
	if d.Free == nil {
		return files.Free(dir)
	}
	return d.Free(dir)
}

// OpKind is what kind of change an Op is.
type OpKind string

// The changes that a store makes. bbolt writes the index by itself, safe against
// crashes, so a commit is one point before it and one after it.
const (
	OpWrite     OpKind = "write"
	OpSync      OpKind = "sync"
	OpTruncate  OpKind = "truncate"
	OpRename    OpKind = "rename"
	OpLink      OpKind = "link"
	OpRemove    OpKind = "remove"
	OpMakeDir   OpKind = "make folder"
	OpSyncDir   OpKind = "sync folder"
	OpCommit    OpKind = "commit"
	OpCommitted OpKind = "committed"
)

// Op is one change.
type Op struct {
	Kind OpKind
	Path string // what changes; of a rename or link, the new name
	From string // of a rename or link, the old name
	Data []byte // of a write
}

// Ask calls Before, if that is set, for a change that the caller makes itself.
func (d Disk) Ask(op Op) error {
	if d.Before == nil {
		return nil
	}
	return d.Before(op)
}

// do makes a change, unless Before says otherwise.
func (d Disk) do(op Op, change func() error) error {
	if err := d.Ask(op); err != nil {
		return err
	}
	return change()
}

func (d Disk) write(f *os.File, b []byte) error {
	return d.do(Op{Kind: OpWrite, Path: f.Name(), Data: b}, func() error {
		_, err := f.Write(b)
		return err
	})
}

func (d Disk) sync(f *os.File) error { return d.do(Op{Kind: OpSync, Path: f.Name()}, f.Sync) }

// truncate goes by the name: Windows does not cut a file that is open for appending.
func (d Disk) truncate(f *os.File, size int64) error {
	return d.do(Op{Kind: OpTruncate, Path: f.Name()}, func() error { return os.Truncate(f.Name(), size) })
}

func (d Disk) rename(from, to string) error {
	return d.do(Op{Kind: OpRename, From: from, Path: to}, func() error { return files.Rename(from, to) })
}

func (d Disk) link(from, to string) error {
	return d.do(Op{Kind: OpLink, From: from, Path: to}, func() error { return os.Link(from, to) })
}

// remove removes a file that may be gone already.
func (d Disk) remove(path string) error {
	err := d.do(Op{Kind: OpRemove, Path: path}, func() error { return files.Remove(path) })
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// mkdir makes a folder that may be there already.
func (d Disk) mkdir(path string) error {
	err := d.do(Op{Kind: OpMakeDir, Path: path}, func() error { return os.Mkdir(path, 0o700) })
	if errors.Is(err, fs.ErrExist) {
		return nil
	}
	return err
}

// rmdir removes a folder that is empty.
func (d Disk) rmdir(path string) error {
	return d.do(Op{Kind: OpRemove, Path: path}, func() error { return os.Remove(path) })
}

func (d Disk) removeAll(paths []string) error {
	var err error
	for _, p := range paths {
		err = errors.Join(err, d.remove(p))
	}
	return err
}

// syncDir makes the names in a folder durable.
func (d Disk) syncDir(dir string) error {
	return d.do(Op{Kind: OpSyncDir, Path: dir}, func() error { return files.SyncDir(dir) })
}

// WriteFile writes a file of mode 0600 into a node's folder, so that its name
// shows either what was there before or all of b. It is not synced: for what is
// nice to find again. Begin has made the folder: it is not made here, as a folder that
// took the place of a node's is none of its.
func (d Disk) WriteFile(dir, name string, b []byte) error { return d.writeFile(dir, name, b, unsynced) }

// Begin makes a folder that WriteFile may write to.
func Begin(dir string) error { return os.MkdirAll(filepath.Join(dir, tmpDir), 0o755) }

// makeTemp makes the folder for what is not whole yet. It does not make the node's folder: who deleted that wants none.
func makeTemp(dir string) error {
	if err := os.Mkdir(filepath.Join(dir, tmpDir), 0o700); !errors.Is(err, fs.ErrExist) {
		return err
	}
	return nil
}

// writeFile writes b to dir/name, so that the name shows either what was there
// before or all of b. With sync it is durable when writeFile returns.
func (d Disk) writeFile(dir, name string, b []byte, sync bool) error {
	return d.writeParts(dir, name, sync, b)
}

// writeParts is writeFile of parts one after the other, which may be too large to copy.
func (d Disk) writeParts(dir, name string, sync bool, parts ...[]byte) error {
	tmp, err := d.writeTemp(dir, sync, parts...)
	if err != nil {
		return err
	}
	if err := d.install(tmp, filepath.Join(dir, name), sync); err != nil {
		return errors.Join(err, d.remove(tmp))
	}
	return nil
}

// writeTemp writes parts, one after the other, to a new file of mode 0600 under dir/tmp and
// returns its path.
func (d Disk) writeTemp(dir string, sync bool, parts ...[]byte) (string, error) {
	return d.fillTemp(dir, sync, func(w io.Writer) error {
		for _, b := range parts {
			if _, err := w.Write(b); err != nil {
				return err
			}
		}
		return nil
	})
}

// fillTemp is writeTemp of what fill writes.
func (d Disk) fillTemp(dir string, sync bool, fill func(w io.Writer) error) (string, error) {
	f, err := os.CreateTemp(filepath.Join(dir, tmpDir), "")
	if err != nil {
		return "", err
	}
	err = fill(written{d, f})
	if err == nil && sync {
		err = d.sync(f)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(err, d.remove(f.Name()))
	}
	return f.Name(), nil
}

// written is a file of a disk that is being written.
type written struct {
	disk Disk
	file *os.File
}

func (w written) Write(b []byte) (int, error) {
	if err := w.disk.write(w.file, b); err != nil {
		return 0, err
	}
	return len(b), nil
}

// install gives a finished file its name.
func (d Disk) install(tmp, path string, sync bool) error {
	if err := d.rename(tmp, path); err != nil {
		return err
	}
	if sync {
		return d.syncDir(filepath.Dir(path))
	}
	return nil
}
