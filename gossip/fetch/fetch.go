package fetch

import (
	"slices"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// New returns a machine that wants nothing yet.
func New(t *peers.Table, h *peers.Heartbeats, cfg Config) *Fetch {
	return &Fetch{
		Table: t, cfg: cfg, relays: relays{Table: t, heartbeats: h},
		byID: map[wire.Digest]*want{}, counts: map[wire.PeerID]int{}, failed: map[wire.PeerID]int{},
	}
}

// Tick ends what took too long, or came to be of no use, and asks for whatever can
// be asked for now.
func (f *Fetch) Tick() {
	for i := 0; i < len(f.wants); { // an end moves the next want to i
		w := f.wants[i]
		f.reclass(w)
		switch {
		case w.ends(f.Now):
			f.giveUp(w, "took too long")
		case w.state != taken && f.cfg.Final(w.header.Header):
			f.outlived(w)
		default:
			i++
		}
	}
	f.Pump()
}

// Announced begins to fetch the payload of a header that gossip brought just now.
func (f *Fetch) Announced(id wire.Digest, s *wire.SignedHeader, from wire.PeerID) {
	f.relays.announced(s.Header)
	if f.byID[id] == nil {
		if w := f.add(id, s, wantTtlMs, false); w != nil {
			author, load := s.Header.Author, f.relays.load()
			w.brought, w.narrow = from, load.narrow(author)
			w.goVia(f.relays.via(load, id, author))
		}
	}
	f.Forwarded(id, from)
}

// Forwarded notes a further peer that should have the payload of id, if it is
// still wanted, and asks it if it is its turn.
func (f *Fetch) Forwarded(id wire.Digest, from wire.PeerID) {
	if w := f.byID[id]; w != nil && w.state != taken && from != f.Config.Self {
		w.also(from)
		f.advance(w)
	}
}

// Want begins to fetch the payload of s, which a peer listed. It reports false if there is no
// room.
func (f *Fetch) Want(id wire.Digest, s *wire.SignedHeader, from wire.PeerID) bool {
	if f.byID[id] == nil && f.add(id, s, wantTtlMs, !f.Stranger(from)) == nil {
		return false
	}
	f.Forwarded(id, from)
	return true
}

// Listed notes a peer that says it holds the payload of id, not only that it heard
// of it: it is asked before the others.
func (f *Fetch) Listed(id wire.Digest, by wire.PeerID) {
	switch w := f.byID[id]; {
	case w == nil || w.state == taken:
	case by == w.author.id:
		w.author.tries = 0
	default:
		w.first(source{id: by, holds: true})
	}
}

// Came hands up a payload that came along with its header.
func (f *Fetch) Came(id wire.Digest, s *wire.SignedHeader, payload []byte) {
	w := f.byID[id]
	if w == nil {
		w = f.add(id, s, storeTtlMs, false)
	}
	if w != nil && w.state != taken {
		f.take(w, payload)
	}
}

// Stored says that this node verified and keeps the payload of id.
func (f *Fetch) Stored(id wire.Digest) {
	f.disk.Worked()
	f.end(id, Held)
}

// NotStored says that the payload of id came and could not be kept.
func (f *Fetch) NotStored(id wire.Digest) {
	f.disk.Failed(f.Now)
	f.end(id, Missing)
}

// Invalid says that the payload of id came and is unusable.
func (f *Fetch) Invalid(id wire.Digest) { f.end(id, Missing) }

// Useless says that the outer side has no use for the payload of id.
func (f *Fetch) Useless(id wire.Digest) { f.end(id, Unwanted) }

// Clear forgets what is wanted. What came already is with the outer side.
func (f *Fetch) Clear() {
	for _, w := range slices.Clone(f.wants) {
		if w.state != taken {
			f.end(w.id, Missing)
		}
	}
}

// Published counts a payload of this node's own that others ask for.
func (f *Fetch) Published(bytes int) { f.relays.own.add(f.Now, bytes) }

// Relayed reports whether others spread an own delta: this node's uplink is too thin to.
func (f *Fetch) Relayed(id wire.Digest) bool {
	return f.relays.load().relay(id, f.Config.Self) != wire.PeerID{}
}

// Wants reports whether the payload of id is wanted.
func (f *Fetch) Wants(id wire.Digest) bool { return f.byID[id] != nil }

// Idle reports whether no payload is wanted.
func (f *Fetch) Idle() bool { return len(f.wants) == 0 }

// Doubts reports whether a payload that is wanted may never come, and a peer that listed it does not give it.
func (f *Fetch) Doubts(id wire.Digest, peer wire.PeerID) bool {
	w := f.byID[id]
	if w == nil || w.state == taken || w.class == sure || peer == w.author.id {
		return false
	}
	s := w.find(peer)
	return s != nil && s.tries >= MaxTries && !s.asked
}

// Relies reports whether this node waits for id at a peer that is to relay it.
func (f *Fetch) Relies(id wire.Digest, on wire.PeerID) bool {
	w := f.byID[id]
	if w == nil {
		return false
	}
	s := w.find(on)
	return s != nil && s.relay && s.asked
}

// Sizes calls each with how much is held of what others may cause, and what bounds it.
func (f *Fetch) Sizes(each func(what string, count, most int)) {
	each("payloads wanted", len(f.wants), maxWants)
	each("payloads wanted of strangers", f.strangers, maxStrangersWants)
	each("failing sources of payloads", len(f.failed), maxWants)
	ofOne := 0
	for _, n := range f.counts {
		ofOne = max(ofOne, n)
	}
	each("payloads wanted of one author", ofOne, maxWantsPerAuthor)
	each("pulls", f.flying, MaxPulls)
	each("pulls of what may never come", f.inDoubt, maxDoubtful)
	for _, p := range f.List {
		of := peerOf(p)
		each("pulls of one peer", of.calls, maxSmallPulls)
		each("pulls at one relay", of.relayed, maxRelayCalls)
		if of.calls > MaxPullsPerPeer {
			each("bytes of many small pulls of one peer", of.bytes, smallPullBytes)
		}
	}
}
