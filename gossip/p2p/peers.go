package p2p

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"sync"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/p2p/address"
	"atoll/gossip/p2p/bulk"
	"atoll/gossip/p2p/guard"
	"atoll/gossip/wire"
)

// Errors of requests and dials to a peer.
var (
	// ErrNotConnected: no connection to the peer has passed the handshake.
	ErrNotConnected = errors.New("not connected")
	// ErrClosed: the host is closed.
	ErrClosed = errors.New("host closed")
)

// link is a peer to which there is at least one connection.
type link struct {
	id    wire.PeerID
	conns map[network.Conn]int64 // start of the process that passed the handshake on it, unix milliseconds; else 0
	// passed is true once the handshake succeeded on one of the connections:
	// identity is per peer, so this holds for all of them.
	passed  bool
	accepts bool // this node accepts the record of the peer, which may have to say yet whether it accepts this node's
	record  hello.Record
	// settled is closed when passed becomes true or the link is gone.
	settled chan struct{}
	told    chan struct{} // closed when the reader of events has its PeerUp
	serving int           // requests of the peer that are being served
	bulk    *bulk.Link
}

// keptTag is why the connection manager closes a connection last.
const keptTag = "known"

// pidOf is what libp2p calls a node.
func pidOf(id wire.PeerID) peer.ID { return peer.ID(address.ID(id)) }

// Keep has the connections to a peer closed after those to others, where there are too many, for
// as long as there is one.
func (h *Host) Keep(id wire.PeerID) {
	if pid := pidOf(id); h.peers.up(pid) != nil {
		h.host.ConnManager().TagPeer(pid, keptTag, 1)
	}
}

// peers has a link for each peer to which there is a connection. Events about
// links are queued under its lock, so they have the order of the facts.
type peers struct {
	mu      sync.Mutex
	uplink  *bulk.Uplink
	links   map[peer.ID]*link
	serving int           // requests that are being served, of all peers
	added   chan struct{} // closed, and made anew, when a connection is added
}

func newPeers(u *bulk.Uplink) peers {
	return peers{uplink: u, links: map[peer.ID]*link{}, added: make(chan struct{})}
}

// add notes a new connection and reports whether it belongs to a node.
func (ps *peers) add(c network.Conn) bool {
	id, err := address.PeerID(string(c.RemotePeer()))
	if err != nil {
		return false
	}
	ps.mu.Lock()
	defer ps.mu.Unlock()
	l := ps.links[c.RemotePeer()]
	if l == nil {
		l = &link{id: id, conns: map[network.Conn]int64{}, settled: make(chan struct{}), told: make(chan struct{}), bulk: bulk.NewLink(ps.uplink)}
		ps.links[c.RemotePeer()] = l
	}
	l.conns[c] = 0
	close(ps.added)
	ps.added = make(chan struct{})
	return true
}

// remove forgets a connection. With the last one the link goes; gone is called
// under the lock if the peer had been up.
func (ps *peers) remove(c network.Conn, gone func(*link)) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	l := ps.links[c.RemotePeer()]
	if l == nil {
		return
	}
	delete(l.conns, c)
	if len(l.conns) > 0 {
		return
	}
	delete(ps.links, c.RemotePeer())
	if l.passed {
		gone(l)
		return
	}
	close(l.settled)
}

// get returns the link to a peer, nil if there is none.
func (ps *peers) get(p peer.ID) *link {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	return ps.links[p]
}

// expect waits for the link to a peer that the network is connected to. libp2p
// itself may use a new connection before its notice comes here.
func (ps *peers) expect(ctx context.Context, p peer.ID, nw network.Network) error {
	for {
		ps.mu.Lock()
		l, added := ps.links[p], ps.added
		ps.mu.Unlock()
		if l != nil || nw.Connectedness(p) != network.Connected {
			return nil
		}
		select {
		case <-added:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// up returns the link to a peer that passed the handshake, nil otherwise.
func (ps *peers) up(p peer.ID) *link {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if l := ps.links[p]; l != nil && l.passed {
		return l
	}
	return nil
}

// accepted reports whether this node accepts the record of a connected peer.
func (ps *peers) accepted(p peer.ID) bool {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	l := ps.links[p]
	return l != nil && l.accepts
}

// origin is where a peer is connected from (see guard.Origin), of several places any one.
func (ps *peers) origin(p peer.ID) (at netip.Prefix) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	if l := ps.links[p]; l != nil {
		for c := range l.conns {
			return guard.Origin(c.RemoteMultiaddr())
		}
	}
	return at
}

// standing reports whether a peer is connected and has passed the handshake, and whether it came by an invite for guests.
func (h *Host) standing(p peer.ID) (here, guest bool) {
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	l := h.peers.links[p]
	if l == nil || !l.passed {
		return false, false
	}
	c, err := member.CertificateIn(l.record)
	return true, err == nil && c.Invite.Guests
}

// each calls f for every peer that is up, under the lock.
func (ps *peers) each(f func(peer.ID, *link)) {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	for p, l := range ps.links {
		if l.passed {
			f(p, l)
		}
	}
}

// admitStreams has the streams of a peer count as those of members: this node is about to say that it accepts the peer's record.
func (h *Host) admitStreams(p peer.ID) {
	h.peers.mu.Lock()
	if l := h.peers.links[p]; l != nil {
		l.accepts = true
	}
	h.peers.mu.Unlock()
	h.strangers.Admit(p)
}

// accept notes that the handshake was passed and tells the inbox.
func (h *Host) accept(c network.Conn, signed hello.Signed, r hello.Record) error {
	h.peers.mu.Lock()
	defer h.peers.mu.Unlock()
	l := h.peers.links[c.RemotePeer()]
	if l == nil {
		return fmt.Errorf("handshake with %v: %w any more", r.Author, ErrNotConnected)
	}
	if _, open := l.conns[c]; open {
		l.conns[c] = r.StartedMs
	}
	var e Event = PeerUp{ID: l.id, Record: r, Signed: signed, Addr: fullAddr(c), Near: near(c)}
	var told chan struct{}
	switch {
	case !l.passed:
		told = l.told
	case !newer(r, l.record):
		return nil
	case !l.record.Visits || r.Visits: // else it looked, and now takes part
		e = RecordChanged{ID: l.id, Record: r, Signed: signed}
	}
	if !h.inbox.putTold(e, told) {
		return fmt.Errorf("handshake with %v: this node is too far behind with its events", r.Author)
	}
	l.record = r
	if !l.passed {
		l.passed, l.accepts = true, true
		h.traffic.Pass(c.RemotePeer())
		h.strangers.Admit(c.RemotePeer())
		close(l.settled)
	}
	return nil
}

// newer orders records of one author: by process start, then by sequence
// number (which a restarted node may have lost).
func newer(a, b hello.Record) bool {
	if a.StartedMs != b.StartedMs {
		return a.StartedMs > b.StartedMs
	}
	return a.Seq > b.Seq
}

func fullAddr(c network.Conn) string {
	return c.RemoteMultiaddr().String() + "/p2p/" + c.RemotePeer().String()
}

// await returns once the handshake with p has been passed, or with the reason
// why it was not.
func (h *Host) await(ctx context.Context, p peer.ID) error {
	l := h.peers.get(p)
	if l == nil {
		return h.whyNot(p)
	}
	select {
	case <-l.settled:
	case <-ctx.Done():
		return ctx.Err()
	case <-h.ctx.Done():
		return ErrClosed
	}
	if h.peers.up(p) == nil {
		return h.whyNot(p)
	}
	return nil
}

// whyNot says why there is no usable connection to p.
func (h *Host) whyNot(p peer.ID) error {
	if err := h.refusals.Get(p); err != nil {
		return err
	}
	if h.host.Network().Connectedness(p) == network.Limited {
		return fmt.Errorf("%w: reachable through a relay only, and hole punching did not succeed", ErrNotConnected)
	}
	return ErrNotConnected
}

// disconnect closes all connections to p.
func (h *Host) disconnect(p peer.ID) {
	if err := h.host.Network().ClosePeer(p); err != nil {
		h.log.Debug("close connection", "peer", p, "err", err)
	}
}

// dropStranger closes all connections to a peer, unless this node has accepted it meanwhile. It returns at once.
func (h *Host) dropStranger(p peer.ID) {
	h.tasks.start(func() {
		if !h.peers.accepted(p) {
			h.disconnect(p)
		}
	})
}

// Reconsider closes the connections to those peers that which selects, so that each passes the
// handshake anew: what Config.Admit knows has changed.
func (h *Host) Reconsider(which func(wire.PeerID) bool) {
	h.peers.each(func(p peer.ID, l *link) {
		if which(l.id) {
			h.tasks.start(func() { h.disconnect(p) })
		}
	})
}

// Connected returns the peers that are up, in no order.
func (h *Host) Connected() []wire.PeerID {
	var ids []wire.PeerID
	h.peers.each(func(_ peer.ID, l *link) { ids = append(ids, l.id) })
	return ids
}
