package gossip

import (
	"errors"
	"fmt"

	"atoll/gossip/wire"
)

// snapshot takes tips whole: the manifest from one donor, its chunks from
// every peer that turns out to have them. Tips are deterministic, so a peer at
// the same round of a fragment has the same chunks.
type snapshot struct {
	*env
	stage    stage
	prefer   wire.PeerID          // the donor to ask first, zero for none
	only     bool                 // ask no other: they are on other chains
	tried    map[wire.PeerID]Time // donors asked of late: others come first
	after    Time                 // not before: pause between donors
	attempt  int                  // counts manifests; answers to an earlier one are ignored
	donor    wire.PeerID
	manifest wire.Manifest
	chunks   []chunk
	first    int   // no chunk before this one is missing
	missing  int   // chunks not stored yet
	flying   int   // chunk requests in flight
	have     int64 // bytes stored, of total
	total    int64
	lacks    map[lack]bool
	donors   map[wire.PeerID]bool // peers that gave a chunk
}

type stage uint8

const (
	idle       stage = iota
	choosing         // wants a donor
	asking           // awaits the manifest
	fetching         // awaits chunks
	installing       // all chunks are stored: awaits Installed
)

// chunk is one chunk of the manifest.
type chunk struct {
	digest   wire.Digest
	fragment int
	size     int
	state    chunkState
	tries    int
	after    Time // not before: it failed or every donor was busy
}

type chunkState uint8

const (
	chunkMissing chunkState = iota
	chunkAsked
	chunkStored
)

// lack says that a peer does not have a fragment's tip of this manifest.
type lack struct {
	peer     wire.PeerID
	fragment int
}

func (s *snapshot) busy() bool { return s.stage != idle }

// fetch begins, unless a fetch is under way. prefer is asked first, or alone;
// zero leaves the choice to the roster.
func (s *snapshot) fetch(prefer wire.PeerID, only bool) {
	if s.busy() {
		return
	}
	s.stage, s.prefer, s.only, s.after = choosing, prefer, only, s.now
	if only {
		delete(s.tried, prefer)
	}
	s.tick()
}

// cancel forgets the fetch. Stored chunks remain for the next.
func (s *snapshot) cancel() {
	s.stage = idle
	s.attempt++
}

func (s *snapshot) tick() {
	switch s.stage {
	case choosing:
		s.choose()
	case fetching:
		s.pump()
	}
}

// choose asks the best donor that was not tried of late, each in turn and then
// all over again.
func (s *snapshot) choose() {
	if s.now < s.after {
		return
	}
	p := s.best()
	if p == nil && s.only {
		s.event(EventSnapshot, s.prefer, "gives up on these tips: repair will look again")
		s.cancel()
		return
	}
	if p == nil {
		clear(s.tried)
		s.after = s.now + snapshotRetryMs
		return
	}
	s.tried[p.id] = s.now
	s.askManifest(p)
}

// best prefers the named donor, then peers named in the link, then the most
// folded tokens, then the smaller id.
func (s *snapshot) best() *peer {
	var best *peer
	for _, p := range s.peers.list {
		joining := p.beat != nil && p.beat.State == wire.Joining
		if !s.usable(p) || joining || s.only && p.id != s.prefer {
			continue
		}
		if at, ok := s.tried[p.id]; ok && s.now < at+triedMs {
			continue
		}
		if best == nil || s.rank(p) > s.rank(best) || s.rank(p) == s.rank(best) && p.folded() > best.folded() {
			best = p
		}
	}
	return best
}

func (s *snapshot) rank(p *peer) int {
	switch {
	case p.id == s.prefer:
		return 2
	case s.cfg.trusts(p.id):
		return 1
	}
	return 0
}

func (p *peer) folded() uint64 {
	if p.beat == nil {
		return 0
	}
	return p.beat.Folded
}

func (s *snapshot) askManifest(p *peer) {
	text := "asks for the tips"
	if !s.cfg.trusts(p.id) {
		text += ", unattested: the link does not name this peer"
	}
	s.event(EventSnapshot, p.id, text)
	s.stage, s.donor = asking, p.id
	s.attempt++
	attempt := s.attempt
	s.call(p.id, wire.Request{Kind: wire.GetManifest}, wire.GetManifest.MaxResponse(), callMs, func(b []byte, err error) {
		if attempt == s.attempt {
			s.gotManifest(p.id, b, err)
		}
	})
}

func (s *snapshot) gotManifest(from wire.PeerID, b []byte, err error) {
	if err == nil {
		var m wire.Manifest
		if m, err = s.open(from, b); err == nil {
			s.begin(m)
			return
		}
		s.misbehaved(from, err.Error())
	}
	s.another(fmt.Sprintf("no manifest: %v", err))
}

func (s *snapshot) open(from wire.PeerID, b []byte) (wire.Manifest, error) {
	m, err := wire.OpenManifest(s.cfg.Run, b)
	switch {
	case err != nil:
		return m, err
	case m.Author != from:
		return m, fmt.Errorf("%w: manifest of %v, asked %v", wire.ErrInvalid, m.Author, from)
	case len(m.Fragments) != s.chain.Fragments():
		return m, fmt.Errorf("%w: manifest with %d fragments in a run of %d", wire.ErrInvalid, len(m.Fragments), s.chain.Fragments())
	}
	return m, nil
}

// another pauses and chooses again.
func (s *snapshot) another(why string) {
	s.event(EventSnapshot, s.donor, why)
	s.stage, s.after = choosing, s.now+snapshotRetryMs
	s.attempt++
}

// begin lists the chunks that are not stored from an earlier attempt.
func (s *snapshot) begin(m wire.Manifest) {
	s.stage, s.manifest = fetching, m
	s.chunks, s.first, s.missing, s.flying, s.have, s.total = nil, 0, 0, 0, 0, 0
	s.lacks, s.donors = map[lack]bool{}, map[wire.PeerID]bool{}
	if genesisOnly(m) {
		s.done()
		return
	}
	listed := map[wire.Digest]bool{}
	for f, fm := range m.Fragments {
		for i, d := range fm.Chunks {
			if !listed[d] {
				listed[d] = true
				s.list(chunk{digest: d, fragment: f, size: fm.ChunkLen(i)})
			}
		}
	}
	s.event(EventSnapshot, s.donor, fmt.Sprintf("%d chunks to fetch, %d bytes of %d stored", s.missing, s.have, s.total))
	s.pump()
}

// genesisOnly reports whether a manifest says that nothing was folded yet.
func genesisOnly(m wire.Manifest) bool {
	for _, f := range m.Fragments {
		if f.Round > 0 {
			return false
		}
	}
	return true
}

func (s *snapshot) list(c chunk) {
	s.total += int64(c.size)
	if s.cfg.HasChunk(c.digest) {
		s.have += int64(c.size)
		return
	}
	s.missing++
	s.chunks = append(s.chunks, c)
}

// pump asks for as many chunks as may be in flight.
func (s *snapshot) pump() {
	if s.missing == 0 {
		s.done()
		return
	}
	for s.chunks[s.first].state == chunkStored {
		s.first++
	}
	for i := s.first; i < len(s.chunks); i++ {
		if s.flying >= maxChunkCalls {
			return
		}
		c := &s.chunks[i]
		if c.state != chunkMissing || s.now < c.after {
			continue
		}
		p, left := s.source(c)
		if p != nil {
			s.askChunk(i, p)
		} else if !left {
			s.another("its donors are gone or have moved on")
			return
		}
	}
}

// source returns the connected peer to ask for c: of those that may have it
// the one with the fewest chunks in flight, the donor on a tie. left is false
// if no peer may have it.
func (s *snapshot) source(c *chunk) (best *peer, left bool) {
	if c.tries >= maxChunkTries {
		return nil, false
	}
	for _, p := range s.peers.list {
		if !s.usable(p) || s.lacks[lack{p.id, c.fragment}] {
			continue
		}
		left = true
		if p.chunks >= maxChunkCallsPerPeer {
			continue
		}
		if best == nil || p.chunks < best.chunks || p.chunks == best.chunks && p.id == s.donor {
			best = p
		}
	}
	return best, left
}

func (s *snapshot) askChunk(i int, p *peer) {
	c := &s.chunks[i]
	c.state = chunkAsked
	c.tries++
	p.chunks++
	s.flying++
	asked, attempt := s.now, s.attempt
	request := wire.Request{Kind: wire.GetChunk, Digest: c.digest}
	s.call(p.id, request, wire.GetChunk.MaxResponse(), p.transferMs(c.size), func(b []byte, err error) {
		p.chunks--
		if err == nil {
			p.sampled(len(b), int64(s.now-asked))
		}
		if attempt != s.attempt {
			return
		}
		s.flying--
		s.gotChunk(&s.chunks[i], p, b, err)
		s.pump()
	})
}

func (s *snapshot) gotChunk(c *chunk, p *peer, b []byte, err error) {
	c.state = chunkMissing
	switch {
	case err == nil && len(b) == c.size && wire.Sum(b) == c.digest:
		c.state = chunkStored
		s.missing--
		s.have += int64(c.size)
		s.donors[p.id] = true
		s.emit(StoreChunk{Digest: c.digest, Bytes: b})
	case err == nil:
		s.misbehaved(p.id, fmt.Sprintf("%d bytes that are not chunk %v", len(b), c.digest))
		s.lacks[lack{p.id, c.fragment}] = true
	case errors.Is(err, wire.ErrBusy):
		c.tries--
		c.after = s.now + busyRetryMs
	case errors.Is(err, wire.ErrNotFound), errors.Is(err, wire.ErrRefused):
		c.tries--
		s.lacks[lack{p.id, c.fragment}] = true
	default:
		c.after = s.now + busyRetryMs
		s.lacks[lack{p.id, c.fragment}] = p.id != s.donor
	}
}

func (s *snapshot) done() {
	s.stage = installing
	if s.total == 0 {
		s.stage = idle // from genesis: there is nothing to install
	}
	s.attempt++
	s.emit(Snapshot{Manifest: s.manifest, Donor: s.donor})
	s.event(EventSnapshot, s.donor, fmt.Sprintf("all %d bytes stored, from %d peers", s.total, len(s.donors)))
	s.chunks, s.lacks = nil, nil
}

// phase describes the fetch for people, and the share that is done.
func (s *snapshot) phase() (string, float64) {
	const mb = 1e6
	switch s.stage {
	case choosing:
		return "looking for a donor", 0
	case asking:
		return fmt.Sprintf("asking %v for its tips", s.donor), 0
	case fetching:
		return fmt.Sprintf("snapshot %.1f of %.1f MB from %d peers", float64(s.have)/mb, float64(s.total)/mb, max(len(s.donors), 1)),
			float64(s.have) / float64(max(s.total, 1))
	case installing:
		return "putting the tips together", 1
	}
	return "", 0
}
