package gossip

import (
	"math"

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
			q := p.peers.find(s.id)
			if s.tries > lap || !p.usable(q) {
				continue
			}
			left = true
			if s.asked {
				continue
			}
			if !p.room(w, s, q) {
				return nil, true
			}
			if p.now >= s.after {
				return s, true
			}
		}
	}
	return nil, left
}

// inTurn is the i-th source to ask. The author comes after the others, unless this node
// is the one that is to get it from there.
func (w *want) inTurn(i int) *source {
	if w.via == w.author.id {
		i--
	}
	if i < 0 || i == len(w.sources) {
		return &w.author
	}
	return &w.sources[i]
}

// idlest is the source that answers the fewest requests, of those that hold what is
// wanted and may be asked; nil if there is none. What one peer lists in a repair
// others mostly list as well: the load is theirs together.
func (p *pull) idlest(w *want) (best *source) {
	least := math.MaxInt
	for i := range w.sources {
		s := &w.sources[i]
		q := p.peers.find(s.id)
		if s.holds && !s.asked && s.tries < maxTries && p.now >= s.after && p.usable(q) && p.room(w, s, q) && q.pull.calls < least {
			best, least = s, q.pull.calls
		}
	}
	return best
}

// room reports whether a peer may be asked for w as well. More than a few small ones are
// asked of one only while half of the places are free: two that do not answer must not
// take all.
func (p *pull) room(w *want, s *source, q *peer) bool {
	switch {
	case w.probe:
		return q.pull.calls+q.pull.relayed < maxProbesPerPeer
	case s.relay:
		return q.pull.relayed < maxRelayCalls
	case q.pull.calls < maxPullsPerPeer:
		return true
	}
	return p.flying < maxPulls/2 && q.pull.calls < maxSmallPulls && q.pull.bytes+int(w.header.Header.Size) <= smallPullBytes
}

// parks reports whether a source is asked to wait until it has the payload. Where it comes
// over a relay, others only get it as late as this node: of them it is asked in case that
// they have it. If they parked, two might wait for each other.
func (w *want) parks(s *source) bool {
	return w.via == wire.PeerID{} || s.relay || s.holds || s.id == w.author.id
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
