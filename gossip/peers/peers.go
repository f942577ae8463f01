package peers

import (
	"atoll/gossip/effect"
	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// Peers keeps the table of peers: it finds them and stays connected with enough of them, says what
// this node holds and hears what they say.
type Peers struct {
	*Table
	Heartbeats Heartbeats
	list       peerList
	hints      hints
	reserve    reserve
	learners   learners
}

// New returns the machine of a node that knows nobody.
func New(q *effect.Queue, cfg Config, chain Chain) *Peers {
	t := newTable(q, cfg, chain)
	m := &Peers{Table: t, Heartbeats: Heartbeats{Table: t}, learners: learners{Table: t}}
	m.list = peerList{Table: t, joining: m.Heartbeats.Joining}
	m.hints = hints{Table: t, peerList: &m.list}
	m.reserve = reserve{Table: t, peerList: &m.list}
	return m
}

// Tick lets time pass.
func (m *Peers) Tick() {
	m.watch()
	m.Heartbeats.tick()
	m.list.tick()
	m.hints.tick()
	m.reserve.fill()
}

// Up takes a connection to a peer of the own network (near), or of another, whose record is verified.
func (m *Peers) Up(id wire.PeerID, s hello.Signed, rec hello.Record, near bool) {
	m.list.up(id, s, rec, near)
	m.reserve.fill()
}

// Down takes the end of the last connection to a peer.
func (m *Peers) Down(id wire.PeerID) {
	m.list.down(id)
	m.reserve.down(id)
}

// Changed takes a newer record of a connected peer.
func (m *Peers) Changed(id wire.PeerID, s hello.Signed, rec hello.Record) {
	m.list.changed(id, s, rec)
	m.reserve.fill()
}

// OwnRecord takes the records of this node that its peer list carries: for everybody, for peers of its own network, and with its name for members.
func (m *Peers) OwnRecord(s, near, named hello.Signed) {
	m.list.own, m.list.ownNear, m.list.ownNamed = s, near, named
}

// Reached takes whether others reach this node by themselves. Who is told so at all is where addresses change.
func (m *Peers) Reached(public bool) {
	m.moves = true
	m.reserve.reached(public)
}

// Hinted takes where a stranger says that a peer is.
func (m *Peers) Hinted(id wire.PeerID, addrs []string) { m.hints.heard(id, addrs) }

// Hints is how many hints wait.
func (m *Peers) Hints() int { return len(m.hints.list) }

// Reserved takes what a peer said to a request for a slot.
func (m *Peers) Reserved(id wire.PeerID, ok bool) { m.reserve.outcome(id, ok) }

// Heartbeat takes a verified heartbeat, which nobody changes, that a peer brought. It returns the author's
// entry if the heartbeat is news.
func (m *Peers) Heartbeat(b *wire.Heartbeat, from wire.PeerID) *Peer {
	p := m.Heartbeats.receive(b)
	if p != nil {
		m.list.said(p, b.Capability, from)
	}
	return p
}

// ListFor is this node's peer list for a peer, nil for one that is not known.
func (m *Peers) ListFor(asker *Peer) []byte { return m.list.body(asker) }

// Phase describes for people whom this node has found.
func (m *Peers) Phase() string { return m.list.phase() }

// Learning are the peers that train or have stopped at the budget, sorted by id. The slice is never changed.
func (m *Peers) Learning() []wire.PeerID { return m.learners.current() }

// LearningVersion is another number whenever Learning returned others.
func (m *Peers) LearningVersion() uint64 { return m.learners.version }
