package gossip

import (
	"fmt"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/fetch"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// snapshot fetches a whole snapshot. It gets a manifest from one snapshot source, asks other
// peers about its rounds (attest.go), and fetches the chunks from every peer
// that can make the same snapshot (chunks.go).
type snapshot struct {
	*env
	stage      stage
	prefer     wire.PeerID          // the source to ask first, zero for none
	only       bool                 // ask no other: they are on other chains
	tried      map[wire.PeerID]Time // sources asked recently: others come first
	began      Time                 // when this fetch did
	after      Time                 // not before: pause between sources
	attempt    int                  // counts manifests; answers to an earlier one are ignored, but chunks
	came       Time                 // when the last chunk came of a peer that proved nothing wrong
	lacks      string               // why the last source gave nothing; "" since something came
	disputes   int                  // manifests of this fetch that were spoken against
	took       Time                 // when a snapshot was last put in place; 0: digests were equal since
	resume     []uint32             // rounds of the snapshot whose chunks are stored, nil for none
	disk       fetch.Disk
	source     wire.PeerID
	asks       []uint64 // requests for a manifest that await an answer: of several sources the first to answer counts
	asked      Time     // when the last one was sent
	manifest   wire.Manifest
	ballot     ballot
	transfer   transfer
	chunkCalls []chunkCall // chunks asked for, in the order in which they were
}

type stage uint8

const (
	idle       stage = iota
	choosing         // wants a source
	asking           // awaits the manifest
	attesting        // awaits what others know of it
	fetching         // awaits chunks
	installing       // all chunks are stored: awaits Installed
)

func (s *snapshot) busy() bool { return s.stage != idle }

// fetch begins, unless a fetch is under way. prefer is asked first, or alone;
// zero leaves the choice to the peer list.
func (s *snapshot) fetch(prefer wire.PeerID, only bool) {
	if s.busy() {
		return
	}
	s.stage, s.prefer, s.only = choosing, prefer, only
	s.began, s.after, s.disputes = s.Now, max(s.Now, s.disk.Until), 0
	if only {
		delete(s.tried, prefer)
	}
	s.tick()
}

// cancel forgets the fetch. Stored chunks remain for the next.
func (s *snapshot) cancel() {
	s.stage = idle
	s.attempt++
	s.hangUpChunks(func(chunkCall) bool { return true })
}

// installed says that the snapshot is in place.
func (s *snapshot) installed() {
	if s.stage == installing {
		s.stage, s.resume = idle, nil
		s.took = s.Now
	}
}

// fresh reports whether the snapshot that this node took is still to be brought up
// to date: it has not shown the digests of any peer since.
func (s *snapshot) fresh() bool { return s.took > 0 && s.Now < s.took+repairTtlMs }

// equal says that this node shows the digests of a peer.
func (s *snapshot) equal() { s.took = 0 }

// refused says that the snapshot could not be put in place: its source comes after
// all others from now on.
func (s *snapshot) refused() {
	if p := s.Find(s.source); p != nil {
		snapshotOf(p).badSnapshots++
		snapshotOf(p).wrong = true
	}
	s.resume, s.lacks = nil, "its snapshot does not fit this run"
	s.cancel()
}

// notStored says that the own disk could not take the snapshot.
func (s *snapshot) notStored() {
	delete(s.tried, s.source)
	s.disk.Failed(s.Now)
	s.cancel()
}

// gone takes the loss of the last connection to a peer.
func (s *snapshot) gone(id wire.PeerID) {
	if s.stage == fetching {
		s.reclaim()
		s.pump()
	}
}

func (s *snapshot) tick() {
	if s.Paused {
		return
	}
	switch s.stage {
	case choosing:
		s.choose()
	case asking:
		s.askOneMore()
	case attesting:
		s.count()
	case fetching:
		s.reclaim()
		s.pump()
	}
}

// choose asks the best source that was not tried recently, each in turn. After all of them
// a joiner begins again. A node that has a snapshot gives up, as nothing is repaired meanwhile;
// it may be told to fetch again.
func (s *snapshot) choose() {
	if s.Now < s.after || s.gathers() {
		return
	}
	p := s.best()
	if p == nil && s.only {
		s.Event(EventSnapshot, s.prefer, "gives up on this snapshot: repair will look again")
	}
	if p == nil && (s.only || !s.heartbeats.Joining()) {
		s.cancel()
		return
	}
	if p == nil {
		clear(s.tried)
		s.after = s.Now + snapshotRetryMs
		return
	}
	s.tried[p.ID] = s.Now
	s.askManifest(p)
}

// gathers reports whether to wait for more peers: none of the link is here, and
// too few others to attest what one of them shows.
func (s *snapshot) gathers() bool {
	if s.only || s.Now >= s.began+gatherHeartbeats*s.HeartbeatPeriod() {
		return false
	}
	witnesses := 0
	for _, p := range s.List {
		if s.isSource(p) && s.Trusts(p.ID) {
			return false
		}
		if s.isSource(p) && p.Heartbeat != nil {
			witnesses++
		}
	}
	return witnesses < minAttesters
}

// isSource reports whether p can be asked for its snapshot. Those of guests may be invented, and nobody would vouch for them.
func (s *snapshot) isSource(p *peers.Peer) bool { return !s.Guest(p.ID) && s.hasTips(p) }

// hasTips reports whether p may have tips of the run to give.
func (s *snapshot) hasTips(p *peers.Peer) bool {
	return s.Usable(p) && !p.Pauses() && !p.Record().Stateless && (p.Heartbeat == nil || p.Heartbeat.State != wire.Joining)
}

// mayGive reports whether p, as far as is known, has a snapshot for a joiner that it may yet give: it is connected, or heard, and is
// past joining itself or has folded something. One that proved wrong may not. Nor may one that is a mere key, once nothing
// of anybody has come for so long.
func (s *snapshot) mayGive(p *peers.Peer) bool {
	if s.Guest(p.ID) || snapshotOf(p).wrong || !s.Known(p.ID) && s.Now >= max(s.came, s.began)+strangerMs {
		return false
	}
	heard := p.Heartbeat != nil && !p.Silent && (p.Heartbeat.State != wire.Joining || p.Heartbeat.Folded > 0)
	return heard || s.hasTips(p) && s.Known(p.ID)
}

func (s *snapshot) best() *peers.Peer {
	var best *peers.Peer
	for _, p := range s.List {
		if !s.isSource(p) || s.only && p.ID != s.prefer {
			continue
		}
		if at, ok := s.tried[p.ID]; ok && s.Now < at+triedMs {
			continue
		}
		if best == nil || s.better(p, best) {
			best = p
		}
	}
	return best
}

// better prefers the named source, then sources whose snapshot was never refused, then peers of the
// link, then those that the peer list dialled, then more folded tokens, then the smaller id.
func (s *snapshot) better(p, q *peers.Peer) bool {
	if named := p.ID == s.prefer; named != (q.ID == s.prefer) {
		return named
	}
	if snapshotOf(p).badSnapshots != snapshotOf(q).badSnapshots {
		return snapshotOf(p).badSnapshots < snapshotOf(q).badSnapshots
	}
	if trusted := s.Trusts(p.ID); trusted != s.Trusts(q.ID) {
		return trusted
	}
	if chosen := p.Chosen(); s.heartbeats.Joining() && chosen != q.Chosen() {
		return chosen
	}
	return p.Folded() > q.Folded()
}

// askManifest asks p for its snapshot. If chunks of some snapshot are stored already it asks for
// that one first.
func (s *snapshot) askManifest(p *peers.Peer) {
	s.stage, s.source, s.transfer = asking, p.ID, transfer{}
	s.attempt++
	s.asks = nil
	s.askFor(p)
}

// askOneMore asks another source as well where those asked take their time: one that never answers
// must not keep a joiner out for long.
func (s *snapshot) askOneMore() {
	if s.only || s.Now < s.asked+anotherSourceMs {
		return
	}
	if p := s.best(); p != nil {
		s.tried[p.ID] = s.Now
		s.askFor(p)
	}
}

func (s *snapshot) askFor(p *peers.Peer) {
	s.asked = s.Now
	if s.resume == nil {
		s.Event(EventSnapshot, p.ID, "asks for the snapshot")
		s.askSource(p, wire.Request{Kind: wire.GetManifest})
		return
	}
	s.Event(EventSnapshot, p.ID, "asks for the snapshot whose chunks are stored")
	s.askSource(p, wire.Request{Kind: wire.GetSnapshot, At: s.resume})
}

func (s *snapshot) askSource(p *peers.Peer, q wire.Request) {
	attempt := s.attempt
	var call uint64
	call = s.Call(p.ID, q, s.mostManifest(), s.snapshotMs(), func(b []byte, err error) {
		s.asks = slices.DeleteFunc(s.asks, func(id uint64) bool { return id == call })
		if attempt != s.attempt {
			return
		}
		m, err := s.open(p, b, err)
		switch {
		case err == nil && (q.Kind == wire.GetManifest || s.resumes(m)):
			s.source, s.manifest = p.ID, m
			s.attempt++
			for _, other := range slices.Clone(s.asks) {
				s.HangUp(other)
			}
			s.attest()
		case q.Kind == wire.GetSnapshot && s.Usable(p):
			s.resume = nil
			s.askFor(p)
		case len(s.asks) == 0:
			s.source = p.ID
			s.another(fmt.Sprintf("no manifest: %v", err))
		}
	})
	s.asks = append(s.asks, call)
}

// mostManifest is the longest answer to a request for a snapshot of this run, status included. So a peer of a
// run of small tips cannot have a node read what a run of large ones may need.
func (s *snapshot) mostManifest() int {
	return len(wire.Response{Status: wire.OK}.Encode()) + wire.ManifestSize(s.chain.Fragments(), s.cfg.MaxTip)
}

// snapshotMs is the time for an answer to a request for a snapshot: its source hashes all of it first.
func (e *env) snapshotMs() int64 {
	return int64(min(effect.CallMs+float64(e.cfg.SnapshotBytes)/snapshotBytesMs, mostSnapshotMs))
}

// open takes an answer to a request for a snapshot. What no honest peer sends is held
// against it.
func (s *snapshot) open(p *peers.Peer, b []byte, err error) (wire.Manifest, error) {
	if err != nil {
		return wire.Manifest{}, err
	}
	m, err := wire.OpenManifest(s.cfg.Run, b)
	switch {
	case err != nil:
	case m.Author != p.ID:
		err = fmt.Errorf("%w: manifest of %v, asked %v", wire.ErrInvalid, m.Author, p.ID)
	case len(m.Fragments) != s.chain.Fragments():
		err = fmt.Errorf("%w: manifest with %d fragments in a run of %d", wire.ErrInvalid, len(m.Fragments), s.chain.Fragments())
	default:
		err = s.sized(m)
	}
	if err != nil {
		s.isWrong(p, err.Error())
	}
	return m, err
}

// isWrong notes a proof that p gives something else than a snapshot of the run.
func (s *snapshot) isWrong(p *peers.Peer, how string) {
	snapshotOf(p).wrong = true
	s.Misbehaved(p.ID, how)
}

// sized refuses tips that are larger than this run's can be, before anything of them is
// fetched.
func (s *snapshot) sized(m wire.Manifest) error {
	for f, fm := range m.Fragments {
		if fm.Size > s.cfg.MaxTip {
			return fmt.Errorf("%w: tip of fragment %d with %d bytes, at most %d in this run", wire.ErrInvalid, f, fm.Size, s.cfg.MaxTip)
		}
	}
	return nil
}

// resumes reports whether a manifest has all the tips whose chunks are stored, and none
// so old that newer tips are the shorter way.
func (s *snapshot) resumes(m wire.Manifest) bool {
	for f, fm := range m.Fragments {
		if f >= len(s.resume) || fm.Round != s.resume[f] || fm.Round > 0 && fm.Size == 0 {
			return false
		}
		if fm.Closed-fm.Round > s.cfg.WindowAccept {
			return false
		}
	}
	return true
}

// another pauses and chooses again.
func (s *snapshot) another(why string) {
	s.Event(EventSnapshot, s.source, "another snapshot source: "+why)
	if len(s.transfer.gave) == 0 {
		s.lacks = why
	}
	s.stage, s.after = choosing, s.Now+snapshotRetryMs
	s.attempt++
}

// genesisOnly reports whether a manifest says that nothing was folded yet.
func genesisOnly(m wire.Manifest) bool {
	return !slices.ContainsFunc(m.Fragments, func(f wire.FragmentManifest) bool { return f.Round > 0 })
}

// done hands up the manifest: every chunk of it is stored, so nothing is asked for any more.
func (s *snapshot) done() {
	s.hangUpChunks(func(chunkCall) bool { return true })
	s.stage = installing
	if genesisOnly(s.manifest) {
		s.stage, s.resume = idle, nil // there is nothing to install
	}
	s.attempt++
	s.Emit(Snapshot{Manifest: s.manifest, Source: s.source})
	t := &s.transfer
	s.Event(EventSnapshot, s.source, fmt.Sprintf("all %d bytes stored, from %d peers", t.total, len(t.gave)))
	s.transfer = transfer{}
}

// search says what is missing before a source is asked.
func (s *snapshot) search() string {
	if s.Paused {
		return "paused before it has the run's snapshot"
	}
	if s.onlyGuests() {
		return "only guests of the run are here, and their snapshot may be invented: waits for a member"
	}
	if s.gathers() {
		return "no peer of the link is here: waits for others that can attest a snapshot"
	}
	return "looks for a snapshot source"
}

// onlyGuests reports whether peers are here, and only guests among those that could give a snapshot.
func (s *snapshot) onlyGuests() bool {
	guests := false
	for _, p := range s.List {
		switch {
		case s.isSource(p):
			return false
		case s.Usable(p) && s.Guest(p.ID):
			guests = true
		}
	}
	return guests
}

// phase describes the fetch for people, and the share that is done.
func (s *snapshot) phase() (string, float64) {
	switch s.stage {
	case asking:
		return fmt.Sprintf("asking %v for its snapshot", s.source), 0
	case attesting:
		return "asking others about this snapshot: " + s.ballot.String(), 0
	case fetching:
		return s.transfer.String(), s.transfer.share()
	case installing:
		return "putting the snapshot together", 1
	}
	return "", 0
}
