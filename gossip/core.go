package gossip

import (
	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// Core is the sans-IO core of spreading for one node. It is not safe for
// concurrent use: one loop feeds it inputs and carries out its effects.
type Core struct {
	*env
	roster   roster
	beats    beats
	evidence evidence
	headers  headers
	pull     pull
	snapshot snapshot
	repair   repair
	audit    audit
	own      own
	serve    serve
	history  history
	memo     learners
}

// New returns a core that knows nobody yet. cfg must pass Validate. chain is
// read during inputs only.
func New(cfg Config, chain Chain) *Core {
	e := &env{cfg: cfg.withDefaults(), chain: chain, peers: peers{byID: map[wire.PeerID]*peer{}}, common: make([]uint32, chain.Fragments())}
	copy(e.common, cfg.Common)
	c := &Core{env: e}
	c.roster = roster{env: e}
	c.beats = beats{env: e}
	c.memo = learners{env: e}
	c.evidence = newEvidence(e)
	c.headers = headers{env: e, seen: newSeen(), evidence: &c.evidence}
	c.pull = newPull(e)
	c.snapshot = snapshot{env: e, joining: c.joining, tried: map[wire.PeerID]Time{}, resume: e.cfg.Resume}
	c.repair = repair{env: e, headers: &c.headers, pull: &c.pull, beats: &c.beats, snapshot: &c.snapshot, weighed: map[wire.PeerID]*wire.Beat{}}
	c.audit = audit{env: e}
	c.own = own{env: e, history: &c.history, asked: map[wire.PeerID]bool{}, told: map[wire.PeerID]bool{}, came: map[wire.PeerID]bool{}}
	c.history = history{env: e, repair: &c.repair, pull: &c.pull, snapshot: &c.snapshot, joining: c.joining}
	c.pull.settled = c.settled
	c.serve = serve{env: e, seen: &c.headers.seen, pull: &c.pull, roster: &c.roster, joining: c.joining}
	c.serve.donate = donate{env: e, serve: &c.serve}
	c.serve.manifests = manifests{env: e, serve: &c.serve}
	return c
}

// joining reports whether this node holds nothing yet that others may take.
func (c *Core) joining() bool {
	return c.beats.self.State == wire.Joining || c.beats.self.State == 0
}

// Effects returns the effects queued since it was last called, in order.
func (c *Core) Effects() []Effect {
	out := c.effects
	c.effects = nil
	return out
}

// at sets the time of an input. A clock that goes back is held.
func (c *Core) at(now Time) { c.now = max(c.now, now) }

// Tick lets time pass: beats, deadlines, retries. A few times per beat period
// is enough.
func (c *Core) Tick(now Time) {
	c.at(now)
	c.expireCalls()
	c.watch()
	c.beats.tick()
	c.roster.tick()
	c.pull.tick()
	c.repair.tick()
	c.snapshot.tick()
	c.own.tick()
	c.serve.tick()
	c.history.tick()
}

// PeerUp says that a connection to id is up and its handshake done: signed is
// the verified capability record, rec its content, sess what was negotiated.
func (c *Core) PeerUp(now Time, id wire.PeerID, signed hello.Signed, rec hello.Record, sess hello.Session) {
	c.at(now)
	c.roster.up(id, signed, rec, sess)
	c.pull.pump()
}

// PeerDown says that the last connection to id is gone.
func (c *Core) PeerDown(now Time, id wire.PeerID) {
	c.at(now)
	c.roster.down(id)
	c.repair.tick()
	c.snapshot.gone(id)
	c.serve.donate.gone(id)
}

// RecordChanged takes a newer record of a connected peer, verified.
func (c *Core) RecordChanged(now Time, id wire.PeerID, signed hello.Signed, rec hello.Record) {
	c.at(now)
	c.roster.changed(id, signed, rec)
}

// SetRecord sets this node's own capability record, which its roster carries.
func (c *Core) SetRecord(now Time, own hello.Signed) {
	c.at(now)
	c.roster.own = own
}

// SetSelf sets what the next beat says about this node.
func (c *Core) SetSelf(now Time, s SelfState) {
	c.at(now)
	c.beats.self = s
}

// BeatNow beats at once, as the state changed.
func (c *Core) BeatNow(now Time) {
	c.at(now)
	c.beats.send()
}

// Alive notes that a byte arrived from a peer.
func (c *Core) Alive(now Time, from wire.PeerID) {
	c.at(now)
	if p := c.peers.find(from); p != nil {
		c.hear(p)
	}
}

// Received takes a gossip message that wire.Open verified; from is the peer
// that forwarded it.
func (c *Core) Received(now Time, from wire.PeerID, m wire.Message) {
	c.Alive(now, from)
	switch {
	case m.Header != nil:
		c.header(from, m.Header, m.Inline)
	case m.Beat != nil:
		c.beat(m.Beat)
	case m.Evidence != nil:
		c.evidence.received(*m.Evidence)
	}
}

func (c *Core) beat(b *wire.Beat) {
	p := c.beats.receive(b)
	if p == nil {
		return
	}
	c.roster.said(p, b.Capability)
	if p.beats.unequal == 0 && c.live(p) {
		c.snapshot.equal()
		c.repair.equal(p)
	}
	if p.beats.stateDiffers {
		c.audit.want(p)
	}
	if p.beats.unequal >= beatsToRepair {
		c.repair.want(p)
	}
}

// header offers a new header upward and begins to fetch its payload.
func (c *Core) header(from wire.PeerID, s *wire.SignedHeader, inline []byte) {
	id, v := c.headers.meet(s)
	if v == refused || v == conflict || c.headers.old(s.Header) {
		return
	}
	if v == fresh {
		c.emit(Offer{ID: id, Header: s, From: from})
	}
	switch {
	case c.chain.Has(id) || c.headers.seen.isInvalid(id):
	case inline != nil:
		c.pull.deliver(id, s, inline)
	case v == fresh && !c.headers.farAhead(s.Header):
		c.pull.want(id, s, from)
	default:
		c.pull.source(id, from)
	}
	if p := c.peers.find(from); p != nil && c.headers.ahead(s.Header) {
		c.repair.want(p)
	}
}

// Forwarded says that a duplicate of the header of id came from another peer,
// which will have its payload.
func (c *Core) Forwarded(now Time, from wire.PeerID, id wire.Digest) {
	c.Alive(now, from)
	c.pull.source(id, from)
}

// Answered reports the outcome of a Call: the whole response, or an error.
func (c *Core) Answered(now Time, call uint64, response []byte, err error) {
	c.at(now)
	c.answered(call, response, err)
}

// Serve takes a stream request. Its answer is the one effect with its handle,
// now or later.
func (c *Core) Serve(now Time, handle uint64, from wire.PeerID, request []byte) {
	c.at(now)
	c.serve.request(handle, from, request)
}

// Replied says that the answer of a ReplyPayload, ReplyManifest or ReplyChunk has
// left, or failed to: its place goes to the next.
func (c *Core) Replied(now Time, handle uint64) {
	c.at(now)
	c.serve.replied(handle)
}

// Left says that the last byte of the answer of a ReplyManifest or ReplyChunk is
// on its way: the next one may follow it, before Replied says that the asker has
// it.
func (c *Core) Left(now Time, handle uint64) {
	c.at(now)
	c.serve.left(handle)
}

// Announce publishes this node's own delta, whose header and payload are
// durable already.
func (c *Core) Announce(now Time, s wire.SignedHeader, payload []byte) {
	c.at(now)
	if id := s.Header.ID(c.cfg.Run); c.headers.seen.find(id) == nil {
		c.headers.seen.add(id, &s)
	}
	if len(payload) > wire.MaxInline {
		payload = nil
	}
	c.emit(Publish{Bytes: wire.EncodeHeader(s, payload)})
}

// Stored says that the payload of id is verified and held: it is served from
// now on.
func (c *Core) Stored(now Time, id wire.Digest) {
	c.at(now)
	c.serve.stored(id)
	c.pull.disk.worked()
	c.pull.end(id, held)
}

// NotStored says that the payload of id came and could not be kept. It is
// missing, for now: repair finds it again. Few others are fetched until the disk
// may have recovered.
func (c *Core) NotStored(now Time, id wire.Digest) {
	c.at(now)
	c.pull.disk.failed(c.now)
	c.pull.end(id, missing)
}

// Invalid says that the payload of id has the right hash and does not decode.
// It is neither served nor fetched again, and its author is marked.
func (c *Core) Invalid(now Time, id wire.Digest, reason string) {
	c.at(now)
	if v := c.headers.seen.find(id); v != nil {
		v.invalid = reason
		c.misbehaved(v.header.Header.Author, "payload does not decode: "+reason)
	}
	c.pull.end(id, missing)
}

// settled tells those that wait for a payload that this node has it, or that it is
// not going to.
func (c *Core) settled(id wire.Digest, how outcome) {
	if how != held {
		c.serve.missing(id)
	}
	c.repair.settled(id, how)
}

// Unwanted says that the outer side has no use for a header that it was
// offered, now or for good, and that nobody is to blame: its payload is not
// fetched, and a repair that waits for it goes on, and catches up, without.
func (c *Core) Unwanted(now Time, id wire.Digest) {
	c.at(now)
	c.pull.end(id, unwanted)
}

// FetchTips begins to fetch a snapshot: from a peer named in the link if one
// is connected, else from the one with the most folded tokens. It goes on,
// from one donor to the next, until a Snapshot effect or CancelFetch; in a node
// that is past joining, until every donor was asked once.
func (c *Core) FetchTips(now Time) { c.FetchFrom(now, wire.PeerID{}) }

// FetchFrom is FetchTips with a donor to ask first.
func (c *Core) FetchFrom(now Time, donor wire.PeerID) {
	c.at(now)
	c.snapshot.fetch(donor, false)
}

// CancelFetch ends a snapshot fetch. What is stored helps the next.
func (c *Core) CancelFetch(now Time) {
	c.at(now)
	c.snapshot.cancel()
}

// Installed says that the tips of the last Snapshot are in place. Until then the
// rounds of this node are about to change as a whole, and no repair begins. If
// they could not be installed: TipsRefused or TipsNotStored. Common are the rounds up
// to which they are of the chain that this node had, by fragment.
func (c *Core) Installed(now Time, common []uint32) {
	c.at(now)
	c.beats.rebase(common)
	c.snapshot.installed()
	c.history.taken()
}

// TipsNotStored says that this node could not keep the tips of the last Snapshot,
// or all chunks of them. Nobody is to blame: a later fetch goes on where this one
// was, not before the disk may have recovered.
func (c *Core) TipsNotStored(now Time) {
	c.at(now)
	c.snapshot.notStored()
}

// ChunkNotStored says that the chunk of a StoreChunk could not be kept. It is
// fetched again.
func (c *Core) ChunkNotStored(now Time, id wire.Digest) {
	c.at(now)
	c.snapshot.chunkNotStored(id)
}

// TipsRefused says that the tips of the last Snapshot do not fit the run: other
// donors are asked before theirs.
func (c *Core) TipsRefused(now Time) {
	c.at(now)
	c.snapshot.refused()
}

// AskOwn asks every peer for the newest own deltas that it knows of, and goes on
// with those that come up until OwnKnown. any says that the answer of peers will do
// that hold nothing of the run, as where it has hardly begun.
func (c *Core) AskOwn(now Time, any bool) {
	c.at(now)
	c.own.wanted, c.own.any = true, any
}

// AwaitsOwn reports whether a peer that is here, or that is silent and took part in
// the run, may know of own deltas that nobody has told of.
func (c *Core) AwaitsOwn() bool { return c.own.awaits() }

// Compare starts a repair with a peer at once, without waiting for beats: a
// joiner that installed tips fetches what came since.
func (c *Core) Compare(now Time, id wire.PeerID) {
	c.at(now)
	if p := c.peers.find(id); p != nil {
		c.repair.begin(p)
	}
}
