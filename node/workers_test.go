package node

import (
	"context"
	"slices"
	"testing"
)

func TestWorkersFinishTheirQueues(t *testing.T) {
	w := newWorkers()
	var done []int
	var ended bool
	started := make(chan struct{})
	w.goRun(func(ctx context.Context) {
		close(started)
		<-ctx.Done()
		ended = true
	})
	<-started
	for i := range 100 {
		w.disk.Put(func() { done = append(done, i) })
	}
	w.stop()
	if !ended || len(done) != 100 || !slices.IsSorted(done) {
		t.Errorf("ended %v, %d done in order %v", ended, len(done), slices.IsSorted(done))
	}
}
