package node

import (
	"context"
	"slices"
	"sync"
	"testing"
)

// Whatever many senders put, one reader takes, each sender's items in order.
func TestMailbox(t *testing.T) {
	const senders, each = 8, 500
	b := newMailbox[[2]int]()
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				b.put([2]int{s, i})
			}
		})
	}
	next := make([]int, senders)
	for taken := 0; taken < senders*each; {
		<-b.ready
		for _, item := range b.take() {
			if item[1] != next[item[0]] {
				t.Fatalf("sender %d: item %d, want %d", item[0], item[1], next[item[0]])
			}
			next[item[0]]++
			taken++
		}
	}
	wg.Wait()
	if !b.empty() || len(b.take()) != 0 {
		t.Error("items left")
	}
	b.put([2]int{})
	if b.empty() {
		t.Error("empty with an item in it")
	}
}

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
		w.disk.put(func() { done = append(done, i) })
	}
	w.stop()
	if !ended || len(done) != 100 || !slices.IsSorted(done) {
		t.Errorf("ended %v, %d done in order %v", ended, len(done), slices.IsSorted(done))
	}
}
