package serve

import (
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/fetch"
	"atoll/gossip/headers"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Config is what a Serve goes by.
type Config struct {
	WindowAccept uint32 // rounds behind closed that gossip still brings
	ManifestMs   int64  // how long the asker of a manifest waits for it

	// UnionBase is the newest round of a fragment below which this node reconciles nothing.
	UnionBase func(fragment int) uint32
	// PeerList is the answer to a request for the peer list.
	PeerList func(asker *peers.Peer) []byte
}

// Chain is what is asked about the rounds that this node holds, see the Chain of package gossip.
type Chain interface {
	Fragments() int
	Closed(f int) uint32
	ChainDigest(f int, r uint32) (wire.Digest, bool)
	StateDigest(f int, r uint32) (wire.Digest, bool)
	SetDigest(f int, r uint32) (wire.Digest, bool)
	Signed(f int, r uint32) []wire.SignedHeader
	Has(id wire.Digest) bool
}

// Blobs are the blobs of which this node gives parts.
type Blobs interface {
	// Holdings is the answer to what this node has of blobs.
	Holdings(digests []wire.Digest) []byte
	// Has reports whether some of these parts are here.
	Has(blob wire.Digest, parts wire.PartSet) bool
	// Spread reports whether all of them that are here were given a moment ago.
	Spread(blob wire.Digest, parts wire.PartSet) bool
	// Choose picks the part to give. Has must be true.
	Choose(blob wire.Digest, parts wire.PartSet) (index int)
}

// Serve answers the requests of others within bounds on bytes under way,
// requests that wait, and hashing.
type Serve struct {
	*peers.Table
	heartbeats *peers.Heartbeats
	cfg        Config
	chain      Chain
	seen       *headers.Headers
	fetch      *fetch.Fetch
	blobs      Blobs
	chunkQueue chunkQueue
	manifests  manifests
	parked     []parked
	replies    []reply // under way
	bytesAway  int
	backlog    backlog
}

// Peer is what a Serve remembers of a peer.
type Peer struct {
	parked       int         // its requests that wait
	bytes        int         // under way to it
	asks         quota       // costly requests
	snapshotAsks quota       // requests for a snapshot
	turn         turn        // at being given chunks
	toldOwn      effect.Time // not before: it was told of its own deltas
}

func peerOf(p *peers.Peer) *Peer { return peers.Note[Peer](p) }

// Owes reports whether bulk is on its way to a peer.
func Owes(p *peers.Peer) bool { return peerOf(p).bytes > 0 }

// quota counts what a peer asks for, a span of time after the other.
type quota struct {
	from effect.Time
	n    int
}

// spend counts once and reports whether that is within so many in spanMs.
func (q *quota) spend(now effect.Time, spanMs effect.Time, most int) bool {
	if now >= q.from+spanMs {
		q.from, q.n = now, 0
	}
	q.n++
	return q.n <= most
}

// parked is a payload request that waits for the payload or for a slot.
type parked struct {
	handle uint64
	from   *peers.Peer
	id     wire.Digest
	since  effect.Time
	until  effect.Time
}

// reply is a bulk answer whose last byte has not left yet.
type reply struct {
	handle uint64
	to     *peers.Peer
	bytes  int
	id     wire.Digest // of the payload; zero for a chunk of a tip or a part of a blob
	left   bool        // its last byte is on its way
	until  effect.Time // its slot is freed then
}

func (s *Serve) status(handle uint64, st wire.Status) {
	s.Emit(effect.Reply{Handle: handle, Response: wire.Response{Status: st}.Encode()})
}

func (s *Serve) ok(handle uint64, body []byte) {
	s.Emit(effect.Reply{Handle: handle, Response: wire.Response{Status: wire.OK, Body: body}.Encode()})
}

// expects reports whether a payload is held, on its way, or may be once its header
// comes. A joiner, or a node far behind, forwards headers of rounds whose payloads
// it never fetches: who asks it for one must not lose time before asking another.
func (s *Serve) expects(id wire.Digest) bool {
	return s.seen.Find(id) == nil || s.fetch.Wants(id) || s.chain.Has(id)
}

// admit takes room for a bulk answer. An answer above the limits may go alone. Those to strangers
// have a part of the room.
func (s *Serve) admit(r reply) bool {
	r.bytes, r.until = max(r.bytes, ServingFloor), s.Now+max(ServingTtlMs, peers.Rate(peers.FirstRate).TransferMs(r.bytes))
	if s.bytesAway > 0 && s.bytesAway+r.bytes > MaxServing {
		return false
	}
	if of := &peerOf(r.to).bytes; *of > 0 && *of+r.bytes > MaxServingPerPeer {
		return false
	}
	if s.Stranger(r.to.ID) {
		if of := s.strangersAway(); of > 0 && of+r.bytes > MaxServing/peers.StrangersShare {
			return false
		}
	}
	s.bytesAway += r.bytes
	peerOf(r.to).bytes += r.bytes
	s.backlog.bytes += float64(r.bytes)
	s.replies = append(s.replies, r)
	return true
}

// strangersAway counts the bytes on their way to strangers.
func (s *Serve) strangersAway() (bytes int) {
	for _, r := range s.replies {
		if s.Stranger(r.to.ID) {
			bytes += r.bytes
		}
	}
	return bytes
}

// payloadsAway reports whether payloads of the run are on their way.
func (s *Serve) payloadsAway() bool {
	return slices.ContainsFunc(s.replies, func(r reply) bool { return !r.id.IsZero() })
}

func (s *Serve) free(r reply) {
	s.bytesAway -= r.bytes
	peerOf(r.to).bytes -= r.bytes
}
