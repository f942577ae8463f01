package node

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"testing"

	"atoll/node/inspect"
	"atoll/node/trace"
)

// checkTrace: each delta of a ledger is in the trace of a node that was there from the
// start, and the trace of another says when that one drafted its own.
func checkTrace(t *testing.T, view inspect.LedgerView, dir, other string) {
	t.Helper()
	var all trace.Trace
	for _, d := range []string{dir, other} {
		if err := all.ReadPath(d); err != nil {
			t.Fatal(err)
		}
	}
	lines, ways, self := map[string]trace.Line{}, 0, all.Lines[0].Node
	for _, l := range all.Merge().Lines {
		if l.Node == self {
			lines[hex.EncodeToString(l.Delta[:])] = l
		}
	}
	for _, d := range view.Deltas {
		l, ok := lines[d.ID]
		if d.Folded && (!ok || l.End != trace.Adopted || l.Held > l.Folded || l.Folded > l.Adopted || l.Steps != d.Steps) {
			t.Errorf("delta %.10s is folded, and its line is %+v", d.ID, l)
		}
		if d.Folded && !l.Own() && l.Drafted != 0 {
			ways++
		}
	}
	if sum := trace.Sum(all.Merge()); ways == 0 || sum.Deltas < ways {
		t.Errorf("%d deltas of another are traced from their draft, %d in sum", ways, sum.Deltas)
	}
}

// Nobody who does not ask for a trace gets one.
func TestNoTraceUnlessAsked(t *testing.T) {
	n := newNode(Config{Dir: t.TempDir()})
	if err := n.openTrace(); err != nil || n.trace.Recorder != nil {
		t.Errorf("%v, %v", n.trace, err)
	}
	if _, err := os.Stat(filepath.Join(n.cfg.Dir, trace.File)); !os.IsNotExist(err) {
		t.Errorf("there is a file: %v", err)
	}
	if err := n.trace.close(); err != nil {
		t.Error(err)
	}
}
