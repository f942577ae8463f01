package p2p

import (
	"net/netip"
	"sync"
)

// shares are slots that peers take, of which those of one origin (see originOf) have a share.
type shares struct {
	all, each int

	mu    sync.Mutex
	taken map[netip.Prefix]int
	count int
}

// acquire reports whether there is a slot for one of an origin, who has it until release.
func (s *shares) acquire(origin netip.Prefix) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.count >= s.all || s.taken[origin] >= s.each {
		return false
	}
	if s.taken == nil {
		s.taken = map[netip.Prefix]int{}
	}
	s.taken[origin]++
	s.count++
	return true
}

// release gives a slot back.
func (s *shares) release(origin netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[origin]--; s.taken[origin] == 0 {
		delete(s.taken, origin)
	}
	s.count--
}
