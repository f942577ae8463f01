package gossip

import (
	"atoll/gossip/headers"
	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Input is one thing that the network side says to a Core, see Core.Step.
//
//sumtype:decl
type Input interface{ input() }

// Inputs about connections.
type (
	// PeerUp says that a connection to a peer is up and its handshake done: Signed is
	// the verified capability record, Record its content.
	PeerUp struct {
		Peer   wire.PeerID
		Signed hello.Signed
		Record hello.Record
		Near   bool // the peer is on this node's own network
	}

	// PeerDown says that the last connection to a peer is gone.
	PeerDown struct{ Peer wire.PeerID }

	// RecordChanged brings a newer record of a connected peer, verified.
	RecordChanged struct {
		Peer   wire.PeerID
		Signed hello.Signed
		Record hello.Record
	}

	// OwnRecord brings this node's own capability record, which its peer list carries, and
	// the one for peers of its own network, if that is another.
	OwnRecord struct{ Signed, Near, Named hello.Signed }

	// Reached says whether others reach this node by themselves. A node that never says so
	// is where all do and addresses stay.
	Reached struct{ Public bool }

	// Hinted says that somebody, who may lie, named a peer of the run and where it is.
	Hinted struct {
		Peer  wire.PeerID
		Addrs []string
	}

	// Reserved is what came of a Reserve, or says that a slot is lost.
	Reserved struct {
		Peer wire.PeerID
		OK   bool
	}
)

// Inputs that peers sent.
type (
	// Received brings a gossip message that wire.Open verified; From is the peer
	// that forwarded it.
	Received struct {
		From    wire.PeerID
		Message wire.Message
	}

	// Stranger says that From forwarded a message whose author has no certificate that is
	// known here. The message was dropped.
	Stranger struct {
		From wire.PeerID
		member.Stranger
	}

	// Forwarded says that another peer has the header of ID too: a copy came from it, or it
	// said that it wants none. It will have the payload.
	Forwarded struct {
		From wire.PeerID
		ID   wire.Digest
	}

	// Answered is the outcome of a Call: the whole response, or an error. TookMs is the
	// time from its first byte to its last, at least 1; 0 if the caller has not seen it.
	// A time from the request on would count the wait at the server as well.
	Answered struct {
		Call     uint64
		Response []byte
		Err      error
		TookMs   int64
	}

	// Requested brings a stream request. Its answer is the one effect with its
	// handle, now or later.
	Requested struct {
		Handle  uint64
		From    wire.PeerID
		Request []byte
	}
)

// Inputs about bulk answers.
type (
	// Left says that the last byte of the answer of a ReplyManifest, ReplyChunk or ReplyPart is
	// on its way. The next answer may follow it before Replied says that the asker
	// has it.
	Left struct{ Handle uint64 }

	// Replied says that the answer of a ReplyPayload, ReplyManifest, ReplyChunk or ReplyPart has
	// left, or failed to, or that the asker of a request that waits has hung up: its slot
	// goes to the next. Payload is the delta whose
	// payload left whole, or zero.
	Replied struct {
		Handle  uint64
		Payload wire.Digest
	}
)

func (PeerUp) input()        {}
func (PeerDown) input()      {}
func (RecordChanged) input() {}
func (OwnRecord) input()     {}
func (Reached) input()       {}
func (Reserved) input()      {}
func (Hinted) input()        {}
func (Received) input()      {}
func (Forwarded) input()     {}
func (Stranger) input()      {}
func (Answered) input()      {}
func (Requested) input()     {}
func (Left) input()          {}
func (Replied) input()       {}

// Step takes one input.
func (c *Core) Step(now Time, in Input) {
	c.at(now)
	switch in := in.(type) {
	case PeerUp:
		if in.Record.Visits {
			c.visited(in.Peer)
			return
		}
		delete(c.visitors, in.Peer)
		c.peers.Up(in.Peer, in.Signed, in.Record, in.Near)
		c.fetch.Pump()
	case PeerDown:
		delete(c.visitors, in.Peer)
		c.peerDown(in.Peer)
	case RecordChanged:
		if in.Record.Visits {
			return
		}
		c.peers.Changed(in.Peer, in.Signed, in.Record)
	case OwnRecord:
		c.peers.OwnRecord(in.Signed, in.Near, in.Named)
	case Reached:
		c.peers.Reached(in.Public)
	case Hinted:
		c.peers.Hinted(in.Peer, in.Addrs)
	case Reserved:
		c.peers.Reserved(in.Peer, in.OK)
	case Received:
		c.received(in.From, in.Message)
	case Stranger:
		c.alive(in.From)
		c.certificates.want(in.From, in.Stranger)
	case Forwarded:
		c.alive(in.From)
		c.fetch.Forwarded(in.ID, in.From)
	case Answered:
		c.env.Took = in.TookMs
		if in.Err == nil {
			c.env.SampleWay(in.Call, len(in.Response))
		}
		c.env.Answered(in.Call, in.Response, in.Err)
	case Requested:
		if _, visits := c.visitors[in.From]; visits {
			c.guide(in)
			return
		}
		c.serve.Request(in.Handle, in.From, in.Request)
	case Left:
		c.serve.Left(in.Handle)
	case Replied:
		c.serve.Replied(in.Handle, in.Payload)
	}
}

func (c *Core) peerDown(id wire.PeerID) {
	c.peers.Down(id)
	c.repair.tick()
	c.snapshot.gone(id)
	c.serve.Gone(id)
	c.blobs.reclaim()
}

// alive notes that something arrived from a peer.
func (c *Core) alive(from wire.PeerID) {
	if p := c.env.Find(from); p != nil {
		c.env.Hear(p)
	}
}

func (c *Core) received(from wire.PeerID, m wire.Message) {
	c.alive(from)
	switch {
	case m.Header != nil:
		c.header(from, m.Header, m.Inline)
	case m.Heartbeat != nil:
		c.heartbeat(from, m.Heartbeat)
	case m.Equivocation != nil:
		c.headers.Equivocation(*m.Equivocation)
	}
}

func (c *Core) heartbeat(from wire.PeerID, b *wire.Heartbeat) {
	p := c.peers.Heartbeat(b, from)
	if p == nil {
		return
	}
	if p.Unequal() == 0 && c.env.Live(p) {
		c.snapshot.equal()
		c.repair.equal(p)
	}
	if p.StateDiffers() {
		c.audit.want(p)
	}
	if p.Unequal() >= peers.HeartbeatsToRepair {
		c.repair.want(p)
	}
}

// header offers a new header upward and begins to fetch its payload.
func (c *Core) header(from wire.PeerID, s *wire.SignedHeader, inline []byte) {
	id, v := c.headers.Classify(s)
	if v == headers.Refused || v == headers.Conflict || c.headers.Old(s.Header) {
		return
	}
	if v == headers.Fresh {
		c.env.Emit(Offer{ID: id, Header: s, From: from})
	}
	switch {
	case c.env.chain.Has(id) || c.headers.Invalid(id):
	case inline != nil:
		c.fetch.Came(id, s, inline)
	case v == headers.Fresh && !c.headers.FarAhead(s.Header) && !c.snapshot.brings(s.Header):
		c.fetch.Announced(id, s, from)
	default:
		c.fetch.Forwarded(id, from)
	}
	if p := c.env.Find(from); p != nil && c.headers.Ahead(s.Header) {
		c.repair.want(p)
	}
}
