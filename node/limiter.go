package node

import (
	"sync"

	"atoll/gossip"
	"atoll/gossip/wire"
)

// limiter is a gossip.Limiter that gossip's goroutines ask while the loop tells it what the run is
// like. A nil one lets all pass: before genesis is known nothing is known of the run's pace.
type limiter struct {
	mu sync.Mutex
	l  *gossip.Limiter
}

func newLimiter(cfg gossip.Config) *limiter { return &limiter{l: gossip.NewLimiter(cfg)} }

// Know implements gossip.Told.
func (l *limiter) Know(author wire.PeerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.l.Know(author)
}

// Contributed implements gossip.Told.
func (l *limiter) Contributed(author wire.PeerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.l.Contributed(author)
}

// Tick implements gossip.Told.
func (l *limiter) Tick(now gossip.Time, begun bool, closed []uint32) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.l.Tick(now, begun, closed)
}

// spares is gossip.Limiter.Spares.
func (l *limiter) spares(now gossip.Time, from wire.PeerID, m wire.Message) error {
	return l.ask(func(l *gossip.Limiter) error { return l.Spares(now, from, m) })
}

// check returns gossip.ErrHeldBack for a message that goes no further.
func (l *limiter) check(now gossip.Time, from wire.PeerID, m wire.Message) error {
	return l.ask(func(l *gossip.Limiter) error { return l.Check(now, from, m) })
}

func (l *limiter) ask(question func(*gossip.Limiter) error) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return question(l.l)
}
