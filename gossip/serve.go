package gossip

import (
	"slices"

	"atoll/gossip/fetch"
	"atoll/gossip/headers"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// serve answers the requests of others within bounds on bytes under way,
// requests that wait, and hashing.
type serve struct {
	*env
	seen       *headers.Headers
	fetch      *fetch.Fetch
	peerList   func(asker *peers.Peer) []byte
	blobs      *blobs
	chunkQueue chunkQueue
	manifests  manifests
	parked     []parked
	replies    []reply // under way
	bytesAway  int
	backlog    backlog
}

// servePeer is what serve, with chunkQueue and manifests, knows of a peer.
type servePeer struct {
	parked       int   // its requests that wait
	bytes        int   // under way to it
	asks         quota // costly requests
	snapshotAsks quota // requests for a snapshot
	turn         turn  // at being given chunks
	toldOwn      Time  // not before: it was told of its own deltas
}

func serveOf(p *peers.Peer) *servePeer { return peers.Note[servePeer](p) }

// quota counts what a peer asks for, a span of time after the other.
type quota struct {
	from Time
	n    int
}

// spend counts once and reports whether that is within so many in spanMs.
func (q *quota) spend(now Time, spanMs Time, most int) bool {
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
	since  Time
	until  Time
}

// reply is a bulk answer whose last byte has not left yet.
type reply struct {
	handle uint64
	to     *peers.Peer
	bytes  int
	id     wire.Digest // of the payload; zero for a chunk of a tip or a part of a blob
	left   bool        // its last byte is on its way
	until  Time        // its slot is freed then
}

// request answers a stream request, at once or, for payloads, later.
func (s *serve) request(handle uint64, from wire.PeerID, b []byte) {
	r, err := wire.DecodeRequest(b)
	if err != nil {
		s.Misbehaved(from, err.Error())
		s.status(handle, wire.Refused)
		return
	}
	if !s.cfg.Members.Member(from) && r.Kind != wire.GetGenesis {
		s.status(handle, wire.Refused) // it came while this node did not know yet who is admitted
		return
	}
	p := s.Ensure(from, true)
	if p == nil {
		s.status(handle, wire.Busy)
		return
	}
	s.Hear(p)
	if r.Kind != wire.GetGenesis && !p.Record().Stateless {
		p.Runs(s.Now)
	}
	if s.Paused && heavy(r.Kind) {
		s.status(handle, wire.Busy)
		return
	}
	switch r.Kind {
	case wire.GetGenesis:
		s.genesis(handle, r.Run)
	case wire.GetPayload:
		s.payload(handle, p, r)
	case wire.GetChunk:
		s.chunkQueue.request(p, chunkRequest{handle: handle, digest: r.Digest})
	case wire.GetPart:
		s.part(handle, p, r)
	default:
		s.costly(handle, p, r)
	}
}

func (s *serve) status(handle uint64, st wire.Status) {
	s.Emit(Reply{Handle: handle, Response: wire.Response{Status: st}.Encode()})
}

func (s *serve) ok(handle uint64, body []byte) {
	s.Emit(Reply{Handle: handle, Response: wire.Response{Status: wire.OK, Body: body}.Encode()})
}

func (s *serve) genesis(handle uint64, run wire.RunID) {
	if run != s.cfg.Run {
		s.status(handle, wire.NotFound)
		return
	}
	s.Emit(ReplyGenesis{Handle: handle})
}

// costly answers what takes hashing, a bounded number of times a second.
func (s *serve) costly(handle uint64, p *peers.Peer, r wire.Request) {
	if !serveOf(p).asks.spend(s.Now, 1000, maxAsksPerSecond) {
		s.status(handle, wire.Busy)
		return
	}
	if r.Kind == wire.GetPeerList {
		s.ok(handle, s.peerList(p))
		return
	}
	if r.Kind == wire.GetCertificates {
		s.ok(handle, s.cfg.Members.Answer(r))
		return
	}
	if r.Kind == wire.GetHoldings {
		s.ok(handle, s.blobs.holdings(r.Digests))
		return
	}
	if s.heartbeats.Joining() {
		s.status(handle, wire.Busy)
		return
	}
	switch r.Kind {
	case wire.GetRounds:
		s.rounds(handle, r.Ranges)
	case wire.GetHeaders:
		s.headers(handle, r.Rounds)
	case wire.GetManifest:
		s.manifests.request(handle, p, nil)
	case wire.GetSnapshot:
		s.snapshot(handle, p, r.At)
	case wire.GetOwn:
		s.newest(handle, p)
	}
}

// part answers with one of some parts of a blob, when it is the asker's turn.
func (s *serve) part(handle uint64, p *peers.Peer, r wire.Request) {
	if !s.blobs.has(r.Digest, r.Parts) {
		s.status(handle, wire.NotFound)
		return
	}
	s.chunkQueue.request(p, chunkRequest{handle: handle, digest: r.Digest, parts: r.Parts})
}

// snapshot answers for given rounds, one for each fragment.
func (s *serve) snapshot(handle uint64, p *peers.Peer, at []uint32) {
	if len(at) != s.chain.Fragments() {
		s.status(handle, wire.Refused)
		return
	}
	s.manifests.request(handle, p, at)
}

// rounds answers for each range with the digests of the sets held.
func (s *serve) rounds(handle uint64, ranges []wire.Range) {
	answers := make([]wire.RangeAnswer, len(ranges))
	for i, r := range ranges {
		if !s.fragmentOf(r.Fragment) {
			s.status(handle, wire.Refused)
			return
		}
		answers[i] = s.rangeAnswer(int(r.Fragment), r)
	}
	s.ok(handle, wire.EncodeRounds(answers))
}

func (s *serve) rangeAnswer(f int, r wire.Range) wire.RangeAnswer {
	a := wire.RangeAnswer{Closed: s.chain.Closed(f), Base: s.unionBase(f)}
	a.Chain, _ = s.chain.ChainDigest(f, r.From-1)
	a.State, _ = s.chain.StateDigest(f, r.From-1)
	last := min(uint64(r.To), uint64(a.Closed)+uint64(s.cfg.WindowAccept)) // nothing is held beyond
	for round := uint64(r.From); round <= last; round++ {
		d, _ := s.chain.SetDigest(f, uint32(round))
		a.Sets = append(a.Sets, d)
	}
	for n := len(a.Sets); n > 0 && a.Sets[n-1].IsZero(); n-- {
		a.Sets = a.Sets[:n-1]
	}
	return a
}

// headers answers with whole rounds in the order asked, up to the first that
// does not fit.
func (s *serve) headers(handle uint64, keys []wire.RoundKey) {
	var headers []wire.SignedHeader
	for _, k := range keys {
		if !s.fragmentOf(k.Fragment) {
			s.status(handle, wire.Refused)
			return
		}
		round := s.chain.Signed(int(k.Fragment), k.Round)
		round = round[:min(len(round), maxRoundHeaders)]
		if len(headers)+len(round) > wire.MaxHeaders {
			break
		}
		headers = append(headers, round...)
	}
	s.ok(handle, wire.EncodeHeaders(headers))
}

// payload answers now, or parks the request until Complete, its end, or when this
// node does not expect the payload any more.
// The id may be one not met yet: the asker may have been faster than the
// header's way through this node.
func (s *serve) payload(handle uint64, p *peers.Peer, r wire.Request) {
	if s.seen.Invalid(r.Digest) {
		s.status(handle, wire.NotFound)
		return
	}
	q := parked{handle: handle, from: p, id: r.Digest, since: s.Now, until: s.Now + Time(min(r.WaitMs, wire.MaxWaitMs))}
	held := s.chain.Has(r.Digest)
	switch {
	case !held && (r.WaitMs == 0 || !s.expects(r.Digest) || s.fetch.Relies(r.Digest, p.ID)):
		s.status(handle, wire.NotFound)
	case s.mayPark(p):
		s.park(q)
	case !held || s.upload() > 0 || !s.give(handle, p, q.id):
		s.status(handle, wire.Busy)
	}
}

// mayPark reports whether one more request of a peer may wait. Strangers' requests have a part of
// the slots, and give theirs to those of others.
func (s *serve) mayPark(p *peers.Peer) bool {
	if serveOf(p).parked >= fetch.MaxParkedPerPeer {
		return false
	}
	strange := func(q parked) bool { return s.Stranger(q.from.ID) }
	if s.Stranger(p.ID) {
		count := 0
		for _, q := range s.parked {
			count += peers.BoolRank(strange(q))
		}
		return len(s.parked) < maxParked && count < maxParked/peers.StrangersShare
	}
	if len(s.parked) < maxParked {
		return true
	}
	i := slices.IndexFunc(s.parked, strange)
	if i < 0 {
		return false
	}
	gone := s.parked[i].handle
	s.status(gone, wire.Busy)
	s.unpark(func(q parked) bool { return q.handle == gone })
	return true
}

// park has a request wait for the payload or for a slot. One without a wait is answered
// at once.
func (s *serve) park(q parked) {
	s.parked = append(s.parked, q)
	serveOf(q.from).parked++
	if !s.chain.Has(q.id) {
		return
	}
	s.next()
	if q.until > s.Now {
		return
	}
	s.unpark(func(other parked) bool {
		if other.handle == q.handle {
			s.status(q.handle, wire.Busy)
		}
		return other.handle == q.handle
	})
}

// expects reports whether a payload is held, on its way, or may be once its header
// comes. A joiner, or a node far behind, forwards headers of rounds whose payloads
// it never fetches: who asks it for one must not lose time before asking another.
func (s *serve) expects(id wire.Digest) bool {
	return s.seen.Find(id) == nil || s.fetch.Wants(id) || s.chain.Has(id)
}

// cannot says why a payload did not come in time: no slot, or not held.
func (s *serve) cannot(handle uint64, held bool) {
	if held {
		s.status(handle, wire.Busy)
		return
	}
	s.status(handle, wire.NotFound)
}

// give sends a payload that is held, if there is a slot for it.
func (s *serve) give(handle uint64, p *peers.Peer, id wire.Digest) bool {
	if !s.admit(reply{handle: handle, to: p, bytes: s.size(id), id: id}) {
		return false
	}
	if v := s.seen.Find(id); v != nil {
		v.Give(p.ID)
	}
	s.Emit(ReplyPayload{Handle: handle, ID: id})
	return true
}

// size is the size of a payload held, or of a chunk if the header is forgotten.
func (s *serve) size(id wire.Digest) int {
	if v := s.seen.Find(id); v != nil {
		return int(v.Header.Header.Size)
	}
	return wire.ChunkSize
}

// admit takes room for a bulk answer. An answer above the limits may go alone. Those to strangers
// have a part of the room.
func (s *serve) admit(r reply) bool {
	r.bytes, r.until = max(r.bytes, servingFloor), s.Now+max(servingTtlMs, peers.Rate(peers.FirstRate).TransferMs(r.bytes))
	if s.bytesAway > 0 && s.bytesAway+r.bytes > maxServing {
		return false
	}
	if of := &serveOf(r.to).bytes; *of > 0 && *of+r.bytes > maxServingPerPeer {
		return false
	}
	if s.Stranger(r.to.ID) {
		if of := s.strangersAway(); of > 0 && of+r.bytes > maxServing/peers.StrangersShare {
			return false
		}
	}
	s.bytesAway += r.bytes
	serveOf(r.to).bytes += r.bytes
	s.backlog.bytes += float64(r.bytes)
	s.replies = append(s.replies, r)
	return true
}

// strangersAway counts the bytes on their way to strangers.
func (s *serve) strangersAway() (bytes int) {
	for _, r := range s.replies {
		if s.Stranger(r.to.ID) {
			bytes += r.bytes
		}
	}
	return bytes
}

// payloadsAway reports whether payloads of the run are on their way.
func (s *serve) payloadsAway() bool {
	return slices.ContainsFunc(s.replies, func(r reply) bool { return !r.id.IsZero() })
}

// replied frees the slot of an answer and gives it to those that wait. payload is zero if
// it did not come whole.
func (s *serve) replied(handle uint64, payload wire.Digest) {
	i := slices.IndexFunc(s.replies, func(r reply) bool { return r.handle == handle })
	if i >= 0 {
		r := s.replies[i]
		if v := s.seen.Find(r.id); v != nil && payload != r.id {
			v.Lost(r.to.ID)
		}
		s.free(r)
		s.replies = slices.Delete(s.replies, i, i+1)
	}
	s.unpark(func(q parked) bool { return q.handle == handle }) // its asker is gone
	s.left(handle)
}

// left says that the last byte of a bulk answer is on its way.
func (s *serve) left(handle uint64) {
	for i := range s.replies {
		if s.replies[i].handle == handle {
			s.replies[i].left = true
		}
	}
	s.next()
	s.chunkQueue.left(handle)
	s.manifests.left(handle)
}

func (s *serve) free(r reply) {
	s.bytesAway -= r.bytes
	serveOf(r.to).bytes -= r.bytes
}

// missing tells those that wait for id that it will not come.
func (s *serve) missing(id wire.Digest) {
	s.unpark(func(q parked) bool {
		if q.id == id {
			s.status(q.handle, wire.NotFound)
		}
		return q.id == id
	})
}

// tick ends waits that took too long, or are for nothing, and frees slots nobody gave back.
func (s *serve) tick() {
	s.replies = slices.DeleteFunc(s.replies, func(r reply) bool {
		late := s.Now > r.until
		if late {
			s.free(r)
		}
		return late
	})
	s.next()
	s.unpark(func(q parked) bool {
		over := s.Now >= q.until || !s.expects(q.id)
		if over {
			s.cannot(q.handle, s.chain.Has(q.id))
		}
		return over
	})
	s.chunkQueue.tick()
	s.manifests.tick()
}
