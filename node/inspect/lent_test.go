package inspect

import (
	"errors"
	"strings"
	"testing"

	"atoll/node/status"
)

// A node that runs and never lends its index is named with what to do, and is no other process that has the folder open.
func TestNodeThatLendsNothing(t *testing.T) {
	dir, locked := t.TempDir(), errors.New("locked")
	if _, err := openRunning(dir, locked); !errors.Is(err, locked) {
		t.Errorf("without a node: %v", err)
	}
	asked := make(chan struct{})
	defer close(asked)
	s, err := status.Serve(dir, status.Handlers{Lend: func() ([]byte, func(), error) { <-asked; return nil, nil, errors.New("too late") }})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	if _, _, err := lentIndex(dir, 1); err == nil || !strings.Contains(err.Error(), "does not give a copy of its index within 1ns") || !strings.Contains(err.Error(), "`atoll leave") {
		t.Errorf("error %v", err)
	}
}
