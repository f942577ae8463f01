package guard

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// maxRefusals bounds what is remembered; the oldest are forgotten first.
const maxRefusals = 1024

// Refusals remembers for a while who was refused and why, so that nobody is
// dialled in a loop.
type Refusals struct {
	mu   sync.Mutex
	byID map[peer.ID]refusal
}

type refusal struct {
	reason error
	until  time.Time
}

// NewRefusals returns one that remembers nobody.
func NewRefusals() *Refusals { return &Refusals{byID: map[peer.ID]refusal{}} }

// Put remembers a refusal. It is not shortened by one that it causes.
func (r *Refusals) Put(p peer.ID, reason error, memory time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	until := time.Now().Add(memory)
	if old, ok := r.byID[p]; ok && old.until.After(until) {
		return
	}
	if len(r.byID) >= maxRefusals {
		r.forgetOldest()
	}
	r.byID[p] = refusal{reason, until}
}

// Get returns why p is refused at this time, nil if it is not.
func (r *Refusals) Get(p peer.ID) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	old, ok := r.byID[p]
	if !ok {
		return nil
	}
	if !time.Now().Before(old.until) {
		delete(r.byID, p)
		return nil
	}
	return old.reason
}

// Clear forgets a refusal.
func (r *Refusals) Clear(p peer.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.byID, p)
}

func (r *Refusals) forgetOldest() {
	var oldest peer.ID
	for p, old := range r.byID {
		if oldest == "" || old.until.Before(r.byID[oldest].until) {
			oldest = p
		}
	}
	delete(r.byID, oldest)
}
