package fetch

import (
	"math"
	"slices"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// relays spreads the upload of payloads. An author whose uplink is too thin for a copy to
// everybody gives each delta once, to the first of its receivers by a weighted rendezvous
// hash of (delta, peer). The others ask that one, the relay, which parks their requests
// until it has the payload.
//
// All receivers compute this from the heartbeats and headers that all of them get. So they
// mostly agree without a word. Where they do not, or a relay fails, a receiver asks the
// others and the author. Where the author has room, or nobody else has, everybody asks
// the author: that is one hop, and a second one would gain nothing.
type relays struct {
	*peers.Table
	heartbeats *peers.Heartbeats
	own        flow // of this node's deltas
}

// uplink is the load of one node's uplink, in bytes per ms.
type uplink struct {
	id     wire.PeerID
	upload float64 // the most that it was seen to carry, as its heartbeats say; 0 if unknown
	full   bool    // it carries no more
	copies float64 // what a copy of its deltas to everybody takes
	relays bool    // others may rely on it
}

// room is what is left of an uplink, or, below 0, what is missing.
func (u uplink) room() float64 { return uplinkFill*u.upload - u.copies }

// thin reports whether an uplink cannot carry a copy to everybody.
func (u uplink) thin() bool { return u.full && u.room() < 0 }

// load is the uplinks of this node and of all live peers at a moment.
type load struct {
	uplinks []uplink
	median  float64 // the lower one of the uploads that are known, if only in part
}

// load is empty if this node does not take part, or is not connected to all that have
// contributed: then others may be without a relay.
func (r *relays) load() (l load) {
	if r.heartbeats.Said() == nil || r.heartbeats.Self().State == wire.Joining || r.Others > maxRelayed {
		return l
	}
	l.uplinks = []uplink{{id: r.Config.Self, upload: r.heartbeats.Said().Upload / 1000, full: r.heartbeats.Said().Full, copies: r.own.rate(r.Now), relays: true}}
	for _, p := range r.List {
		if !r.Live(p) {
			continue
		}
		switch {
		case p.Connected:
		case r.Contributed(p):
			return load{}
		default:
			continue // keys are free
		}
		l.uplinks = append(l.uplinks, uplink{id: p.ID, upload: p.Heartbeat.Upload / 1000, full: p.Heartbeat.Full, copies: peerOf(p).publishes.rate(r.Now), relays: p.Refused == "" && r.Now >= peerOf(p).shunned})
	}
	l.capClaims()
	return l
}

// capClaims caps what peers claim, and works out who has room.
func (l *load) capClaims() {
	var known []float64
	for _, u := range l.uplinks {
		if u.upload > 0 {
			known = append(known, u.upload)
		}
	}
	l.median = peers.LowerMedian(known)
	for i := range l.uplinks {
		u := &l.uplinks[i]
		u.upload = min(u.upload, claimFactor*l.median)
		u.copies *= float64(len(l.uplinks) - 1)
		u.relays = u.relays && u.room() > 0
	}
}

// of is the uplink of a node; one that is not known carries nothing.
func (l load) of(id wire.PeerID) uplink {
	if i := slices.IndexFunc(l.uplinks, func(u uplink) bool { return u.id == id }); i >= 0 {
		return l.uplinks[i]
	}
	return uplink{}
}

// narrow reports whether most uplinks are known to be wider than an author's: they give what
// they have of it sooner than it does.
func (l load) narrow(author wire.PeerID) bool {
	u := l.of(author)
	return u.full && relayThinner*u.upload <= l.median
}

// relay is who gets a delta from its author for all others. It is zero if everybody is to
// ask the author.
func (l load) relay(id wire.Digest, author wire.PeerID) (relay wire.PeerID) {
	if !l.of(author).thin() || !l.narrow(author) || peers.Lot(id, author) >= l.spared() {
		return relay
	}
	least := math.Inf(1)
	for _, u := range l.uplinks {
		if !u.relays {
			continue
		}
		if score := -math.Log(peers.Lot(id, u.id)) / u.room(); score < least {
			relay, least = u.id, score
		}
	}
	return relay
}

// spared is the share of what the thin uplinks have no room for that the others have room
// for. Only so many deltas are relayed: the rest would leave as late from there.
func (l load) spared() float64 {
	var spare, shed float64
	for _, u := range l.uplinks {
		switch {
		case u.relays:
			spare += u.room()
		case u.thin():
			shed += u.copies * (1 - 1/float64(len(l.uplinks)-1))
		}
	}
	if shed == 0 {
		return 0
	}
	return spare / shed
}

// via is the peer that this node is to ask for a delta before the others: the author, if
// this node is the one that gets it from there, or the relay. It is zero if everybody asks
// the author.
func (r *relays) via(l load, id wire.Digest, author wire.PeerID) wire.PeerID {
	relay := l.relay(id, author)
	if relay == r.Config.Self {
		return author
	}
	return relay
}

// announced counts a delta of a peer that gossip brought.
func (r *relays) announced(h wire.Header) {
	if p := r.Find(h.Author); p != nil {
		peerOf(p).publishes.add(r.Now, int(h.Size))
	}
}

// failed says that the author gave what a peer was to relay. That is the relay's fault: an
// author gives the first copy of each delta before further ones. It reports whether the
// peer is shunned for it. Each time takes twice as long, so one that claims a large uplink
// and gives nothing delays few deltas.
func (r *relays) failed(p *peers.Peer) bool {
	if r.Now < peerOf(p).shunned {
		return false
	}
	if peerOf(p).debt += relayFailed; peerOf(p).debt < relayCredit {
		return false
	}
	peerOf(p).debt = relayCredit - 1 // the next failure is one too many
	peerOf(p).pauseMs = min(max(2*peerOf(p).pauseMs, shunMinMs), shunMaxMs)
	peerOf(p).shunned = r.Now + peerOf(p).pauseMs
	return true
}

// gave says that a peer gave what it was to relay.
func (r *relays) gave(p *peers.Peer) { peerOf(p).debt = max(0, peerOf(p).debt-1) }
