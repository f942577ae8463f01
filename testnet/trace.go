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
	var all trace.Trace
	for _, m := range w.members {
		err := readTrace(&all, filepath.Join(m.dir, node.TraceFile))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return writeTrace(w.path(node.TraceFile), all.Merge())
}

func readTrace(all *trace.Trace, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("read the trace: %w", err)
	}
	defer f.Close()
	if err := all.Read(f); err != nil {
		return fmt.Errorf("read the trace %s: %w", path, err)
	}
	return nil
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
