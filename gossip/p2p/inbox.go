package p2p

import (
	"context"
	"sync"
)

// inbox is the queue between the network's goroutines, which must not block,
// and the one reader of Events, which may be busy.
//
// What is dropped when it fills up: news of who has a message first (half full), then
// messages and refusals (full). A PeerUp or RecordChanged may go over by as
// much again, after which handshakes fail; a PeerDown always fits, as there is
// at most one for each PeerUp.
type inbox struct {
	out   chan Event
	limit int
	wake  chan struct{} // holds one token when waiting may be non-empty

	mu      sync.Mutex
	waiting []queued
	dropped Dropped
}

func newInbox(limit int) *inbox {
	return &inbox{out: make(chan Event), limit: limit, wake: make(chan struct{}, 1)}
}

// queued is an event that waits for the reader. taken, if there is one, is closed when the reader has it.
type queued struct {
	event Event
	taken chan struct{}
}

// put queues e and reports whether there was room for it.
func (q *inbox) put(e Event) bool { return q.putTold(e, nil) }

// putTold is put, and closes taken when the reader has e.
func (q *inbox) putTold(e Event, taken chan struct{}) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if room := q.room(e); room >= 0 && len(q.waiting) >= room {
		q.count(e)
		return false
	}
	q.waiting = append(q.waiting, queued{e, taken})
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// room is the length of the queue at which e no longer fits; negative: never.
func (q *inbox) room(e Event) int {
	switch e.(type) {
	case Has, Stranger:
		return (q.limit + 1) / 2
	case Message, Refused:
		return q.limit
	case PeerDown:
		return -1
	default:
		return 2 * q.limit
	}
}

func (q *inbox) count(e Event) {
	switch e.(type) {
	case Has, Stranger:
		q.dropped.Holders++
	case Message:
		q.dropped.Messages++
	default:
		q.dropped.Events++
	}
}

// lost returns what has been dropped so far.
func (q *inbox) lost() Dropped {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.dropped
}

// run hands out events until ctx is done, then closes the channel.
func (q *inbox) run(ctx context.Context) {
	defer close(q.out)
	for {
		e, ok := q.first()
		if !ok {
			select {
			case <-q.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		select {
		case q.out <- e.event:
			q.remove()
			if e.taken != nil {
				close(e.taken)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (q *inbox) first() (queued, bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		return queued{}, false
	}
	return q.waiting[0], true
}

func (q *inbox) remove() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.waiting[0] = queued{}
	q.waiting = q.waiting[1:]
}
