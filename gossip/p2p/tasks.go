package p2p

import "sync"

// tasks counts the goroutines at work for a host, those that libp2p starts for
// its stream handlers included, so that Close can wait for them.
type tasks struct {
	mu     sync.Mutex
	closed bool
	wg     sync.WaitGroup
}

// enter reports whether work may begin; if so, leave ends it.
func (t *tasks) enter() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed {
		return false
	}
	t.wg.Add(1)
	return true
}

func (t *tasks) leave() { t.wg.Done() }

// start runs f on a goroutine of its own, unless the host is closing.
func (t *tasks) start(f func()) {
	if !t.enter() {
		return
	}
	go func() {
		defer t.leave()
		f()
	}()
}

// close lets no more work begin. It reports whether it was the first to.
func (t *tasks) close() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.closed
	t.closed = true
	return first
}

func (t *tasks) wait() { t.wg.Wait() }
