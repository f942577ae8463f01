package gossip

import (
	"math"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// source is a peer that should have the payload.
type source struct {
	id    wire.PeerID
	tries int
	after Time // not before: it was busy, or could not give it
	holds bool // it said so
	relay bool // it is to have it before this node
	asked bool // and has yet to answer
}

// pick returns the source to ask now. Among sources that hold it, that is the one
// with the fewest requests. Otherwise it is the first, in turn, of the sources asked
// least often. It waits for a source that already answers as many requests as it may,
// and passes over a busy one. left is false if no connected source will do.
func (p *pull) pick(w *want) (pick *source, left bool) {
	if s := p.idlest(w); s != nil {
		return s, true
	}
	for lap := range maxTries {
		for i := range len(w.sources) + 1 {
			s := w.inTurn(i)
			q := p.Find(s.id)
			if s.tries > lap || !p.Usable(q) {
				continue
			}
			left = true
			if s.asked {
				continue
			}
			if !p.room(w, s, q) {
				return nil, true
			}
			if p.Now >= s.after {
				return s, true
			}
		}
	}
	return nil, left
}

// inTurn is the i-th source to ask, the author at its place among the others.
func (w *want) inTurn(i int) *source {
	switch place := w.authorsTurn(); {
	case i == place:
		return &w.author
	case i > place:
		i--
	}
	return &w.sources[i]
}

// authorsTurn is the author's among the sources: the first where it brought the header
// itself and has as wide an uplink as most, or where this node gets it from there for others.
// Otherwise it is the last. Others that forwarded the header mostly wait for the payload as
// well: nodes that asked each other before an author that they know would all wait.
func (w *want) authorsTurn() int {
	direct := w.via == wire.PeerID{} && w.brought == w.author.id && !w.narrow
	if direct || w.via == w.author.id {
		return 0
	}
	return len(w.sources)
}

// idlest is the source that answers the fewest requests, of those that hold what is
// wanted and may be asked; nil if there is none. What one peer lists in a repair
// others mostly list as well: the load is theirs together.
func (p *pull) idlest(w *want) (best *source) {
	least := math.MaxInt
	for i := range w.sources {
		s := &w.sources[i]
		q := p.Find(s.id)
		if s.holds && !s.asked && s.tries < maxTries && p.Now >= s.after && p.Usable(q) && p.room(w, s, q) && pullOf(q).calls < least {
			best, least = s, pullOf(q).calls
		}
	}
	return best
}

// room reports whether a peer may be asked for w as well. More than a few small ones are
// asked of one only while half of the slots are free: two that do not answer must not
// take all.
func (p *pull) room(w *want, s *source, q *peers.Peer) bool {
	switch {
	case w.speculative:
		return pullOf(q).calls+pullOf(q).relayed < maxSpeculativePerPeer
	case s.relay:
		return pullOf(q).relayed < maxRelayCalls
	case pullOf(q).calls < maxPullsPerPeer:
		return true
	}
	return p.flying < maxPulls/2 && pullOf(q).calls < maxSmallPulls && pullOf(q).bytes+int(w.header.Header.Size) <= smallPullBytes
}

// parks reports whether a source is asked to wait until it has the payload: the author, a
// relay, who holds it, and who brought the header, which is nearer to the author. Others only
// get it as late as this node, and are asked in case that they have it. If they parked, two
// might wait for each other. They park where there is no way to the author, and once it was
// asked.
func (p *pull) parks(w *want, s *source) bool {
	switch {
	case s.relay || s.holds || s.id == w.author.id:
		return true
	case w.via != wire.PeerID{}:
		return false
	}
	author := p.Find(w.author.id)
	return s.id == w.brought || author == nil || !p.Usable(author) || w.narrow || w.author.tries > 0
}

// relies reports whether this node waits for id at a peer that is to relay it.
func (p *pull) relies(id wire.Digest, on wire.PeerID) bool {
	w := p.byID[id]
	if w == nil {
		return false
	}
	s := w.find(on)
	return s != nil && s.relay && s.asked
}

func (w *want) find(id wire.PeerID) *source {
	if id == w.author.id {
		return &w.author
	}
	for i := range w.sources {
		if w.sources[i].id == id {
			return &w.sources[i]
		}
	}
	return nil
}
