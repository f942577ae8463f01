package gossip

import (
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
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

func ownOf(p *peers.Peer) *ownPeer { return peers.Note[ownPeer](p) }

// tick asks those that can be asked and were not, those that connect later as
// well: one that knows more may be among them.
func (o *own) tick() {
	if !o.wanted {
		return
	}
	for _, p := range o.List {
		if p.Heartbeat != nil && joinsEmpty(p.Heartbeat) && len(o.came) < peers.MaxPeers {
			o.came[p.ID] = true
		}
		switch {
		case o.Usable(p):
			o.askOnce(p)
		case o.Live(p) && p.Same():
			o.told[p.ID] = true
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
	return (o.any || o.history.complete()) && o.first > 0 && o.Now-o.first >= gatherHeartbeats*o.HeartbeatPeriod() && !o.awaits() &&
		!slices.ContainsFunc(o.List, func(p *peers.Peer) bool { return o.told[p.ID] && p.Heartbeat == nil && o.Usable(p) }) // see recordClosed
}

// recordClosed notes what those who answered have closed, as they say it. Who has dropped the
// headers of a round tells none of it.
func (o *own) recordClosed() {
	if o.closed == nil {
		o.closed = make([]uint32, o.chain.Fragments())
	}
	for _, p := range o.List {
		if !o.told[p.ID] || o.Guest(p.ID) || p.Heartbeat == nil {
			continue
		}
		for f, round := range p.Heartbeat.Closed {
			o.closed[f] = max(o.closed[f], round)
		}
	}
}

// counts reports whether p has answered and may have met what this key signed. It is no guest, whose answer
// may be anybody's, it holds something of the run, and it did not join with nothing after this node began to ask.
// Newcomers that know only each other begin the run anew, while those that knew what was
// signed are perhaps asleep.
func (o *own) counts(p *peers.Peer) bool {
	return o.told[p.ID] && o.asked[p.ID] && !o.Guest(p.ID) && (o.any || p.Heartbeat != nil && p.Heartbeat.Folded > 0 && !o.came[p.ID])
}

// recordFirst notes when the first answer that counts had come.
func (o *own) recordFirst() {
	if o.first == 0 && slices.ContainsFunc(o.List, o.counts) {
		o.first = o.Now
	}
}

// awaits reports whether somebody may still know of a delta that nobody has told.
func (o *own) awaits() bool { return slices.ContainsFunc(o.List, o.mayKnowMore) }

// mayKnowMore reports whether p may know of a delta that nobody has told of. Each peer that
// is or was here may know, and so may a silent contributor or a silent peer that the
// link names. Perhaps it alone was on this node's side of a cut. Three kinds may not: a
// peer that left has said what it knows, a peer that shows this node's chain has told
// its neighbours, and a peer that joins with nothing knows nothing. Guests are asked, but
// their keys are free: who waited for them would wait for as long as they like.
func (o *own) mayKnowMore(p *peers.Peer) bool {
	if o.told[p.ID] || o.Guest(p.ID) || p.Heartbeat != nil && (p.Heartbeat.State == wire.Leaving || joinsEmpty(p.Heartbeat)) {
		return false
	}
	_, asked := o.asked[p.ID]
	return asked || o.Usable(p) || o.Contributed(p)
}

// joinsEmpty reports whether a heartbeat comes from a joiner without a snapshot.
func joinsEmpty(b *wire.Heartbeat) bool { return b.State == wire.Joining && b.Folded == 0 }

func (o *own) askOnce(p *peers.Peer) {
	if o.asked[p.ID] || o.Now < ownOf(p).after || len(o.asked) >= peers.MaxPeers {
		return
	}
	o.asked[p.ID] = true
	o.Call(p.ID, wire.Request{Kind: wire.GetOwn}, wire.GetOwn.MaxResponse(), effect.CallMs, func(b []byte, err error) {
		if err == nil {
			err = o.accept(p, b)
		}
		if err != nil {
			ownOf(p).after = o.Now + ownRetryMs
			o.asked[p.ID] = false
			return
		}
		o.told[p.ID] = true
		o.recordFirst()
	})
}

// accept believes what this node's own key has signed, from any peer.
func (o *own) accept(p *peers.Peer, b []byte) error {
	headers, err := wire.DecodeHeaders(b)
	if err != nil {
		o.Misbehaved(p.ID, err.Error())
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
