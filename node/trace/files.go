package trace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// File is what a node calls its trace, in its folder. A testnet's folder has one of all nodes.
const File = "trace.jsonl"

// ErrNone says that a folder has no trace.
var ErrNone = errors.New("no trace there: start the node or the testnet with --trace")

// ReadFile adds what a file has.
func (t *Trace) ReadFile(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the trace: %w", err)
	}
	defer f.Close()
	if err := t.Read(f); err != nil {
		return fmt.Errorf("read the trace %s: %w: pass a "+File+" that a node wrote with --trace", path, err)
	}
	return nil
}

// ReadPath adds a file, or the trace in a folder, or the traces of the node folders in it.
func (t *Trace) ReadPath(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read the trace: %w: pass the folder of a node or a testnet, or its "+File, err)
	}
	if !info.IsDir() {
		return t.ReadFile(path)
	}
	if err := t.ReadFile(filepath.Join(path, File)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	below, _ := filepath.Glob(filepath.Join(path, "*", File)) // its only error is of the pattern
	if len(below) == 0 {
		return fmt.Errorf("%s: %w", path, ErrNone)
	}
	for _, name := range below {
		if err := t.ReadFile(name); err != nil {
			return err
		}
	}
	return nil
}

// Append opens a file to add lines. A last line that a crash has cut is dropped.
func Append(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o644)
	if err == nil {
		if err = dropCut(f); err != nil {
			f.Close()
		}
	}
	if err != nil {
		return nil, fmt.Errorf("open the trace: %w", err)
	}
	return f, nil
}

// dropCut drops what follows the last line end of a file.
func dropCut(f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	from := max(info.Size()-maxLine, 0)
	tail := make([]byte, info.Size()-from)
	if _, err := f.ReadAt(tail, from); err != nil {
		return err
	}
	if whole := from + int64(bytes.LastIndexByte(tail, '\n')) + 1; whole < info.Size() {
		return f.Truncate(whole)
	}
	return nil
}

// WriteFile writes a merged trace to a file.
func WriteFile(path string, t Trace) error {
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(Write(f, t), f.Close())
	}
	if err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}
