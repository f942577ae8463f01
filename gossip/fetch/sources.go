package fetch

import (
	"math"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// pick returns the source to ask now. Among sources that hold it, that is the one
// with the fewest requests. Otherwise it is the first, in turn, of the sources asked
// least often. It waits for a source that already answers as many requests as it may,
// and passes over a busy one. left is false if no connected source will do.
func (f *Fetch) pick(w *want) (pick *source, left bool) {
	if s := f.idlest(w); s != nil {
		return s, true
	}
	for lap := range MaxTries {
		for i := range len(w.sources) + 1 {
			s := w.inTurn(i)
			p := f.Find(s.id)
			if s.tries > lap || !f.Usable(p) {
				continue
			}
			left = true
			if s.asked {
				continue
			}
			if !f.room(w, s, p) {
				return nil, true
			}
			if f.Now >= s.after {
				return s, true
			}
		}
	}
	return nil, left
}

// idlest is the source that answers the fewest requests, of those that hold what is
// wanted and may be asked; nil if there is none. What one peer lists in a repair
// others mostly list as well: the load is theirs together.
func (f *Fetch) idlest(w *want) (best *source) {
	least := math.MaxInt
	for i := range w.sources {
		s := &w.sources[i]
		p := f.Find(s.id)
		if s.holds && !s.asked && s.tries < MaxTries && f.Now >= s.after && f.Usable(p) && f.room(w, s, p) && peerOf(p).calls < least {
			best, least = s, peerOf(p).calls
		}
	}
	return best
}

// room reports whether a peer may be asked for w as well. More than a few small ones are
// asked of one only while half of the slots are free: two that do not answer must not
// take all.
func (f *Fetch) room(w *want, s *source, p *peers.Peer) bool {
	of := peerOf(p)
	switch {
	case w.class > sure:
		return of.calls+of.relayed < maxDoubtfulPerPeer
	case s.relay:
		return of.relayed < maxRelayCalls
	case of.calls < MaxPullsPerPeer:
		return true
	}
	return f.flying < MaxPulls/2 && of.calls < maxSmallPulls && of.bytes+w.size() <= smallPullBytes
}

// parks reports whether a source is asked to wait until it has the payload: the author, a
// relay, who holds it, and who brought the header, which is nearer to the author. Others only
// get it as late as this node, and are asked in case that they have it. If they parked, two
// might wait for each other. They park where there is no way to the author, and once it was
// asked.
func (f *Fetch) parks(w *want, s *source) bool {
	switch {
	case s.relay || s.holds || s.id == w.author.id:
		return true
	case w.via != wire.PeerID{}:
		return false
	}
	author := f.Find(w.author.id)
	return s.id == w.brought || author == nil || !f.Usable(author) || w.narrow || w.author.tries > 0
}

// timeouts is how long a source of w may take: it may park the request for wait, and then
// sends for transfer, with all that was asked of it before.
func (f *Fetch) timeouts(w *want, s *source, p *peers.Peer) (wait, transfer int64) {
	bytes := peerOf(p).bytes + w.size()
	transfer = min(expected(p).TransferMs(bytes)<<peerOf(p).late, peers.DeadlineMaxMs)
	if !Measured(p) && !p.Claims() { // the rate is a guess: the run says more of its links
		transfer = max(transfer, f.cfg.SweepMs)
	}
	if author := f.Find(w.author.id); s.relay && author != nil && expected(author) < expected(p) {
		wait = expected(author).TransferMs(bytes) // it has to come from there first
	}
	if !f.parks(w, s) {
		return 0, transfer
	}
	return min(max(wait, transfer), wire.MaxWaitMs), transfer
}
