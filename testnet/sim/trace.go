package sim

import "atoll/node/trace"

// record begins to write down, in virtual time, the deltas of a node's life, if the
// scenario asks for it.
func (w *World) record(n *Node) *trace.Recorder {
	if !w.s.Trace {
		return nil
	}
	return trace.New(trace.Config{
		Self: n.id, Run: w.run, Window: w.s.Params.WindowUnion, Out: &w.traced,
		Now: func() int64 { return w.now },
	})
}

// Trace is the life of every delta so far, if the scenario asks for it. Nodes write it
// down no further.
func (w *World) Trace() trace.Trace {
	var all trace.Trace
	for _, n := range w.nodes {
		_ = n.trace.Close() // a buffer takes all
	}
	if err := all.Read(&w.traced); err != nil {
		w.broken("sim", "trace: %v", err)
	}
	return all.Merge()
}

// came records the answer to a request.
func (x *exchange) came(b []byte, err error) {
	x.by.trace.Answered(x.id, x.by.w.now-x.tookMs, x.by.w.now, b, err)
}
