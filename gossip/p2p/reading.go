package p2p

import (
	"slices"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
)

// reading has the streams of requests that have begun and not ended to arrive. They are bounded
// over all peers. Whoever has the most of them makes room, so that keys that cost nothing, with as
// many streams as each may open, keep out nobody else.
type reading struct {
	mu      sync.Mutex
	streams map[peer.ID][]network.Stream // the oldest first
	count   int
}

// begin notes a stream whose request begins to arrive.
func (r *reading) begin(from peer.ID, s network.Stream) {
	r.mu.Lock()
	if r.streams == nil {
		r.streams = map[peer.ID][]network.Stream{}
	}
	r.streams[from] = append(r.streams[from], s)
	r.count++
	var victim network.Stream
	if r.count > maxReading {
		victim = r.oldestOfMost()
	}
	r.mu.Unlock()
	if victim != nil {
		victim.Reset() // its reader ends, and says so
	}
}

// oldestOfMost takes out the oldest stream of the peer that has the most.
func (r *reading) oldestOfMost() network.Stream {
	var most peer.ID
	for p, streams := range r.streams {
		if n := len(r.streams[most]); len(streams) > n || len(streams) == n && p < most {
			most = p
		}
	}
	victim := r.streams[most][0]
	r.remove(most, victim)
	return victim
}

// end forgets a stream, if it is still known.
func (r *reading) end(from peer.ID, s network.Stream) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.remove(from, s)
}

func (r *reading) remove(from peer.ID, s network.Stream) {
	i := slices.Index(r.streams[from], s)
	if i < 0 {
		return
	}
	r.count--
	if r.streams[from] = slices.Delete(r.streams[from], i, i+1); len(r.streams[from]) == 0 {
		delete(r.streams, from)
	}
}
