package gossip

import (
	"bytes"
	"errors"
	"fmt"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/fetch"
	"atoll/gossip/peers"
	"atoll/gossip/serve"
	"atoll/gossip/wire"
)

// transfer is the fetch of the chunks of one manifest. Tips are deterministic,
// so every peer that still has a fragment's tip of that round has the same
// chunks. A peer that is asked for the snapshot of these rounds keeps it for a
// while. So the fetch goes on where it was when its first snapshot source dies.
type transfer struct {
	chunks   []chunk
	at       map[wire.Digest]int // places of chunks in the list
	first    int                 // no chunk before this one is missing
	missing  int                 // chunks not stored yet
	have     int64               // bytes stored, of total
	total    int64
	holds    map[holding]int      // how many chunks of its tip, from the first
	recruits map[wire.PeerID]bool // peers asked for the snapshot; false: in vain
	gave     map[wire.PeerID]bool // peers that gave a chunk
	progress Time                 // when the last chunk came
	renewal  renewal
}

// snapshotPeer is what snapshot knows of a peer.
type snapshotPeer struct {
	calls        int  // chunks asked of it
	lastAt       Time // when its last chunk came, or the first was asked for
	after        Time // no chunk before: it was busy
	measured     bool // its rate was, by a chunk
	badSnapshots int  // how often its snapshot was refused or spoken against
	wrong        bool // it gave what is proven to be no part of a snapshot of this run
}

func snapshotOf(p *peers.Peer) *snapshotPeer { return peers.Note[snapshotPeer](p) }

// holding names the tip of one fragment at one peer.
type holding struct {
	peer     wire.PeerID
	fragment int
}

// chunk is one chunk of the manifest.
type chunk struct {
	digest   wire.Digest
	fragment int
	index    int // in the fragment's tip
	size     int
	state    chunkState
	by       *peers.Peer // who was asked for it last
	tries    int
}

// chunkCall is a request for a chunk that awaits its answer. It outlives the attempt in which it was made: over a
// thin link a chunk takes long, and most likely the next attempt is for the same snapshot.
type chunkCall struct {
	id     uint64 // of the call
	digest wire.Digest
	size   int
	by     *peers.Peer
}

type chunkState uint8

const (
	chunkMissing chunkState = iota
	chunkAsked
	chunkStored
)

func (t *transfer) share() float64 { return float64(t.have) / float64(max(t.total, 1)) }

// String is the progress for people.
func (t *transfer) String() string {
	const mb = 1e6
	return fmt.Sprintf("snapshot %.1f of %.1f MB from %d peers", float64(t.have)/mb, float64(t.total)/mb, max(len(t.gave), 1))
}

// begin fetches the chunks that are not stored from an earlier attempt.
func (s *snapshot) begin() {
	s.stage, s.resume = fetching, roundsOf(s.manifest)
	s.transfer = transfer{
		holds: map[holding]int{}, recruits: map[wire.PeerID]bool{}, gave: map[wire.PeerID]bool{}, progress: s.Now,
	}
	if genesisOnly(s.manifest) {
		s.done()
		return
	}
	s.list()
	t := &s.transfer
	s.adopt()
	t.renewal.next(s.Now, t)
	s.Event(EventSnapshot, s.source, fmt.Sprintf("%d chunks to fetch, %d bytes of %d stored", t.missing, t.have, t.total))
	s.Emit(Fetching{At: s.resume})
	s.recordChunks(s.source, s.manifest)
	s.pump()
}

// list lists the chunks of the manifest. Those that are listed already stay what they are.
func (s *snapshot) list() {
	t := &s.transfer
	before, places := t.chunks, t.at
	t.chunks, t.at = nil, map[wire.Digest]int{}
	t.first, t.missing, t.have, t.total = 0, 0, 0, 0
	for f, fm := range s.manifest.Fragments {
		for i, d := range fm.Chunks {
			if _, twice := t.at[d]; twice {
				continue
			}
			c := chunk{digest: d, fragment: f, index: i, size: fm.ChunkLen(i)}
			if j, listed := places[d]; listed {
				c.state, c.by, c.tries = before[j].state, before[j].by, before[j].tries
			} else if s.cfg.HasChunk(d) {
				c.state = chunkStored
			}
			t.add(c)
		}
	}
}

func (t *transfer) add(c chunk) {
	t.total += int64(c.size)
	if c.state == chunkStored {
		t.have += int64(c.size)
	} else {
		t.missing++
	}
	t.at[c.digest] = len(t.chunks)
	t.chunks = append(t.chunks, c)
}

// adopt has the requests of an earlier attempt count for this one, and ends those that it has no use for.
func (s *snapshot) adopt() {
	s.hangUpChunks(func(f chunkCall) bool {
		i, listed := s.transfer.at[f.digest]
		if !listed || s.transfer.chunks[i].state == chunkStored {
			return true
		}
		c := &s.transfer.chunks[i]
		c.state, c.by = chunkAsked, f.by
		return false
	})
}

// hangUpChunks ends the requests for chunks of which vain is true.
func (s *snapshot) hangUpChunks(vain func(chunkCall) bool) {
	for _, f := range slices.Clone(s.chunkCalls) {
		if vain(f) {
			s.HangUp(f.id)
		}
	}
}

// recordChunks notes which chunks a peer can give: those that its own tips of the
// same rounds begin with.
func (s *snapshot) recordChunks(id wire.PeerID, m wire.Manifest) {
	useful := false
	for f, fm := range s.manifest.Fragments {
		n := sameChunks(fm, m.Fragments[f])
		s.transfer.holds[holding{id, f}] = n
		useful = useful || n > 0
	}
	s.transfer.recruits[id] = useful
}

// sameChunks is with how many chunks that are the same two tips begin.
func sameChunks(a, b wire.FragmentManifest) (n int) {
	for n < len(a.Chunks) && n < len(b.Chunks) && a.Chunks[n] == b.Chunks[n] {
		n++
	}
	return n
}

// drop takes a peer from the sources.
func (s *snapshot) drop(id wire.PeerID) {
	for f := range s.manifest.Fragments {
		delete(s.transfer.holds, holding{id, f})
	}
	s.transfer.recruits[id] = false
}

// recruit asks further peers for the snapshot of the same rounds, until enough of
// them are sources. Each joiner has an order of its own, so that many who come at
// once do not all ask the same. Guests are asked where nobody else is left: their chunks are those of the manifest, or a
// fault. Else the only member that is there could keep everybody out with wrong chunks, though guests have the right ones.
func (s *snapshot) recruit() {
	sources := 0
	var others, guests []*peers.Peer
	for _, p := range s.List {
		useful, asked := s.transfer.recruits[p.ID]
		switch {
		case !s.hasTips(p):
		case useful:
			sources++
		case asked:
		case s.Guest(p.ID):
			guests = append(guests, p)
		default:
			others = append(others, p)
		}
	}
	if sources == 0 && len(others) == 0 {
		others = guests
	}
	slices.SortFunc(others, func(p, q *peers.Peer) int {
		a, b := s.lot(p.ID), s.lot(q.ID)
		return bytes.Compare(a[:], b[:])
	})
	for _, p := range others[:min(len(others), max(0, maxSnapshotSources-sources))] {
		s.askSnapshot(p)
	}
}

// lot is the place of a peer in this node's order.
func (s *snapshot) lot(id wire.PeerID) wire.Digest {
	return wire.Sum(append(s.cfg.Self[:], id[:]...))
}

// askSnapshot asks a peer for the snapshot as well.
func (s *snapshot) askSnapshot(p *peers.Peer) {
	s.transfer.recruits[p.ID] = true
	s.askMore(p, s.resume, func(m wire.Manifest, err error) {
		s.transfer.recruits[p.ID] = false
		if err == nil {
			s.recordChunks(p.ID, m)
		}
		s.pump()
	})
}

// askMore asks a peer for its snapshot beside the one that is fetched. Nothing comes of an answer to an earlier attempt.
func (s *snapshot) askMore(p *peers.Peer, at []uint32, answered func(m wire.Manifest, err error)) {
	attempt := s.attempt
	s.Call(p.ID, wire.Request{Kind: wire.GetSnapshot, At: at}, s.mostManifest(), s.snapshotMs(), func(b []byte, err error) {
		if attempt != s.attempt {
			return
		}
		m, err := s.open(p, b, err)
		answered(m, err)
	})
}

// pump asks for as many chunks as may be in flight.
func (s *snapshot) pump() {
	t := &s.transfer
	if t.missing == 0 {
		s.done()
		return
	}
	s.recruit()
	s.renew()
	for t.chunks[t.first].state == chunkStored {
		t.first++
	}
	blocked := -1 // the fragment whose sources all have enough to do
	room := s.disk.Allows(s.Now, s.mostCalls()) - s.flying()
	for i := t.first; i < len(t.chunks) && room > 0; i++ {
		c := &t.chunks[i]
		if c.state != chunkMissing || c.fragment == blocked {
			continue
		}
		p, left := s.pick(c)
		switch {
		case p != nil:
			s.askChunk(i, p)
			room--
		case left:
			blocked = c.fragment
		default:
			s.another("nobody left has the snapshot of these rounds")
			return
		}
	}
	if s.still() {
		s.another(fmt.Sprintf("no chunk came for %d s", (s.Now-t.progress)/1000))
	}
}

// pick returns the peer to ask for c. Among the peers that have it and may be
// asked for more it takes the one with the fewest chunks in flight, and the
// source on a tie. left is false if no peer has c or will have it.
func (s *snapshot) pick(c *chunk) (best *peers.Peer, left bool) {
	if c.tries >= maxChunkTries {
		return nil, false
	}
	for _, p := range s.List {
		n, answered := s.transfer.holds[holding{p.ID, c.fragment}]
		if !s.Usable(p) || answered && c.index >= n {
			continue
		}
		left = left || s.transfer.recruits[p.ID]
		if n == 0 || s.Now < snapshotOf(p).after || snapshotOf(p).calls >= chunksAhead(p) || s.stalled(p) {
			continue
		}
		if best == nil || snapshotOf(p).calls < snapshotOf(best).calls || snapshotOf(p).calls == snapshotOf(best).calls && p.ID == s.source {
			best = p
		}
	}
	return best, left
}

// mostCalls is how many chunks may be asked for at once: no more than a capped downlink
// carries soon.
func (e *env) mostCalls() int {
	if e.cfg.DownMs == 0 {
		return maxChunkCalls
	}
	return min(max(int(e.cfg.DownMs*fetch.DownAheadMs/wire.ChunkSize), fetch.MinDownCalls), maxChunkCalls)
}

// chunksAhead is how many chunks may be asked of p at once. They wait there, so
// its link is not idle while an answer and the next request travel. Where a chunk takes seconds, a round trip is little,
// and one is asked for alone.
func chunksAhead(p *peers.Peer) int {
	if float64(p.Rate)*chunkAloneMs < wire.ChunkSize {
		return 1
	}
	return min(minChunkAhead+int(float64(p.Rate)*chunkAheadMs/wire.ChunkSize), serve.MaxChunkAhead)
}

// stalled reports whether p owes chunks and nothing of it came for long.
func (s *snapshot) stalled(p *peers.Peer) bool {
	return snapshotOf(p).calls > 0 && s.Now > snapshotOf(p).lastAt+s.chunkTimeout(p)
}

// chunkTimeout is how long p may take for a chunk. While its rate is a guess it may send as slowly as all who send together,
// where the link of this node is the thin one.
func (s *snapshot) chunkTimeout(p *peers.Peer) int64 {
	chunks := 1
	if guessed(p) {
		chunks = s.senders()
	}
	return min(max(stallMs, p.Rate.TransferMs(chunks*wire.ChunkSize)), mostChunkMs)
}

// guessed reports whether nothing of p was measured yet.
func guessed(p *peers.Peer) bool { return !snapshotOf(p).measured && !fetch.Measured(p) }

// senders is how many peers owe chunks.
func (s *snapshot) senders() (n int) {
	for _, p := range s.List {
		n += peers.BoolRank(snapshotOf(p).calls > 0)
	}
	return n
}

// comes reports whether what p owes may still be on its way.
func (s *snapshot) comes(p *peers.Peer) bool { return s.Usable(p) && !s.stalled(p) }

// flying counts the requests that may bring something: who is still must not take the places of others.
func (s *snapshot) flying() (n int) {
	for _, f := range s.chunkCalls {
		n += peers.BoolRank(s.comes(f.by))
	}
	return n
}

// makeRoom ends the oldest request of a peer that is still where no more may be in flight.
func (s *snapshot) makeRoom() {
	if len(s.chunkCalls) < maxChunkCalls {
		return
	}
	s.reclaim() // or nobody else would be asked for what that peer owes
	if i := slices.IndexFunc(s.chunkCalls, func(f chunkCall) bool { return !s.comes(f.by) }); i >= 0 {
		s.HangUp(s.chunkCalls[i].id)
	}
}

// still reports whether nothing came from anybody for so long that the manifest is to be taken anew.
func (s *snapshot) still() bool {
	long := int64(progressMs)
	for _, f := range s.chunkCalls {
		if s.comes(f.by) {
			long = max(long, s.chunkTimeout(f.by))
		}
	}
	return s.Now > s.transfer.progress+long
}

// reclaim lets chunks be asked of others whose peer is gone or still. If it
// sends them after all they are welcome.
func (s *snapshot) reclaim() {
	for i := range s.transfer.chunks {
		c := &s.transfer.chunks[i]
		if c.state == chunkAsked && !s.comes(c.by) {
			c.state = chunkMissing
		}
	}
}

func (s *snapshot) askChunk(i int, p *peers.Peer) {
	c := &s.transfer.chunks[i]
	c.state, c.by = chunkAsked, p
	c.tries++
	if snapshotOf(p).calls == 0 {
		snapshotOf(p).lastAt = s.Now
	}
	snapshotOf(p).calls++
	s.makeRoom()
	request := wire.Request{Kind: wire.GetChunk, Digest: c.digest}
	f := chunkCall{digest: c.digest, size: c.size, by: p}
	takes := min(p.Rate.TransferMs((len(s.chunkCalls)+1)*wire.ChunkSize), 2*mostChunkMs)
	f.id = s.Call(p.ID, request, request.Kind.MaxResponse(), max(chunkCallMs, takes), func(b []byte, err error) {
		if errors.Is(err, effect.ErrHungUp) {
			s.hungUp(f)
			return
		}
		s.ended(f)
		if err == nil {
			s.measure(p, len(b))
		}
		snapshotOf(p).lastAt = s.Now
		s.landed(f, b, err)
	})
	s.chunkCalls = append(s.chunkCalls, f)
}

// ended forgets a request.
func (s *snapshot) ended(f chunkCall) {
	snapshotOf(f.by).calls--
	s.chunkCalls = slices.DeleteFunc(s.chunkCalls, func(other chunkCall) bool { return other.id == f.id })
}

// hungUp forgets a request that was ended here. What its peer was asked for next begins to leave, but one that was still
// is left alone for a while.
func (s *snapshot) hungUp(f chunkCall) {
	p := f.by
	if s.stalled(p) {
		snapshotOf(p).after = s.Now + stallMs
	}
	if oldest := slices.IndexFunc(s.chunkCalls, func(other chunkCall) bool { return other.by == p }); oldest >= 0 && s.chunkCalls[oldest].id == f.id {
		snapshotOf(p).lastAt = s.Now
	}
	s.ended(f)
}

// measure takes a chunk of so many bytes into what p is known to send, with the time for which it waited there. The first
// one takes the place of a guess, which a thin link would have to make up for over many.
func (s *snapshot) measure(p *peers.Peer, bytes int) {
	if p.Sampled(bytes, s.Now-snapshotOf(p).lastAt, guessed(p)) {
		snapshotOf(p).measured = true
	}
}

// landed takes what came of a request. What comes between two attempts is kept for the next.
func (s *snapshot) landed(f chunkCall, b []byte, err error) {
	came := len(b)
	if err == nil {
		b, _ = s.cfg.Unpack(b, f.size) // what does not unpack is not the chunk
	}
	good := err == nil && wire.CheckChunk(f.size, f.digest, b) == nil
	if err == nil && !good {
		s.isWrong(f.by, fmt.Sprintf("%d bytes that are not chunk %v", came, f.digest))
	}
	i, listed := s.transfer.at[f.digest]
	switch {
	case s.stage != fetching || !listed:
		if good && s.busy() {
			s.hangUpChunks(func(other chunkCall) bool { return other.digest == f.digest })
			s.Emit(StoreChunk{Digest: f.digest, Bytes: b})
		}
		return
	case !good:
		s.missed(&s.transfer.chunks[i], f.by, err)
	case s.transfer.chunks[i].state != chunkStored:
		s.keep(&s.transfer.chunks[i], f.by, b)
	}
	s.pump()
}

// missed says that p did not give a chunk. Without err it gave something else.
func (s *snapshot) missed(c *chunk, p *peers.Peer, err error) {
	if c.state == chunkAsked && c.by == p {
		c.state = chunkMissing
	}
	switch {
	case err == nil:
		s.drop(p.ID)
	case errors.Is(err, wire.ErrBusy):
		c.tries--
		snapshotOf(p).after = s.Now + fetch.BusyRetryMs
	case errors.Is(err, wire.ErrNotFound), errors.Is(err, wire.ErrRefused):
		c.tries--
		s.transfer.holds[holding{p.ID, c.fragment}] = 0
	default:
		snapshotOf(p).after = s.Now + fetch.BusyRetryMs
	}
}

// keep stores a verified chunk. Nobody else needs to send it any more.
func (s *snapshot) keep(c *chunk, p *peers.Peer, b []byte) {
	t := &s.transfer
	c.state = chunkStored
	t.missing--
	t.have += int64(c.size)
	t.gave[p.ID] = true
	t.progress = s.Now
	if !snapshotOf(p).wrong {
		s.came, s.lacks = s.Now, ""
	}
	s.hangUpChunks(func(f chunkCall) bool { return f.digest == c.digest })
	s.Emit(StoreChunk{Digest: c.digest, Bytes: b})
}

// chunkNotStored says that the own disk could not take a chunk.
func (s *snapshot) chunkNotStored(id wire.Digest) {
	t := &s.transfer
	i, listed := t.at[id]
	if !listed || t.chunks[i].state != chunkStored {
		return // of an earlier fetch, or the last one: then the snapshot cannot be put together
	}
	c := &t.chunks[i]
	c.state = chunkMissing
	t.missing++
	t.have -= int64(c.size)
	t.first = min(t.first, i)
	s.disk.Failed(s.Now)
	t.progress = s.disk.Until // nobody else is to blame
}
