// Package messagegate decides which gossip messages of a run go further, before p2p passes them on. It knows wire messages, who
// was admitted and the run's pace, and neither connections nor libp2p.
package messagegate

import (
	"sync"
	"sync/atomic"

	"atoll/gossip/effect"
	"atoll/gossip/limit"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// Gate opens the gossip messages of a run, for Check and Spares of p2p.Config. What comes of nobody who was admitted goes no further, nor
// what comes too often or too late. It is safe for concurrent use.
type Gate struct {
	run     wire.RunID
	members *member.Table

	Limiter atomic.Pointer[Limiter] // nil until genesis is known: before that nothing is known of the run's pace
}

// New returns one that has no limiter yet. members is nil in a run that is open to everybody.
func New(run wire.RunID, members *member.Table) *Gate {
	return &Gate{run: run, members: members}
}

// Check returns why a message that a peer brought goes no further, at a time in milliseconds. The error is a *member.Stranger
// for one whose author nobody here knows to be admitted. Signatures take most of the time, so they are checked last, and what
// authors have said is counted then: who wrote their names is known by nothing else.
func (g *Gate) Check(now int64, from wire.PeerID, raw []byte) error {
	m, err := wire.Decode(raw)
	if err != nil {
		return err
	}
	if err := g.Limiter.Load().spares(now, from, m); err != nil {
		return err
	}
	if err := member.VerifyMessage(g.run, g.members, m, raw); err != nil {
		return err
	}
	return g.Limiter.Load().check(now, from, m)
}

// Spares returns limit.ErrHeldBack for a message that goes no further whatever its signature is, or why it is none. It
// takes a small part of Check's time.
func (g *Gate) Spares(now int64, from wire.PeerID, raw []byte) error {
	m, err := wire.Decode(raw)
	if err != nil {
		return err
	}
	return g.Limiter.Load().spares(now, from, m)
}

// Limiter is a limit.Limiter that gossip's goroutines ask while another one tells it what the run is
// like. A nil one lets all pass.
type Limiter struct {
	mu sync.Mutex
	l  *limit.Limiter
}

// NewLimiter is limit.New.
func NewLimiter(cfg limit.Config) *Limiter { return &Limiter{l: limit.New(cfg)} }

// Know implements limit.Told.
func (l *Limiter) Know(author wire.PeerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.l.Know(author)
}

// Contributed implements limit.Told.
func (l *Limiter) Contributed(author wire.PeerID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.l.Contributed(author)
}

// Tick implements limit.Told.
func (l *Limiter) Tick(now effect.Time, begun bool, closed []uint32, fit limit.Fit) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.l.Tick(now, begun, closed, fit)
}

// spares is limit.Limiter.Spares.
func (l *Limiter) spares(now effect.Time, from wire.PeerID, m wire.Message) error {
	return l.ask(func(l *limit.Limiter) error { return l.Spares(now, from, m) })
}

// check is limit.Limiter.Check.
func (l *Limiter) check(now effect.Time, from wire.PeerID, m wire.Message) error {
	return l.ask(func(l *limit.Limiter) error { return l.Check(now, from, m) })
}

func (l *Limiter) ask(question func(*limit.Limiter) error) error {
	if l == nil {
		return nil
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	return question(l.l)
}
