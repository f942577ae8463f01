package node

import "sync"

// mailbox is an unbounded queue between goroutines: putting never blocks, so
// the training thread never waits for its reader. Its length is bounded by
// what the senders do: a step or a draft at a time, one fold per fragment, one
// request per stream slot of the network.
type mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	puts  uint64        // items that ever came
	ready chan struct{} // holds a token while items may be waiting
}

func newMailbox[T any]() *mailbox[T] {
	return &mailbox[T]{ready: make(chan struct{}, 1)}
}

// put appends an item and wakes the reader.
func (b *mailbox[T]) put(item T) {
	b.mu.Lock()
	b.items = append(b.items, item)
	b.puts++
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// count is how many items ever came.
func (b *mailbox[T]) count() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.puts
}

// empty says that every item was taken.
func (b *mailbox[T]) empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items) == 0
}

// take removes and returns all items.
func (b *mailbox[T]) take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = nil
	return items
}

// each takes all items and calls do with one after the other. It lets go of each before the next one: what waits for the
// learner holds tips, which are most of a node's memory.
func (b *mailbox[T]) each(do func(T)) {
	items := b.take()
	for i, item := range items {
		clear(items[i : i+1])
		do(item)
	}
}
