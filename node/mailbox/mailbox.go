// Package mailbox is a queue between goroutines that never blocks its senders.
package mailbox

import "sync"

// Mailbox is an unbounded queue between goroutines: putting never blocks, so
// the training thread never waits for its reader. Its length is bounded by
// what the senders do: a step or a draft at a time, one fold per fragment, one
// request per stream slot of the network.
type Mailbox[T any] struct {
	mu    sync.Mutex
	items []T
	puts  uint64        // items that ever came
	ready chan struct{} // holds a token while items may be waiting
}

// New is an empty mailbox.
func New[T any]() *Mailbox[T] {
	return &Mailbox[T]{ready: make(chan struct{}, 1)}
}

// Ready has a token while items may be waiting.
func (b *Mailbox[T]) Ready() <-chan struct{} { return b.ready }

// Put appends an item and wakes the reader.
func (b *Mailbox[T]) Put(item T) {
	b.mu.Lock()
	b.items = append(b.items, item)
	b.puts++
	b.mu.Unlock()
	select {
	case b.ready <- struct{}{}:
	default:
	}
}

// Count is how many items ever came.
func (b *Mailbox[T]) Count() uint64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.puts
}

// Empty says that every item was taken.
func (b *Mailbox[T]) Empty() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.items) == 0
}

// Take removes and returns all items.
func (b *Mailbox[T]) Take() []T {
	b.mu.Lock()
	defer b.mu.Unlock()
	items := b.items
	b.items = nil
	return items
}

// Each takes all items and calls do with one after the other. It lets go of each before the next one: what waits for the
// learner holds tips, which are most of a node's memory.
func (b *Mailbox[T]) Each(do func(T)) {
	items := b.Take()
	for i, item := range items {
		clear(items[i : i+1])
		do(item)
	}
}
