package peers

import (
	"atoll/gossip/effect"
	"atoll/gossip/wire"
)

// reserve keeps slots at peers that relay, while others do not reach this node by
// themselves. With two of them the loss of one cuts nobody off. Who is asked
// first follows from a hash of both ids, so that no relay gets all.
type reserve struct {
	*Table
	peerList *peerList
	wanted   bool
}

// slotPeer is what reserve knows of a peer.
type slotPeer struct {
	held    bool        // asked for, or had
	after   effect.Time // not asked before
	pauseMs int64       // after the last refusal
}

// reached takes what is known of how others reach this node.
func (s *reserve) reached(public bool) {
	if s.wanted = !public; s.wanted {
		s.fill()
		return
	}
	for _, p := range s.Table.List {
		if p.slot.held {
			p.slot = slotPeer{}
			s.Emit(effect.Release{Peer: p.ID})
		}
	}
}

// fill asks for the slots that are missing.
func (s *reserve) fill() {
	if !s.wanted {
		return
	}
	for have := s.held(); have < wantSlots; have++ {
		p := s.best(s.Table.Linked, func(p *Peer) bool { return !p.slot.held && s.Now >= p.slot.after })
		if p == nil {
			s.dialRelay()
			return
		}
		p.slot.held = true
		s.Emit(effect.Reserve{Peer: p.ID})
	}
}

func (s *reserve) held() (n int) {
	for _, p := range s.Table.Linked {
		if p.slot.held {
			n++
		}
	}
	return n
}

// dialRelay dials a relay that is only known, even where there are neighbours enough.
func (s *reserve) dialRelay() {
	p := s.best(s.Table.List, func(p *Peer) bool { return !p.Connected && len(p.peerList.addrs) > 0 && s.Now >= p.peerList.dial.after })
	if p != nil {
		s.peerList.dialOne(p)
	}
}

// best is the relay to turn to first among those for which a condition holds, nil if
// there is none.
func (s *reserve) best(among []*Peer, holds func(*Peer) bool) (best *Peer) {
	least := 2.0
	for _, p := range among {
		if !p.peerList.record.Relays || !holds(p) {
			continue
		}
		if draw := Lot(wire.Sum(s.Config.Self[:]), p.ID); draw < least {
			best, least = p, draw
		}
	}
	return best
}

// outcome takes what a peer said to a request for a slot.
func (s *reserve) outcome(id wire.PeerID, ok bool) {
	p := s.Table.Find(id)
	if p == nil {
		return
	}
	if ok {
		p.slot.pauseMs = 0
		return
	}
	p.slot.held = false
	p.slot.pauseMs = min(max(2*p.slot.pauseMs, SlotPauseMinMs), slotPauseMaxMs)
	p.slot.after = s.Now + p.slot.pauseMs
	s.fill()
}

// down notes that a peer is gone, and the slot at it.
func (s *reserve) down(id wire.PeerID) {
	if p := s.Table.Find(id); p != nil && p.slot.held {
		p.slot.held = false
		s.fill()
	}
}
