package gossip

import (
	"cmp"
	"encoding/binary"
	"math"
	"slices"

	"atoll/gossip/wire"
)

// relays spreads the upload of payloads. An author whose uplink is too thin for a copy to
// everybody gives each delta once, to the first of its receivers by a weighted rendezvous
// hash of (delta, peer). The others ask that one, the relay, which parks their requests
// until it has the payload.
//
// All receivers compute this from the beats and headers that all of them get. So they
// mostly agree without a word. Where they do not, or a relay fails, a receiver asks the
// others and the author. Where the author has room, or nobody else has, everybody asks
// the author: that is one hop, and a second one would gain nothing.
type relays struct {
	*env
	beats *beats
	own   flow // of this node's deltas
}

// relayPeer is what relays knows of a peer.
type relayPeer struct {
	publishes flow
	debt      int   // of relayCredit
	shunned   Time  // nobody relies on it before
	pauseMs   int64 // for which it was shunned last
}

// uplink is the load of one node's uplink, in bytes per ms.
type uplink struct {
	id     wire.PeerID
	upload float64 // measured, as its beats say; 0 if unknown
	copies float64 // what a copy of its deltas to everybody takes
	relays bool    // others may rely on it
	score  float64 // its place for one delta: the smallest is the first
}

// room is what is left of an uplink, or, below 0, what is missing.
func (u uplink) room() float64 { return uplinkFill*u.upload - u.copies }

// thin reports whether an uplink cannot carry a copy to everybody.
func (u uplink) thin() bool { return u.upload > 0 && u.room() < 0 }

// via is the peer to ask for a delta before the others: the author, if this node is the
// one that gets it from there, or a relay. It is zero if everybody asks the author.
func (r *relays) via(id wire.Digest, author wire.PeerID) (p wire.PeerID) {
	return r.place(r.ranked(id, author), author)
}

// place is whom this node asks, of receivers in their order.
func (r *relays) place(ranked []uplink, author wire.PeerID) (p wire.PeerID) {
	switch {
	case len(ranked) == 0:
		return p
	case ranked[0].id == r.cfg.Self:
		return author
	}
	return ranked[0].id
}

// spreads reports whether others are to spread an own delta.
func (r *relays) spreads(id wire.Digest) bool { return len(r.ranked(id, r.cfg.Self)) > 0 }

// ranked are the receivers of a delta in the order of its tree, those that may relay it
// first. It is empty if everybody is to ask the author.
func (r *relays) ranked(id wire.Digest, author wire.PeerID) []uplink {
	all := r.uplinks()
	i := slices.IndexFunc(all, func(u uplink) bool { return u.id == author })
	if i < 0 || !all[i].thin() || !thinner(all, all[i]) || lot(id, author) >= spared(all) {
		return nil
	}
	all = slices.Delete(all, i, i+1)
	for i, u := range all {
		all[i].score = -math.Log(lot(id, u.id)) / max(u.room(), leafRoom)
	}
	slices.SortFunc(all, func(a, b uplink) int {
		return cmp.Or(cmp.Compare(boolRank(b.relays), boolRank(a.relays)), cmp.Compare(a.score, b.score), a.id.Compare(b.id))
	})
	return all
}

// thinner reports whether an uplink is clearly thinner than most.
func thinner(all []uplink, u uplink) bool { return relayThinner*u.upload <= median(all) }

// outdone reports whether most uplinks are known to be wider than an author's: they give what
// they have of it sooner than it does.
func (r *relays) outdone(author wire.PeerID) bool {
	all := r.uplinks()
	i := slices.IndexFunc(all, func(u uplink) bool { return u.id == author })
	return i >= 0 && all[i].upload > 0 && thinner(all, all[i])
}

// spared is the share of what the thin uplinks lack a place for that the others have one
// for. Only so many deltas are relayed: the rest would leave as late from there.
func spared(all []uplink) float64 {
	var spare, shed float64
	for _, u := range all {
		switch {
		case u.relays:
			spare += u.room()
		case u.thin():
			shed += u.copies * (1 - 1/float64(len(all)-1))
		}
	}
	if shed == 0 {
		return 0
	}
	return spare / shed
}

// lot is a number above 0 and at most 1 that the hash of a delta and a peer draws.
func lot(id wire.Digest, peer wire.PeerID) float64 {
	h := wire.Sum(append(id[:], peer[:]...))
	return (float64(binary.BigEndian.Uint64(h[:])>>11) + 1) / (1 << 53)
}

// uplinks are those of this node and of all live peers. They are empty if this node does
// not take part, or is not connected to all: then others may be without a relay.
func (r *relays) uplinks() []uplink {
	if r.beats.said == nil || r.beats.self.State == wire.Joining || r.peers.live > maxRelayed {
		return nil
	}
	all := []uplink{{id: r.cfg.Self, upload: r.beats.said.Upload / 1000, copies: r.own.rate(r.now), relays: true}}
	for _, p := range r.peers.list {
		if !r.live(p) {
			continue
		}
		if !p.connected {
			return nil
		}
		all = append(all, uplink{id: p.id, upload: p.beat.Upload / 1000, copies: p.relay.publishes.rate(r.now), relays: p.refused == "" && r.now >= p.relay.shunned})
	}
	most := claimFactor * median(all)
	for i := range all {
		u := &all[i]
		u.upload = min(u.upload, most)
		u.copies *= float64(len(all) - 1)
		u.relays = u.relays && u.room() > 0
	}
	return all
}

// median is the lower median of the uploads that are known.
func median(all []uplink) float64 {
	var known []float64
	for _, u := range all {
		if u.upload > 0 {
			known = append(known, u.upload)
		}
	}
	if len(known) == 0 {
		return 0
	}
	slices.Sort(known)
	return known[(len(known)-1)/2]
}

// announced counts a delta of a peer that gossip brought.
func (r *relays) announced(h wire.Header) {
	if p := r.peers.find(h.Author); p != nil {
		p.relay.publishes.add(r.now, int(h.Size))
	}
}

// failed says that the author gave what a peer was to relay. That is the relay's fault: an
// author gives the first copy of each delta before further ones. It reports whether the
// peer is shunned for it. Each time takes twice as long, so one that claims a large uplink
// and gives nothing delays few deltas.
func (r *relays) failed(p *peer) bool {
	if r.now < p.relay.shunned {
		return false
	}
	if p.relay.debt += relayFailed; p.relay.debt < relayCredit {
		return false
	}
	p.relay.debt = relayCredit - 1 // the next failure is one too many
	p.relay.pauseMs = min(max(2*p.relay.pauseMs, shunMinMs), shunMaxMs)
	p.relay.shunned = r.now + p.relay.pauseMs
	return true
}

// gave says that a peer gave what it was to relay.
func (r *relays) gave(p *peer) { p.relay.debt = max(0, p.relay.debt-1) }
