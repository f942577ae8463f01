package guard

import (
	"cmp"
	"fmt"
	"net/netip"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ratelimit "golang.org/x/time/rate"
)

// Limits on strangers.
const (
	// StrangerStreams bounds the streams of a peer whose record this node has not accepted: one for each of
	// its connections, identify, and questions about its own addresses.
	StrangerStreams = 2 * ConnsPeer
	// strangerRefused is how many more it may try at once, and again in the time that a handshake may take, where there is no
	// room for any. Beyond it the peer loses its connections.
	strangerRefused = 4 * StrangerStreams
	// greedyStreams is from how many streams on a stranger may lose its connections to others: a handshake, identify and
	// gossip are fewer, and keys with one stream each must not push out who is just being let in.
	greedyStreams = 4
	// StrangersAddress bounds the streams of strangers from one address (see Origin), and StrangersStreams those of all:
	// what all connections that there may be have without being greedy. So a herd of joiners finds room, and where
	// there is none somebody is greedy and gives way. What a stranger sends on a stream that nobody reads is at most
	// its first window, so 384 MiB come from an address and 3 GiB from all, if they send so much until their handshakes are
	// overdue; the resource manager knows of 256 KiB of each (see the doc of p2p).
	StrangersAddress = (greedyStreams - 1) * ConnsAddress
	StrangersStreams = (greedyStreams - 1) * ConnsSystem
)

// Strangers is the resource manager with bounds on the streams that peers open before this node has accepted their records.
// Such a stream waits for the handshake, whatever its protocol, and its first bytes wait in memory. Without bounds a few dozen
// keys would take all the streams of this node, and its members could open none. Keys cost nothing and addresses do, so
// streams count for the key and for where it comes from (see Origin).
//
// Who is accepted is no stranger, though its own verdict may be on its way yet: once it has ours it asks for all that it may.
// Askers of the DHT never shake hands, and their streams have bounds of their own.
type Strangers struct {
	network.ResourceManager
	Peers

	free    protocol.ID     // of streams that do not count: those of askers
	refused ratelimit.Limit // streams that one may try in vain, each second

	mu    sync.Mutex
	known map[peer.ID]*stranger
	from  map[netip.Prefix]int // streams of those of one origin
	count int                  // streams of all of them
	came  uint64               // strangers so far
}

// Peers is what is asked of a host about its peers.
type Peers struct {
	Accepted func(peer.ID) bool
	Origin   func(peer.ID) netip.Prefix // of a connected peer
	Drop     func(peer.ID)              // closes the connections of a peer, later
}

// NewStrangers returns one that bounds streams before inner does. Streams of the protocol free do not count, and patience
// is the time that a handshake may take.
func NewStrangers(inner network.ResourceManager, peers Peers, free protocol.ID, patience time.Duration) *Strangers {
	return &Strangers{ResourceManager: inner, Peers: peers, free: free, refused: strangerRefused / ratelimit.Limit(patience.Seconds())}
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
func (r *Strangers) OpenStream(p peer.ID, dir network.Direction) (network.StreamManagementScope, error) {
	if dir == network.DirOutbound || r.Accepted(p) {
		return r.ResourceManager.OpenStream(p, dir)
	}
	s, fits, victim := r.enter(p, r.Origin(p))
	if victim != nil {
		r.Drop(victim.id)
	}
	if !fits {
		return nil, fmt.Errorf("streams of %v, which is not accepted yet: %w", p, network.ErrResourceLimitExceeded)
	}
	if r.Accepted(p) {
		r.Admit(p) // it was accepted since the question above, and enter may have come after that
	}
	scope, err := r.ResourceManager.OpenStream(p, dir)
	if err != nil {
		r.leave(s)
		return nil, err
	}
	return &strangerStream{StreamManagementScope: scope, free: r.free, left: func() { r.leave(s) }}, nil
}

// enter counts a stream in, if it fits. Where there is no room, a greedy stranger makes some: it is the victim, and loses
// its connections. So does this peer if it tries again and again: each stream that is refused takes time.
func (r *Strangers) enter(p peer.ID, origin netip.Prefix) (s *stranger, fits bool, victim *stranger) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s = r.know(p, origin)
	if s.streams < StrangerStreams && r.full(s.origin) {
		if victim = r.greedy(s); victim != nil {
			r.forget(victim)
		}
	}
	if s.streams < StrangerStreams && !r.full(s.origin) {
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
func (r *Strangers) know(p peer.ID, origin netip.Prefix) *stranger {
	s := r.known[p]
	if s == nil {
		if r.known == nil {
			r.known, r.from = map[peer.ID]*stranger{}, map[netip.Prefix]int{}
		}
		s = &stranger{id: p, origin: origin, number: r.came, refused: ratelimit.NewLimiter(r.refused, strangerRefused), counts: true}
		r.known[p] = s
		r.came++
	}
	return s
}

// full reports whether no more streams fit, of any origin or of this one. The caller holds the lock.
func (r *Strangers) full(origin netip.Prefix) bool {
	return r.count >= StrangersStreams || r.crowded(origin)
}

// crowded reports whether no more streams of an origin fit. Those of this machine have no bound of their own, like
// their connections. The caller holds the lock.
func (r *Strangers) crowded(origin netip.Prefix) bool {
	return r.from[origin] >= StrangersAddress && !origin.Addr().IsLoopback()
}

// greedy is who makes room for a stream of s, nil if nobody does. It has more streams than a handshake takes. If it is of
// the origin of s, it has more than s; otherwise its origin has more than that of s, which is not full by itself. Of several
// compare chooses. The caller holds the lock.
func (r *Strangers) greedy(s *stranger) (most *stranger) {
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
func (r *Strangers) compare(a, b *stranger) int {
	return cmp.Or(cmp.Compare(r.from[a.origin], r.from[b.origin]), cmp.Compare(a.streams, b.streams), cmp.Compare(b.number, a.number))
}

// leave notes the end of a stream.
func (r *Strangers) leave(s *stranger) {
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
func (r *Strangers) add(s *stranger, n int) {
	s.streams += n
	r.count += n
	if r.from[s.origin] += n; r.from[s.origin] == 0 {
		delete(r.from, s.origin)
	}
}

// Admit notes that a peer is accepted: its streams count as those of any other.
func (r *Strangers) Admit(p peer.ID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if s := r.known[p]; s != nil {
		r.forget(s)
	}
}

// forget takes a peer and its streams out of the count. The caller holds the lock.
func (r *Strangers) forget(s *stranger) {
	r.add(s, -s.streams)
	s.counts = false
	delete(r.known, s.id)
}

// strangerStream is the scope of a stream that a stranger opened.
type strangerStream struct {
	network.StreamManagementScope
	free protocol.ID
	once sync.Once
	left func()
}

// SetProtocol implements network.StreamManagementScope.
func (s *strangerStream) SetProtocol(id protocol.ID) error {
	err := s.StreamManagementScope.SetProtocol(id)
	if err == nil && id == s.free {
		s.once.Do(s.left)
	}
	return err
}

// Done implements network.ResourceScopeSpan.
func (s *strangerStream) Done() {
	s.StreamManagementScope.Done()
	s.once.Do(s.left)
}
