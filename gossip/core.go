package gossip

import (
	"errors"

	"atoll/gossip/fetch"
	"atoll/gossip/headers"
	"atoll/gossip/limit"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/serve"
	"atoll/gossip/wire"
)

// Core is the sans-IO core of spreading for one node. It is not safe for
// concurrent use: one loop feeds it inputs and executes its effects.
type Core struct {
	env     *env
	peers   *peers.Peers
	headers *headers.Headers
	fetch   *fetch.Fetch

	certificates certificates
	snapshot     snapshot
	repair       repair
	audit        audit
	own          own
	serve        *serve.Serve
	history      history
	blobs        blobs
	visitors     visitors
}

// New returns a core that knows nobody yet. cfg must pass Validate. chain is
// read during inputs only.
func New(cfg Config, chain Chain) *Core {
	e, peers := newEnv(cfg.withDefaults(), chain)
	c := &Core{env: e, peers: peers}
	c.headers = headers.New(e.Table, headers.Bounds{MaxPayload: e.cfg.MaxPayload, WindowAccept: e.cfg.WindowAccept, WindowUnion: e.cfg.WindowUnion}, chain)
	c.fetch = fetch.New(e.Table, e.heartbeats, fetch.Config{SweepMs: e.cfg.SweepMs, DownMs: e.cfg.DownMs, Final: e.final, Ended: c.fetchEnded})
	c.certificates = certificates{env: e, asked: map[wire.PeerID]Time{}, waiting: map[wire.PeerID][]member.Stranger{}}
	c.snapshot = snapshot{env: e, tried: map[wire.PeerID]Time{}, resume: e.cfg.Resume}
	c.repair = repair{env: e, certificates: &c.certificates, headers: c.headers, fetch: c.fetch, snapshot: &c.snapshot, weighed: map[wire.PeerID]*wire.Heartbeat{}}
	c.audit = audit{env: e}
	c.own = own{env: e, history: &c.history, asked: map[wire.PeerID]bool{}, told: map[wire.PeerID]bool{}, came: map[wire.PeerID]bool{}}
	c.history = history{env: e, certificates: &c.certificates, repair: &c.repair, fetch: c.fetch, snapshot: &c.snapshot}
	c.visitors = visitors{}
	c.blobs = blobs{env: e, held: map[wire.Digest]wire.PartSet{}, given: map[wire.Digest][]gifts{}}
	c.serve = serve.New(e.Table, e.heartbeats, serve.Config{
		WindowAccept: e.cfg.WindowAccept, ManifestMs: e.snapshotMs(), UnionBase: e.unionBase, PeerList: c.peers.ListFor,
	}, chain, c.headers, c.fetch, &c.blobs)
	return c
}

// newNotes are what the machines beside the table of peers keep of a peer that is new.
func newNotes() []any {
	var n struct {
		fetch    fetch.Peer
		serve    serve.Peer
		blobs    blobPeer
		snapshot snapshotPeer
		repair   repairPeer
		audit    auditPeer
		own      ownPeer
	}
	return []any{&n.fetch, &n.serve, &n.blobs, &n.snapshot, &n.repair, &n.audit, &n.own}
}

// bulk reports whether bulk of a peer is on its way, or for it.
func bulk(p *peers.Peer) bool { return snapshotOf(p).calls > 0 || serve.Owes(p) }

// Effects returns the effects queued since it was last called, in order.
func (c *Core) Effects() []Effect { return c.env.Take() }

// at sets the time of an input. A clock that goes back is held.
func (c *Core) at(now Time) { c.env.At(now) }

// Tick lets time pass: heartbeats, deadlines, retries. A few times per heartbeat period
// is enough.
func (c *Core) Tick(now Time) {
	c.at(now)
	c.env.ExpireCalls()
	c.peers.Tick()
	c.fetch.Tick()
	c.repair.tick()
	c.snapshot.tick()
	c.own.tick()
	c.serve.Tick()
	c.history.tick()
	c.blobs.tick()
	c.visitors.tick(c.env)
	if c.env.cfg.Limiter != nil {
		perSecond, bytes := c.peers.Heartbeats.Fit()
		c.env.cfg.Limiter.Tick(c.env.Now, c.env.Begun(), c.peers.Heartbeats.Closed(), limit.Fit{Heartbeats: perSecond, Bytes: bytes})
	}
}

// SetSelf sets what the next heartbeat says about this node.
func (c *Core) SetSelf(now Time, s SelfState) {
	c.at(now)
	c.peers.Heartbeats.Set(s)
}

// HeartbeatSoon sends a heartbeat at once, or when the last heartbeat is a part of a period old.
func (c *Core) HeartbeatSoon(now Time) {
	c.at(now)
	c.peers.Heartbeats.Soon()
}

// HeartbeatNow sends a heartbeat at once, as the state changed.
func (c *Core) HeartbeatNow(now Time) {
	c.at(now)
	c.peers.Heartbeats.Send()
}

// Announce publishes this node's own delta, whose header and payload are
// durable already.
func (c *Core) Announce(now Time, s wire.SignedHeader, payload []byte) {
	c.at(now)
	if id := s.Header.ID(c.env.cfg.Run); c.headers.Find(id) == nil {
		c.headers.Add(id, &s)
	}
	if len(payload) > wire.MaxInline {
		c.fetch.Published(len(payload))
		payload = nil
	}
	c.env.Emit(Publish{Bytes: wire.EncodeHeader(s, payload)})
}

// Why a thing that came is not in place.
var (
	// ErrNotStored says that this node's disk could not take it. Nobody is to blame.
	ErrNotStored = errors.New("could not be stored")
	// ErrUnwanted says that the outer side has no use for it, now or for good.
	// Nobody is to blame.
	ErrUnwanted = errors.New("no use for it")
)

// Complete says what became of the delta of id.
//
//   - nil: its payload is verified and held; it is served from now on.
//   - ErrNotStored: its payload came and could not be kept. It is missing, for now:
//     repair finds it again. Few others are fetched until the disk may have recovered.
//   - ErrUnwanted: its payload is not fetched, and a repair that waits for it goes on,
//     and catches up, without.
//   - any other error: its payload has the right hash and does not decode. It is
//     neither served nor fetched again, and its author is marked.
func (c *Core) Complete(now Time, id wire.Digest, err error) {
	c.at(now)
	switch {
	case err == nil:
		c.serve.Held()
		c.fetch.Stored(id)
	case errors.Is(err, ErrUnwanted):
		c.fetch.Useless(id)
	case errors.Is(err, ErrNotStored):
		c.fetch.NotStored(id)
	default:
		c.invalid(id, err.Error())
		c.fetch.Invalid(id)
	}
}

func (c *Core) invalid(id wire.Digest, reason string) {
	if v := c.headers.Find(id); v != nil {
		v.Invalid = reason
		c.env.Misbehaved(v.Header.Header.Author, "payload does not decode: "+reason)
	}
}

// fetchEnded tells those that wait for a payload that this node has it, or that it is
// not going to.
func (c *Core) fetchEnded(id wire.Digest, how fetch.Outcome) {
	if how != fetch.Held {
		c.serve.Missing(id)
	}
	c.repair.completed(id, how)
}

// FetchSnapshot begins to fetch a snapshot: from a peer named in the link if one
// is connected, else from the one with the most folded tokens. It goes on,
// from one snapshot source to the next, until a Snapshot effect or CancelFetch; in a node
// that is past joining, until every snapshot source was asked once.
func (c *Core) FetchSnapshot(now Time) {
	c.at(now)
	c.snapshot.fetch(wire.PeerID{}, false)
}

// CancelFetch ends a snapshot fetch. What is stored helps the next.
func (c *Core) CancelFetch(now Time) {
	c.at(now)
	c.snapshot.cancel()
}

// Installed says what became of the last Snapshot. Until then the
// rounds of this node are about to change as a whole, and no repair begins.
//
//   - nil: it is in place. Common are the rounds up to which it is of the chain that
//     this node had, by fragment.
//   - ErrNotStored: this node could not keep it, or all of its chunks. A later fetch
//     goes on where this one was, not before the disk may have recovered.
//   - any other error: it does not fit the run. Other sources are asked before its own.
func (c *Core) Installed(now Time, common []uint32, err error) {
	c.at(now)
	switch {
	case err == nil:
		c.peers.Heartbeats.Rebase(common)
		c.snapshot.installed()
		c.history.installed()
	case errors.Is(err, ErrNotStored):
		c.snapshot.notStored()
	default:
		c.snapshot.refused()
	}
}

// ChunkNotStored says that the chunk of a StoreChunk could not be kept. It is
// fetched again.
func (c *Core) ChunkNotStored(now Time, id wire.Digest) {
	c.at(now)
	c.snapshot.chunkNotStored(id)
}

// AskOwn asks every peer for the newest own deltas that it knows, and goes on with
// peers that appear before OwnKnown. With any, answers of peers that hold nothing
// of the run are enough, as at the start of a run.
func (c *Core) AskOwn(now Time, any bool) {
	c.at(now)
	c.own.wanted, c.own.any = true, any
}

// AwaitsOwn reports whether a peer may know own deltas that nobody has named yet: a
// peer that is here, or a silent one that took part in the run.
func (c *Core) AwaitsOwn() bool { return c.own.awaits() }

// Compare starts a repair at once, without waiting for heartbeats: a joiner that installed
// a snapshot fetches what came since. If id is zero, it compares with the live peer that
// has folded the most.
func (c *Core) Compare(now Time, id wire.PeerID) {
	c.at(now)
	p := c.env.Find(id)
	if id == (wire.PeerID{}) {
		p = c.foremost()
	}
	if p != nil {
		c.repair.begin(p)
	}
}

// foremost is the live peer that has folded the most, nil if there is none.
func (c *Core) foremost() (best *peers.Peer) {
	for _, p := range c.env.List {
		if c.env.Usable(p) && c.env.Live(p) && p.Refused == "" && (best == nil || p.Folded() > best.Folded()) {
			best = p
		}
	}
	return best
}

// Contributed says that a delta of an author was folded.
func (c *Core) Contributed(author wire.PeerID) {
	if c.env.cfg.Limiter != nil {
		c.env.cfg.Limiter.Contributed(author)
	}
}

// knows tells the limiter, if there is one, that an author is more than a key.
func (e *env) knows(author wire.PeerID) {
	if e.cfg.Limiter != nil {
		e.cfg.Limiter.Know(author)
	}
}
