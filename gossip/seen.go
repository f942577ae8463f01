package gossip

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

// sighting is a header that was met.
type sighting struct {
	id      wire.Digest
	header  *wire.SignedHeader // shared, never changed
	invalid string             // why its payload is unusable, "" if it is not known to be
	met     uint64             // how many headers were met before
	given   []wire.PeerID      // whom this node gave its payload, the last maxGiven
}

// give notes that a peer is given the payload.
func (v *sighting) give(to wire.PeerID) {
	v.lost(to)
	v.given = append(v.given, to)
	v.given = v.given[max(0, len(v.given)-maxGiven):]
}

// lost says that a peer did not get the payload after all.
func (v *sighting) lost(to wire.PeerID) {
	v.given = slices.DeleteFunc(v.given, func(id wire.PeerID) bool { return id == to })
}

// seen is a ring of the last maxSeen headers, by id and by slot.
type seen struct {
	ring   []sighting
	next   int
	count  uint64 // of all that were added
	byID   map[wire.Digest]int32
	bySlot map[slot]int32
}

func newSeen() seen {
	return seen{byID: map[wire.Digest]int32{}, bySlot: map[slot]int32{}}
}

func (s *seen) find(id wire.Digest) *sighting {
	if i, ok := s.byID[id]; ok {
		return &s.ring[i]
	}
	return nil
}

func (s *seen) filled(k slot) *sighting {
	if i, ok := s.bySlot[k]; ok {
		return &s.ring[i]
	}
	return nil
}

// add remembers a header that find does not know, in place of the oldest. It fills its slot if it binds its author.
func (s *seen) add(id wire.Digest, h *wire.SignedHeader, binds bool) {
	if len(s.ring) < maxSeen {
		s.ring = append(s.ring, sighting{})
	} else {
		s.forget(s.next)
	}
	s.ring[s.next] = sighting{id: id, header: h, met: s.count}
	s.count++
	s.byID[id] = int32(s.next)
	if _, taken := s.bySlot[slotOf(h.Header)]; binds && !taken {
		s.bySlot[slotOf(h.Header)] = int32(s.next)
	}
	s.next = (s.next + 1) % maxSeen
}

func (s *seen) forget(i int) {
	old := s.ring[i]
	delete(s.byID, old.id)
	if k := slotOf(old.header.Header); s.bySlot[k] == int32(i) {
		delete(s.bySlot, k)
	}
}

// isInvalid reports whether the payload of id is known to be unusable.
func (s *seen) isInvalid(id wire.Digest) bool {
	v := s.find(id)
	return v != nil && v.invalid != ""
}
