package gossip

import (
	"math"

	"atoll/gossip/wire"
)

// pick returns the source to ask now. Among sources that hold it, that is the one
// with the fewest requests. Otherwise it is the first of the sources asked least
// often, the author after the others. It waits for a source that already answers
// as many requests as it may, and passes over a busy one. left is false if no
// connected source will do.
func (p *pull) pick(w *want) (pick *source, left bool) {
	if s := p.idlest(w); s != nil {
		return s, true
	}
	for lap := range maxTries {
		for i := 0; i <= len(w.sources); i++ {
			s := &w.author
			if i < len(w.sources) {
				s = &w.sources[i]
			}
			q := p.peers.find(s.id)
			if s.tries > lap || !p.usable(q) {
				continue
			}
			left = true
			if s.asked {
				continue
			}
			if !p.room(w, q) {
				return nil, true
			}
			if p.now >= s.after {
				return s, true
			}
		}
	}
	return nil, left
}

// idlest is the source that answers the fewest requests, of those that hold what is
// wanted and may be asked; nil if there is none. What one peer lists in a repair
// others mostly list as well: the load is theirs together.
func (p *pull) idlest(w *want) (best *source) {
	least := math.MaxInt
	for i := range w.sources {
		s := &w.sources[i]
		q := p.peers.find(s.id)
		if s.holds && !s.asked && s.tries < maxTries && p.now >= s.after && p.usable(q) && p.room(w, q) && q.pull.calls < least {
			best, least = s, q.pull.calls
		}
	}
	return best
}

// room reports whether a peer may be asked for w as well. More than a few small ones are
// asked of one only while half of the places are free: two that do not answer must not
// take all.
func (p *pull) room(w *want, q *peer) bool {
	switch {
	case w.probe:
		return q.pull.calls < maxProbesPerPeer
	case q.pull.calls < maxPullsPerPeer:
		return true
	}
	return p.flying < maxPulls/2 && q.pull.calls < maxSmallPulls && q.pull.bytes+int(w.header.Header.Size) <= smallPullBytes
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
