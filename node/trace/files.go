package trace

import (
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
		return fmt.Errorf("read the trace %s: %w", path, err)
	}
	return nil
}

// ReadPath adds a file, or the trace in a folder, or the traces of the node folders in it.
func (t *Trace) ReadPath(path string) error {
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("read the trace: %w", err)
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

// WriteFile writes lines to a file.
func WriteFile(path string, lines []Line) error {
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(Write(f, lines), f.Close())
	}
	if err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}
