// Package trials keeps what benchmarks that take hours have measured, a JSON object on a
// line. A program that is stopped goes on from its file. It has what puts turns together, too:
// their order, medians, and what is asked of a figure.
package trials

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
)

// Read reads a file of trials in the order of the lines; of a file that does not exist,
// none. What follows the last newline was not written to its end and is left out. The error
// names the line.
func Read[T any](path string) (trials []T, err error) {
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read trials: %w", err)
	}
	number := 0
	for line := range bytes.Lines(whole(text)) {
		number++
		if len(bytes.TrimSpace(line)) == 0 {
			continue
		}
		var t T
		if err := json.Unmarshal(line, &t); err != nil {
			return nil, fmt.Errorf("read trials: %s line %d: %w", path, number, err)
		}
		trials = append(trials, t)
	}
	return trials, nil
}

// whole is the part of a file that ends with a newline.
func whole(text []byte) []byte { return text[:bytes.LastIndexByte(text, '\n')+1] }

// Append adds one line. What a write that was cut short left at the end goes first.
func Append(path string, trial any) error {
	line, err := json.Marshal(trial)
	if err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	defer f.Close()
	text, err := io.ReadAll(f)
	if err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	end := int64(len(whole(text)))
	if err := f.Truncate(end); err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	if _, err := f.WriteAt(append(line, '\n'), end); err != nil {
		return fmt.Errorf("write trial: %w", err)
	}
	return f.Close()
}
