package peers

import (
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/wire"
)

// hints are addresses where strangers say that peers of the run are: by multicast on the own
// network, or in the DHT of all runs. Anybody may say so. A hint is worth a few dials, and it is
// kept apart from the peer list, which holds what peers have signed. It also decides when
// to look for more.
type hints struct {
	*Table
	peerList      *peerList
	list          []hint
	nextDial      effect.Time
	nextDiscovery effect.Time
	pauseMs       int64 // after the last search of a node that has nobody
	lonely        bool  // had nobody as of the last tick
}

// hint is one such address hint.
type hint struct {
	peer  wire.PeerID
	addrs []string
	dial  dialling
	tries int
}

// heard takes a hint. The newest of a peer replaces the one before, and of all the oldest goes
// first.
func (h *hints) heard(id wire.PeerID, addrs []string) {
	if id == h.Config.Self || len(addrs) == 0 || h.connectedTo(id) {
		return
	}
	addrs = slices.Clone(addrs[:min(len(addrs), maxHintAddrs)])
	if i := slices.IndexFunc(h.list, func(x hint) bool { return x.peer == id }); i >= 0 {
		h.list[i].addrs = addrs // saying it again brings no dial sooner
		return
	}
	if len(h.list) >= MaxHints {
		h.list = h.list[1:]
	}
	h.list = append(h.list, hint{peer: id, addrs: addrs})
	h.dial()
}

func (h *hints) connectedTo(id wire.PeerID) bool {
	p := h.Table.Find(id)
	return p != nil && p.Connected
}

func (h *hints) tick() {
	h.list = slices.DeleteFunc(h.list, func(x hint) bool {
		return h.connectedTo(x.peer) || x.tries >= MaxHintTries && h.Now >= x.dial.after
	})
	h.dial()
	h.discover()
}

// dial tries the first hint that is due, one after the other at the pace of the peer list.
func (h *hints) dial() {
	if h.Now < h.nextDial || h.peerList.connections() >= h.Config.TargetPeers {
		return
	}
	due := func(x hint) bool { return h.Now >= x.dial.after && x.tries < MaxHintTries }
	i := slices.IndexFunc(h.list, due)
	if i < 0 {
		return
	}
	x := &h.list[i]
	h.Emit(effect.Dial{Peer: x.peer, Addrs: x.addrs})
	x.tries++
	x.dial.pauseMs = max(2*x.dial.pauseMs, DialBackoffMinMs)
	x.dial.after = h.Now + x.dial.pauseMs
	h.nextDial = h.Now + DialPeriodMs/MaxDials
}

// discover looks for peers where it is time. On one network nobody has to: all are found by
// multicast or by the peer list.
func (h *hints) discover() {
	if !h.peerList.moves {
		return
	}
	have := h.peerList.connections()
	if lonely := have == 0; lonely != h.lonely {
		h.lonely, h.pauseMs = lonely, DiscoverFirstMs
		h.nextDiscovery = h.Now + h.pause(have)
	}
	if h.Now < h.nextDiscovery {
		return
	}
	h.Emit(effect.Discover{})
	h.pauseMs = min(2*h.pauseMs, discoverMaxMs)
	h.nextDiscovery = h.Now + h.pause(have)
}

// pause is the time before the next search of a node with so many connections.
func (h *hints) pause(have int) int64 {
	switch {
	case have == 0:
		return h.pauseMs
	case have < WantNeighbours:
		return discoverFewMs
	}
	return discoverManyMs
}
