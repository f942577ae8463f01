package p2p

import (
	"cmp"
	"fmt"
	"net/netip"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ratelimit "golang.org/x/time/rate"
)

// strangers is the resource manager with bounds on the streams that peers open before this node has accepted their records.
// Such a stream waits for the handshake, whatever its protocol, and its first bytes wait in memory. Without bounds a few dozen
// keys would take all the streams of this node, and its members could open none. Keys cost nothing and addresses do, so
// streams count for the key and for where it comes from (see originOf).
//
// Who is accepted is no stranger, though its own verdict may be on its way yet: once it has ours it asks for all that it may.
// Askers of the DHT never shake hands, and their streams have bounds of their own (see answerDiscovery).
type strangers struct {
	network.ResourceManager
	accepted func(peer.ID) bool
	origin   func(peer.ID) netip.Prefix // of a connected peer
	drop     func(peer.ID)              // closes the connections of a peer, later

	mu    sync.Mutex
	known map[peer.ID]*stranger
	from  map[netip.Prefix]int // streams of those of one origin
	count int                  // streams of all of them
	came  uint64               // strangers so far
}

// stranger is a peer that has tried streams and is not accepted.
type stranger struct {
	id      peer.ID
	origin  netip.Prefix // when it came
	number  uint64       // in the order in which they came
	streams int
	refused *ratelimit.Limiter // streams that it tried in vain
	counts  bool               // it has been neither accepted nor dropped
}

// OpenStream implements network.ResourceManager.
func (r *strangers) OpenStream(p peer.ID, dir network.Direction) (network.StreamManagementScope, error) {
	if dir == network.DirOutbound || r.accepted(p) {
		return r.ResourceManager.OpenStream(p, dir)
	}
	s, fits, victim := r.enter(p, r.origin(p))
	if victim != nil {
		r.drop(victim.id)
	}
	if !fits {
		return nil, fmt.Errorf("streams of %v, which is not accepted yet: %w", p, network.ErrResourceLimitExceeded)
	}
	if r.accepted(p) {
		r.admit(p) // it was accepted since the question above, and enter may have come after that
	}
	scope, err := r.ResourceManager.OpenStream(p, dir)
	if err != nil {
		r.leave(s)
		return nil, err
	}
	return &strangerStream{StreamManagementScope: scope, left: func() { r.leave(s) }}, nil
}

// enter counts a stream in, if it fits. Where there is no room, a greedy stranger makes some: it is the victim, and loses
// its connections. So does this peer if it tries again and again: each stream that is refused takes time.
func (r *strangers) enter(p peer.ID, origin netip.Prefix) (s *stranger, fits bool, victim *stranger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s = r.know(p, origin)
	if s.streams < strangerStreams && r.full(s.origin) {
		if victim = r.greedy(s); victim != nil {
			r.forget(victim)
		}
	}
	if s.streams < strangerStreams && !r.full(s.origin) {
		r.add(s, 1)
		return s, true, victim
	}
	if !s.refused.Allow() {
		victim = s
		r.forget(s)
	}
	return s, false, victim
}

// know is what is known of a peer. The caller holds the lock.
func (r *strangers) know(p peer.ID, origin netip.Prefix) *stranger {
	s := r.known[p]
	if s == nil {
		if r.known == nil {
			r.known, r.from = map[peer.ID]*stranger{}, map[netip.Prefix]int{}
		}
		s = &stranger{id: p, origin: origin, number: r.came, refused: ratelimit.NewLimiter(strangerRefused/ratelimit.Limit(helloTimeout.Seconds()), strangerRefused), counts: true}
		r.known[p] = s
		r.came++
	}
	return s
}

// full reports whether no more streams fit, of any origin or of this one. The caller holds the lock.
func (r *strangers) full(origin netip.Prefix) bool {
	return r.count >= strangersStreams || r.crowded(origin)
}

// crowded reports whether no more streams of an origin fit. Those of this machine have no bound of their own, like
// their connections. The caller holds the lock.
func (r *strangers) crowded(origin netip.Prefix) bool {
	return r.from[origin] >= strangersAddress && !origin.Addr().IsLoopback()
}

// greedy is who makes room for a stream of s, nil if nobody does. It has more streams than a handshake takes. If it is of
// the origin of s, it has more than s; otherwise its origin has more than that of s, which is not full by itself. Of several
// compare chooses. The caller holds the lock.
func (r *strangers) greedy(s *stranger) (most *stranger) {
	for p, o := range r.known {
		switch {
		case o != s && o.streams == 0 && o.refused.Tokens() >= strangerRefused:
			delete(r.known, p) // there is nothing to remember of it any more
		case o.streams < greedyStreams:
		case o.origin == s.origin && o.streams <= s.streams:
		case o.origin != s.origin && (r.crowded(s.origin) || r.from[o.origin] <= r.from[s.origin]):
		case most == nil || r.compare(o, most) > 0:
			most = o
		}
	}
	return most
}

// compare is positive if a gives way before b: its origin has more streams, or else it has more itself, or else it came
// first. The caller holds the lock.
func (r *strangers) compare(a, b *stranger) int {
	return cmp.Or(cmp.Compare(r.from[a.origin], r.from[b.origin]), cmp.Compare(a.streams, b.streams), cmp.Compare(b.number, a.number))
}

// leave notes the end of a stream.
func (r *strangers) leave(s *stranger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !s.counts {
		return
	}
	if r.add(s, -1); s.streams == 0 {
		r.forget(s)
	}
}

// add counts streams. The caller holds the lock.
func (r *strangers) add(s *stranger, n int) {
	s.streams += n
	r.count += n
	if r.from[s.origin] += n; r.from[s.origin] == 0 {
		delete(r.from, s.origin)
	}
}

// admit notes that a peer is accepted: its streams count as those of any other.
func (r *strangers) admit(p peer.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.known[p]; s != nil {
		r.forget(s)
	}
}

// forget takes a peer and its streams out of the count. The caller holds the lock.
func (r *strangers) forget(s *stranger) {
	r.add(s, -s.streams)
	s.counts = false
	delete(r.known, s.id)
}

// strangerStream is the scope of a stream that a stranger opened.
type strangerStream struct {
	network.StreamManagementScope
	once sync.Once
	left func()
}

// SetProtocol implements network.StreamManagementScope.
func (s *strangerStream) SetProtocol(id protocol.ID) error {
	err := s.StreamManagementScope.SetProtocol(id)
	if err == nil && id == dhtProtocol {
		s.once.Do(s.left)
	}
	return err
}

// Done implements network.ResourceScopeSpan.
func (s *strangerStream) Done() {
	s.StreamManagementScope.Done()
	s.once.Do(s.left)
}
