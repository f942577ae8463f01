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
	refused int  // streams that it tried beyond its bound
	counts  bool // it has neither passed nor been dropped
}

// OpenStream implements network.ResourceManager.
func (r *strangers) OpenStream(p peer.ID, dir network.Direction) (network.StreamManagementScope, error) {
	if dir == network.DirOutbound || r.passed(p) {
		return r.ResourceManager.OpenStream(p, dir)
	}
	s, fits, victim := r.enter(p)
	if victim != nil {
		r.drop(victim.id)
	}
	if !fits {
		return nil, fmt.Errorf("streams of %v before its handshake: %w", p, network.ErrResourceLimitExceeded)
	}
	scope, err := r.ResourceManager.OpenStream(p, dir)
	if err != nil {
		r.leave(s)
		return nil, err
	}
	return &strangerStream{StreamManagementScope: scope, left: func() { r.leave(s) }}, nil
}

// enter counts a stream in, if it fits. Where there is no room, who has more streams than this peer and than a
// handshake takes makes some: it is the victim, and loses its connections. So does this peer if it tries again and again: each stream that is refused takes time.
func (r *strangers) enter(p peer.ID) (s *stranger, fits bool, victim *stranger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s = r.know(p)
	if r.count >= strangersStreams && s.streams < strangerStreams {
		if most := r.most(); most.streams > s.streams && most.streams >= greedyStreams {
			victim = most
			r.forget(victim)
		}
	}
	if s.streams < strangerStreams && r.count < strangersStreams {
		s.streams++
		r.count++
		return s, true, victim
	}
	if s.refused++; s.refused > strangerRefused {
		victim = s
		r.forget(s)
	}
	return s, false, victim
}

// know is what is known of a peer. The caller holds the lock.
func (r *strangers) know(p peer.ID) *stranger {
	s := r.known[p]
	if s == nil {
		if r.known == nil {
			r.known = map[peer.ID]*stranger{}
		}
		s = &stranger{id: p, number: r.came, counts: true}
		r.known[p] = s
		r.came++
	}
	return s
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
