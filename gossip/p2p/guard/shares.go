package guard

import (
	"net/netip"
	"sync"
)

// Shares are slots that peers take, of which those of one origin (see Origin) have a share.
type Shares struct {
	all, each int

	mu    sync.Mutex
	taken map[netip.Prefix]int
	count int
}

// NewShares returns so many slots, and how many of them one origin has at most.
func NewShares(all, each int) *Shares { return &Shares{all: all, each: each} }

// Acquire reports whether there is a slot for one of an origin, who has it until Release.
func (s *Shares) Acquire(origin netip.Prefix) bool {
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

// Release gives a slot back.
func (s *Shares) Release(origin netip.Prefix) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken[origin]--; s.taken[origin] == 0 {
		delete(s.taken, origin)
	}
	s.count--
}
