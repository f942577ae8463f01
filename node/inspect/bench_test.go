package inspect

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// What is measured is there, and nothing is left behind.
func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	model := filepath.Join(dir, "nano.json")
	if err := os.WriteFile(model, []byte(`{"vocab":256,"hidden":16,"layers":1,"heads":2,"kvheads":1,"intermediate":32,"context":8}`), 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := Measure(t.Context(), model, dir, 1, 0)
	if err != nil || b.Threads != 1 || b.Params == 0 || b.Optimizer != "muon" || b.Codec != "int4" || b.Deltas != benchLearners {
		t.Errorf("%+v, %v", b, err)
	}
	if !(b.TokensPerS > 0 && b.EncodePerS > 0 && b.FoldPerS > 0 && b.MsPerWrite > 0 && b.MBPerS > 0) {
		t.Errorf("%+v", b)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) != 1 {
		t.Errorf("left %v, %v", left, err)
	}
	if _, err := Measure(t.Context(), model, filepath.Join(dir, "absent"), 1, 0); err == nil || !strings.Contains(err.Error(), "choose another folder") {
		t.Errorf("without the folder: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Measure(ctx, model, dir, 1, time.Hour); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end of its context: %v", err)
	}
}
