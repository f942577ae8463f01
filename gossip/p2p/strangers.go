package p2p

import (
	"fmt"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// strangers is the resource manager with a bound on the streams that peers open before they have passed the handshake. Such
// a stream waits for the handshake, whatever its protocol, and its first bytes wait in memory. Keys cost nothing: without the
// bound a few dozen of them would take all the streams of this node, and its members could open none.
type strangers struct {
	network.ResourceManager
	passed func(peer.ID) bool
	drop   func(peer.ID) // closes the connections of a peer, later

	mu    sync.Mutex
	known map[peer.ID]*stranger
	count int    // streams of all of them
	came  uint64 // strangers so far
}

// stranger is a peer that has streams and has not passed the handshake.
type stranger struct {
	id      peer.ID
	number  uint64 // in the order in which they came
	streams int
	counts  bool // it has neither passed nor been dropped
}

// OpenStream implements network.ResourceManager.
func (r *strangers) OpenStream(p peer.ID, dir network.Direction) (network.StreamManagementScope, error) {
	if dir == network.DirOutbound || r.passed(p) {
		return r.ResourceManager.OpenStream(p, dir)
	}
	s, victim := r.enter(p)
	if s == nil {
		return nil, fmt.Errorf("streams of %v before its handshake: %w", p, network.ErrResourceLimitExceeded)
	}
	if victim != nil {
		r.drop(victim.id)
	}
	scope, err := r.ResourceManager.OpenStream(p, dir)
	if err != nil {
		r.leave(s)
		return nil, err
	}
	return &strangerStream{StreamManagementScope: scope, left: func() { r.leave(s) }}, nil
}

// enter counts a stream in. Where there is no room, who has more streams than this peer makes some; nil if nobody has.
func (r *strangers) enter(p peer.ID) (s, victim *stranger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s = r.known[p]; s == nil {
		s = &stranger{id: p, number: r.came, counts: true}
	}
	if s.streams >= strangerStreams {
		return nil, nil
	}
	if r.count >= strangersStreams {
		if victim = r.most(); victim == nil || victim.streams <= s.streams {
			return nil, nil
		}
		r.forget(victim)
	}
	if r.known == nil {
		r.known = map[peer.ID]*stranger{}
	}
	if r.known[p] == nil {
		r.known[p] = s
		r.came++
	}
	s.streams++
	r.count++
	return s, victim
}

// most is who has the most streams, and of equals who came first. The caller holds the lock.
func (r *strangers) most() (most *stranger) {
	for _, s := range r.known {
		if most == nil || s.streams > most.streams || s.streams == most.streams && s.number < most.number {
			most = s
		}
	}
	return most
}

// leave notes the end of a stream.
func (r *strangers) leave(s *stranger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.counts {
		return
	}
	s.streams--
	r.count--
	if s.streams == 0 {
		r.forget(s)
	}
}

// admit notes that a peer has passed the handshake: its streams count as those of any other.
func (r *strangers) admit(p peer.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.known[p]; s != nil {
		r.forget(s)
	}
}

// forget takes a peer and its streams out of the count. The caller holds the lock.
func (r *strangers) forget(s *stranger) {
	r.count -= s.streams
	s.counts = false
	delete(r.known, s.id)
}

// strangerStream is the scope of a stream that was opened before the handshake.
type strangerStream struct {
	network.StreamManagementScope
	once sync.Once
	left func()
}

// Done implements network.ResourceScopeSpan.
func (s *strangerStream) Done() {
	s.StreamManagementScope.Done()
	s.once.Do(s.left)
}
