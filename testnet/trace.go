package testnet

import (
	"errors"
	"io/fs"
	"path/filepath"
	"strings"

	"atoll/node/trace"
)

// traceOf merges what the nodes wrote into the world's folder, and adds it up.
func (w *world) traceOf() (*trace.Shares, error) {
	if !w.cfg.Trace {
		return nil, nil
	}
	var all trace.Trace
	for _, m := range w.members {
		if err := all.ReadFile(filepath.Join(m.dir, trace.File)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, err
		}
	}
	merged := all.Merge()
	if err := trace.WriteFile(w.path(trace.File), merged); err != nil {
		return nil, err
	}
	s := trace.Sum(merged)
	return &s, nil
}

// writeTrace says where the time of deltas went.
func (r Report) writeTrace(b *strings.Builder) {
	if r.Trace == nil {
		return
	}
	item(b, "trace", "%s", r.Trace.Text(""))
	b.WriteByte('\n')
	_ = r.Trace.WriteText(b) // a Builder takes all
}
