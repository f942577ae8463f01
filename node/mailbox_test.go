package node

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"testing"
	"weak"
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

// What is done is let go of while the rest is still to be done.
func TestMailboxLetsGo(t *testing.T) {
	b := newMailbox[*[1 << 20]byte]()
	b.put(new([1 << 20]byte))
	b.put(new([1 << 20]byte))
	var first weak.Pointer[[1 << 20]byte]
	done := 0
	b.each(func(item *[1 << 20]byte) {
		if done++; done == 1 {
			first = weak.Make(item)
			return
		}
		if runtime.GC(); first.Value() != nil {
			t.Error("the first is still there")
		}
	})
	if done != 2 || !b.empty() {
		t.Errorf("%d done, empty %v", done, b.empty())
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
