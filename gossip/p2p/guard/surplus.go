package guard

import (
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
)

// mostSurplus is how many messages of a peer may go no further within a second before such messages are looked for, until
// the second is over. An honest neighbour brings some: its own limits let a little more pass, or it knows of newer members.
const mostSurplus = 64

// Surplus counts the messages of each peer that go no further: held back, or of strangers. Gossip says IDONTWANT for a
// message to all neighbours before it is checked, so what costs its sender nothing would cost them all.
type Surplus struct {
	mu     sync.Mutex
	began  time.Time // of the second that is counted
	counts map[peer.ID]int
}

// Add counts a message of a peer.
func (s *Surplus) Add(p peer.ID, now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now.Sub(s.began) >= time.Second {
		s.began, s.counts = now, map[peer.ID]int{}
	}
	s.counts[p]++
}

// Over says whether a peer brought much of it within this second.
func (s *Surplus) Over(p peer.ID, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return now.Sub(s.began) < time.Second && s.counts[p] >= mostSurplus
}
