package gossip

import (
	"cmp"
	"slices"

	"atoll/gossip/wire"
)

// own asks peers which deltas of this node they know, for a key whose disk does
// not know them. To sign one of those rounds again would exclude the key from the
// run.
type own struct {
	*env
	history *history
	wanted  bool
	known   bool                 // OwnKnown was said
	asked   map[wire.PeerID]bool // who was; false if it has to be asked again
	told    map[wire.PeerID]bool // who has nothing more to tell
	came    map[wire.PeerID]bool // who was seen to join without a snapshot
	any     bool                 // the claims of those who know nothing of the run will do
	first   Time                 // when the first answer that counts had come
	closed  []uint32             // the last rounds that any of those who answered has closed, by fragment; fixed once they are enough
}

// ownPeer is when a peer may be asked again.
type ownPeer struct{ after Time }

func ownOf(p *peer) *ownPeer { return note[ownPeer](p) }

// tick asks those that can be asked and were not, those that connect later as
// well: one that knows more may be among them.
func (o *own) tick() {
	if !o.wanted {
		return
	}
	for _, p := range o.peers.list {
		if p.heartbeat != nil && joinsEmpty(p.heartbeat) && len(o.came) < maxPeers {
			o.came[p.id] = true
		}
		switch {
		case o.usable(p):
			o.askOnce(p)
		case o.live(p) && p.heartbeats.same:
			o.told[p.id] = true
		}
	}
	o.recordFirst()
	if o.known {
		return
	}
	o.recordClosed()
	if o.enough() {
		o.known = true
		o.Emit(OwnKnown{Closed: o.closed})
	}
}

// enough reports whether the answers so far will do. All peers that may know of a delta
// have answered. The chain says who they are, so the chain is here first, with the headers
// that name its authors. And some heartbeats have passed since the first answer: the peer that
// holds the newest delta may be the last to connect.
func (o *own) enough() bool {
	return (o.any || o.history.complete()) && o.first > 0 && o.Now-o.first >= gatherHeartbeats*o.heartbeatPeriod() && !o.awaits() &&
		!slices.ContainsFunc(o.peers.list, func(p *peer) bool { return o.told[p.id] && p.heartbeat == nil && o.usable(p) }) // see recordClosed
}

// recordClosed notes what those who answered have closed, as they say it. Who has dropped the
// headers of a round tells none of it.
func (o *own) recordClosed() {
	if o.closed == nil {
		o.closed = make([]uint32, o.chain.Fragments())
	}
	for _, p := range o.peers.list {
		if !o.told[p.id] || o.guest(p.id) || p.heartbeat == nil {
			continue
		}
		for f, round := range p.heartbeat.Closed {
			o.closed[f] = max(o.closed[f], round)
		}
	}
}

// counts reports whether p has answered and may have met what this key signed. It is no guest, whose answer
// may be anybody's, it holds something of the run, and it did not join with nothing after this node began to ask.
// Newcomers that know only each other begin the run anew, while those that knew what was
// signed are perhaps asleep.
func (o *own) counts(p *peer) bool {
	return o.told[p.id] && o.asked[p.id] && !o.guest(p.id) && (o.any || p.heartbeat != nil && p.heartbeat.Folded > 0 && !o.came[p.id])
}

// recordFirst notes when the first answer that counts had come.
func (o *own) recordFirst() {
	if o.first == 0 && slices.ContainsFunc(o.peers.list, o.counts) {
		o.first = o.Now
	}
}

// awaits reports whether somebody may still know of a delta that nobody has told.
func (o *own) awaits() bool { return slices.ContainsFunc(o.peers.list, o.mayKnowMore) }

// mayKnowMore reports whether p may know of a delta that nobody has told of. Each peer that
// is or was here may know, and so may a silent contributor or a silent peer that the
// link names. Perhaps it alone was on this node's side of a cut. Three kinds may not: a
// peer that left has said what it knows, a peer that shows this node's chain has told
// its neighbours, and a peer that joins with nothing knows nothing. Guests are asked, but
// their keys are free: who waited for them would wait for as long as they like.
func (o *own) mayKnowMore(p *peer) bool {
	if o.told[p.id] || o.guest(p.id) || p.heartbeat != nil && (p.heartbeat.State == wire.Leaving || joinsEmpty(p.heartbeat)) {
		return false
	}
	_, asked := o.asked[p.id]
	return asked || o.usable(p) || o.contributed(p)
}

// joinsEmpty reports whether a heartbeat comes from a joiner without a snapshot.
func joinsEmpty(b *wire.Heartbeat) bool { return b.State == wire.Joining && b.Folded == 0 }

func (o *own) askOnce(p *peer) {
	if o.asked[p.id] || o.Now < ownOf(p).after || len(o.asked) >= maxPeers {
		return
	}
	o.asked[p.id] = true
	o.Call(p.id, wire.Request{Kind: wire.GetOwn}, wire.GetOwn.MaxResponse(), callMs, func(b []byte, err error) {
		if err == nil {
			err = o.accept(p, b)
		}
		if err != nil {
			ownOf(p).after = o.Now + ownRetryMs
			o.asked[p.id] = false
			return
		}
		o.told[p.id] = true
		o.recordFirst()
	})
}

// accept believes what this node's own key has signed, from any peer.
func (o *own) accept(p *peer, b []byte) error {
	headers, err := wire.DecodeHeaders(b)
	if err != nil {
		o.misbehaved(p.id, err.Error())
		return err
	}
	for _, h := range headers {
		if h.Header.Author != o.cfg.Self || !o.fragmentOf(h.Header.Fragment) || h.Verify(o.cfg.Run) != nil {
			continue // of no use, and no reason to ask again
		}
		o.Emit(OwnHeader{Header: h})
	}
	return nil
}

// newest tells a peer its newest deltas, now and then: looking for them goes
// through all headers of the window, and who was told once knows. A node that met nobody of the run
// cannot tell: that it knows of none means nothing.
func (s *serve) newest(handle uint64, p *peer) {
	if s.Now < serveOf(p).toldOwn {
		s.status(handle, wire.Busy)
		return
	}
	serveOf(p).toldOwn = s.Now + ownToldMs
	newest := s.newestOf(p.id)
	if len(newest) == 0 && s.heartbeats.self.Unreached {
		s.status(handle, wire.Busy)
		return
	}
	s.ok(handle, wire.EncodeHeaders(newest))
}

// newestOf are the headers of an author's highest rounds that this node has met,
// one a fragment, with or without their payloads.
func (s *serve) newestOf(author wire.PeerID) []wire.SignedHeader {
	newest := s.chain.Newest(author)
	for _, v := range s.seen.ring {
		h := v.header.Header
		if h.Author != author {
			continue
		}
		i := slices.IndexFunc(newest, func(n wire.SignedHeader) bool { return n.Header.Fragment == h.Fragment })
		switch {
		case i < 0:
			newest = append(newest, *v.header)
		case newest[i].Header.Round < h.Round:
			newest[i] = *v.header
		}
	}
	slices.SortFunc(newest, func(a, b wire.SignedHeader) int { return cmp.Compare(a.Header.Fragment, b.Header.Fragment) })
	return newest
}
