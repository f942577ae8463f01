// Package pinned keeps what simulated worlds came to, one line a world, in a file
// that tests compare. A change that only moves code leaves every line as it is; a
// change of behaviour shows which worlds it changes, and writes their lines anew.
package pinned

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"sync"
)

// File is such a file. Worlds are played side by side, so it may be used by many
// goroutines.
type File struct {
	path string

	mu      sync.Mutex
	names   []string // in the order of the file
	lines   map[string]string
	changed bool
}

// Open reads a file of lines "name what it came to". One that is not there has no lines.
func Open(path string) (*File, error) {
	f := &File{path: path, lines: map[string]string{}}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return f, nil
	}
	if err != nil {
		return nil, err
	}
	for line := range strings.Lines(string(text)) {
		name, got, _ := strings.Cut(strings.TrimSuffix(line, "\n"), " ")
		f.names, f.lines[name] = append(f.names, name), got
	}
	return f, nil
}

// Check compares what a world came to with its line.
func (f *File) Check(name, got string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if want, known := f.lines[name]; !known || got != want {
		return fmt.Errorf("world %s came to\n  %s, and its line in %s is\n  %s\nif the change is meant, write the file anew with -update and say why in the commit", name, got, f.path, want)
	}
	return nil
}

// Set changes the line of a world, or adds one.
func (f *File) Set(name, got string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, known := f.lines[name]; !known {
		f.names = append(f.names, name)
	}
	f.changed = f.changed || f.lines[name] != got
	f.lines[name] = got
}

// Save writes the file if a line of it has changed, shorter names first: numbers are in order.
func (f *File) Save() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.changed {
		return nil
	}
	slices.SortFunc(f.names, func(a, b string) int {
		if len(a) != len(b) {
			return len(a) - len(b)
		}
		return strings.Compare(a, b)
	})
	var b bytes.Buffer
	for _, name := range f.names {
		fmt.Fprintln(&b, name, f.lines[name])
	}
	return os.WriteFile(f.path, b.Bytes(), 0o644)
}
