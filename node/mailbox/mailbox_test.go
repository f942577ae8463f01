package mailbox

import (
	"runtime"
	"sync"
	"testing"
	"weak"
)

// Whatever many senders put, one reader takes, each sender's items in order.
func TestMailbox(t *testing.T) {
	const senders, each = 8, 500
	b := New[[2]int]()
	var wg sync.WaitGroup
	for s := range senders {
		wg.Go(func() {
			for i := range each {
				b.Put([2]int{s, i})
			}
		})
	}
	next := make([]int, senders)
	for taken := 0; taken < senders*each; {
		<-b.Ready()
		for _, item := range b.Take() {
			if item[1] != next[item[0]] {
				t.Fatalf("sender %d: item %d, want %d", item[0], item[1], next[item[0]])
			}
			next[item[0]]++
			taken++
		}
	}
	wg.Wait()
	if !b.Empty() || len(b.Take()) != 0 {
		t.Error("items left")
	}
	b.Put([2]int{})
	if b.Empty() {
		t.Error("empty with an item in it")
	}
}

// What is done is let go of while the rest is still to be done.
func TestMailboxLetsGo(t *testing.T) {
	b := New[*[1 << 20]byte]()
	b.Put(new([1 << 20]byte))
	b.Put(new([1 << 20]byte))
	var first weak.Pointer[[1 << 20]byte]
	done := 0
	b.Each(func(item *[1 << 20]byte) {
		if done++; done == 1 {
			first = weak.Make(item)
			return
		}
		if runtime.GC(); first.Value() != nil {
			t.Error("the first is still there")
		}
	})
	if done != 2 || !b.Empty() {
		t.Errorf("%d done, empty %v", done, b.Empty())
	}
}
