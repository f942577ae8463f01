package testnet

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"atoll/node"
	"atoll/node/trace"
)

// mergeTraces makes one trace of what the nodes wrote, in the world's folder.
func (w *world) mergeTraces() error {
	if !w.cfg.Trace {
		return nil
	}
	var lines []trace.Line
	for _, m := range w.members {
		more, err := readTrace(filepath.Join(m.dir, node.TraceFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		lines = append(lines, more...)
	}
	return writeTrace(w.path(node.TraceFile), trace.Merge(lines))
}

func readTrace(path string) ([]trace.Line, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("read the trace: %w", err)
	}
	defer f.Close()
	lines, err := trace.Read(f)
	if err != nil {
		return nil, fmt.Errorf("read the trace %s: %w", path, err)
	}
	return lines, nil
}

func writeTrace(path string, lines []trace.Line) error {
	f, err := os.Create(path)
	if err == nil {
		err = errors.Join(trace.Write(f, lines), f.Close())
	}
	if err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return nil
}
