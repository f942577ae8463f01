package headers

import (
	"slices"

	"atoll/gossip/wire"
)

// slot is what an author may fill once: a second header for it is an equivocation proof.
type slot struct {
	author   wire.PeerID
	fragment uint16
	round    uint32
	revokes  wire.Digest // the name that a revocation revokes: an owner may revoke several at once
}

func slotOf(h wire.Header) slot {
	s := slot{author: h.Author, fragment: h.Fragment, round: h.Round}
	if h.Revocation() {
		s.revokes = h.Certificate
	}
	return s
}

const (
	// MaxSeen bounds the ring of headers met: ten sweeps of 24 fragments with
	// 16 deltas each, about 2 MiB. What falls out is known to the Chain.
	MaxSeen = 4096
	// maxGiven bounds the peers remembered as given one payload: as many as a node is
	// connected to in a mesh.
	maxGiven = 16
)

// Sighting is a header that was met.
type Sighting struct {
	ID      wire.Digest
	Header  *wire.SignedHeader // shared, never changed
	Invalid string             // why its payload is unusable, "" if it is not known to be
	Met     uint64             // how many headers were met before
	Given   []wire.PeerID      // whom this node gave its payload, the last maxGiven
}

// Give notes that a peer is given the payload.
func (v *Sighting) Give(to wire.PeerID) {
	v.Lost(to)
	v.Given = append(v.Given, to)
	v.Given = v.Given[max(0, len(v.Given)-maxGiven):]
}

// Lost says that a peer did not get the payload after all.
func (v *Sighting) Lost(to wire.PeerID) {
	v.Given = slices.DeleteFunc(v.Given, func(id wire.PeerID) bool { return id == to })
}

// seen is a ring of the last MaxSeen headers, by id and by slot.
type seen struct {
	ring   []Sighting
	next   int
	count  uint64 // of all that were added
	byID   map[wire.Digest]int32
	bySlot map[slot]int32
}

func newSeen() seen {
	return seen{byID: map[wire.Digest]int32{}, bySlot: map[slot]int32{}}
}

func (s *seen) find(id wire.Digest) *Sighting {
	if i, ok := s.byID[id]; ok {
		return &s.ring[i]
	}
	return nil
}

func (s *seen) filled(k slot) *Sighting {
	if i, ok := s.bySlot[k]; ok {
		return &s.ring[i]
	}
	return nil
}

// add remembers a header that find does not know, in place of the oldest. It fills its slot if it binds its author.
func (s *seen) add(id wire.Digest, h *wire.SignedHeader, binds bool) {
	if len(s.ring) < MaxSeen {
		s.ring = append(s.ring, Sighting{})
	} else {
		s.forget(s.next)
	}
	s.ring[s.next] = Sighting{ID: id, Header: h, Met: s.count}
	s.count++
	s.byID[id] = int32(s.next)
	if _, taken := s.bySlot[slotOf(h.Header)]; binds && !taken {
		s.bySlot[slotOf(h.Header)] = int32(s.next)
	}
	s.next = (s.next + 1) % MaxSeen
}

func (s *seen) forget(i int) {
	old := s.ring[i]
	delete(s.byID, old.ID)
	if k := slotOf(old.Header.Header); s.bySlot[k] == int32(i) {
		delete(s.bySlot, k)
	}
}
