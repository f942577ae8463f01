package serve

import (
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/fetch"
	"atoll/gossip/headers"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// New returns a machine that nobody has asked yet. chain is read during its calls only.
func New(t *peers.Table, h *peers.Heartbeats, cfg Config, chain Chain, seen *headers.Headers, fetch *fetch.Fetch, blobs Blobs) *Serve {
	s := &Serve{Table: t, heartbeats: h, cfg: cfg, chain: chain, seen: seen, fetch: fetch, blobs: blobs}
	s.chunkQueue = chunkQueue{Table: t, serve: s}
	s.manifests = manifests{Table: t, serve: s}
	return s
}

// Request answers a stream request, at once or, for payloads, later.
func (s *Serve) Request(handle uint64, from wire.PeerID, b []byte) {
	r, err := wire.DecodeRequest(b)
	if err != nil {
		s.Misbehaved(from, err.Error())
		s.status(handle, wire.Refused)
		return
	}
	if !s.Config.Members.Member(from) && r.Kind != wire.GetGenesis {
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
	if s.Paused && r.Kind.Large() {
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

func (s *Serve) genesis(handle uint64, run wire.RunID) {
	if run != s.Config.Run {
		s.status(handle, wire.NotFound)
		return
	}
	s.Emit(effect.ReplyGenesis{Handle: handle})
}

// costly answers what takes hashing, a bounded number of times a second.
func (s *Serve) costly(handle uint64, p *peers.Peer, r wire.Request) {
	if !peerOf(p).asks.spend(s.Now, 1000, MaxAsksPerSecond) {
		s.status(handle, wire.Busy)
		return
	}
	if r.Kind == wire.GetPeerList {
		s.ok(handle, s.cfg.PeerList(p))
		return
	}
	if r.Kind == wire.GetCertificates {
		s.ok(handle, s.Config.Members.Answer(r))
		return
	}
	if r.Kind == wire.GetHoldings {
		s.ok(handle, s.blobs.Holdings(r.Digests))
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
func (s *Serve) part(handle uint64, p *peers.Peer, r wire.Request) {
	if !s.blobs.Has(r.Digest, r.Parts) {
		s.status(handle, wire.NotFound)
		return
	}
	s.chunkQueue.request(p, chunkRequest{handle: handle, digest: r.Digest, parts: r.Parts})
}

// snapshot answers for given rounds, one for each fragment.
func (s *Serve) snapshot(handle uint64, p *peers.Peer, at []uint32) {
	if len(at) != s.chain.Fragments() {
		s.status(handle, wire.Refused)
		return
	}
	s.manifests.request(handle, p, at)
}

// rounds answers for each range with the digests of the sets held.
func (s *Serve) rounds(handle uint64, ranges []wire.Range) {
	answers := make([]wire.RangeAnswer, len(ranges))
	for i, r := range ranges {
		if int(r.Fragment) >= s.chain.Fragments() {
			s.status(handle, wire.Refused)
			return
		}
		answers[i] = s.rangeAnswer(int(r.Fragment), r)
	}
	s.ok(handle, wire.EncodeRounds(answers))
}

func (s *Serve) rangeAnswer(f int, r wire.Range) wire.RangeAnswer {
	a := wire.RangeAnswer{Closed: s.chain.Closed(f), Base: s.cfg.UnionBase(f)}
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
func (s *Serve) headers(handle uint64, keys []wire.RoundKey) {
	var headers []wire.SignedHeader
	for _, k := range keys {
		if int(k.Fragment) >= s.chain.Fragments() {
			s.status(handle, wire.Refused)
			return
		}
		round := s.chain.Signed(int(k.Fragment), k.Round)
		round = round[:min(len(round), MaxRoundHeaders)]
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
func (s *Serve) payload(handle uint64, p *peers.Peer, r wire.Request) {
	if s.seen.Invalid(r.Digest) {
		s.status(handle, wire.NotFound)
		return
	}
	q := parked{handle: handle, from: p, id: r.Digest, since: s.Now, until: s.Now + effect.Time(min(r.WaitMs, wire.MaxWaitMs))}
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
func (s *Serve) mayPark(p *peers.Peer) bool {
	if peerOf(p).parked >= fetch.MaxParkedPerPeer {
		return false
	}
	strange := func(q parked) bool { return s.Stranger(q.from.ID) }
	if s.Stranger(p.ID) {
		count := 0
		for _, q := range s.parked {
			count += peers.BoolRank(strange(q))
		}
		return len(s.parked) < MaxParked && count < MaxParked/peers.StrangersShare
	}
	if len(s.parked) < MaxParked {
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
func (s *Serve) park(q parked) {
	s.parked = append(s.parked, q)
	peerOf(q.from).parked++
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

// cannot says why a payload did not come in time: no slot, or not held.
func (s *Serve) cannot(handle uint64, held bool) {
	if held {
		s.status(handle, wire.Busy)
		return
	}
	s.status(handle, wire.NotFound)
}

// Replied frees the slot of an answer and gives it to those that wait. payload is zero if
// it did not come whole.
func (s *Serve) Replied(handle uint64, payload wire.Digest) {
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
	s.Left(handle)
}

// Left says that the last byte of a bulk answer is on its way.
func (s *Serve) Left(handle uint64) {
	for i := range s.replies {
		if s.replies[i].handle == handle {
			s.replies[i].left = true
		}
	}
	s.next()
	s.chunkQueue.left(handle)
	s.manifests.left(handle)
}

// Missing tells those that wait for id that it will not come.
func (s *Serve) Missing(id wire.Digest) {
	s.unpark(func(q parked) bool {
		if q.id == id {
			s.status(q.handle, wire.NotFound)
		}
		return q.id == id
	})
}

// Tick ends waits that took too long, or are for nothing, and frees slots nobody gave back.
func (s *Serve) Tick() {
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

// newest tells a peer its newest deltas, now and then: looking for them goes
// through all headers of the window, and who was told once knows. A node that met nobody of the run
// cannot tell: that it knows of none means nothing.
func (s *Serve) newest(handle uint64, p *peers.Peer) {
	if s.Now < peerOf(p).toldOwn {
		s.status(handle, wire.Busy)
		return
	}
	peerOf(p).toldOwn = s.Now + OwnToldMs
	newest := s.seen.Newest(p.ID)
	if len(newest) == 0 && s.heartbeats.Self().Unreached {
		s.status(handle, wire.Busy)
		return
	}
	s.ok(handle, wire.EncodeHeaders(newest))
}

// Pause turns away all that wait for something heavy.
func (s *Serve) Pause() {
	s.unpark(func(q parked) bool {
		s.status(q.handle, wire.Busy)
		return true
	})
	for _, a := range s.chunkQueue.askers {
		s.chunkQueue.turnAway(a, func(chunkRequest) bool { return true })
	}
	s.chunkQueue.forget()
}

// Held says that a payload came to be here: it is given to those that wait for it.
func (s *Serve) Held() { s.next() }

// Gone forgets what a peer asked for whose last connection was lost.
func (s *Serve) Gone(id wire.PeerID) { s.chunkQueue.gone(id) }

// Sizes calls each with how much is held of what others may cause, and what bounds it. The bytes of answers count
// where there are several: one alone may be larger.
func (s *Serve) Sizes(each func(what string, count, most int)) {
	each("parked requests", len(s.parked), MaxParked)
	if len(s.replies) > 1 {
		each("bytes of answers", s.bytesAway, MaxServing)
	}
	each("askers of chunks", len(s.chunkQueue.askers), MaxChunkAskers)
	each("manifests", len(s.manifests.making), len(s.List)) // one a peer
	for _, p := range s.List {
		each("parked requests of one peer", peerOf(p).parked, fetch.MaxParkedPerPeer)
	}
}
