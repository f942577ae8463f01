package node

import (
	"fmt"
	"os"
	"path/filepath"
	"time"

	"atoll/gossip/p2p"
	"atoll/node/store"
	"atoll/node/trace"
)

// tracing is the record of deltas, nil inside where nobody asked for one.
type tracing struct {
	*trace.Recorder
	file *os.File
}

// openTrace begins the record, after what earlier processes wrote.
func (n *node) openTrace() error {
	if !n.cfg.Trace {
		return nil
	}
	f, err := trace.Append(filepath.Join(n.cfg.Dir, trace.File))
	if err != nil {
		return store.Explain(err, n.cfg.Dir)
	}
	n.trace = tracing{file: f, Recorder: trace.New(trace.Config{
		Self: n.self, Run: n.run, Window: n.genesis.Outer.Window, Now: func() int64 { return time.Now().UnixMilli() }, Out: f,
	})}
	return nil
}

// answered takes the outcome of a call.
func (t tracing) answered(call uint64, came p2p.Arrival, response []byte, err error) {
	t.Answered(call, came.First.UnixMilli(), came.Last.UnixMilli(), response, err)
}

// close writes what is left to tell.
func (t tracing) close() error {
	if t.file == nil {
		return nil
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("write the trace: %w", err)
	}
	return t.file.Close()
}
