package gossip

import (
	"fmt"
	"maps"
	"slices"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// pull fetches the payloads that headers announce: first from the peer that
// brought the header, then from those that forwarded it again, last from its author. Where
// the author's uplink is thin, it is asked by one, and the others ask that one; see relays.
// Each byte thus arrives about once.
type pull struct {
	*env
	relays      *relays
	wants       []*want // in order of arrival
	byID        map[wire.Digest]*want
	counts      map[wire.PeerID]int // wants per author
	failed      map[wire.PeerID]int // payloads that an author owes, since one of its came
	disk        diskPause
	flying      int // requests in flight
	bytes       int // that they are for
	speculative int // how many of them are for what may never come

	strangers int // wants of strangers' deltas that nobody vouches for

	// completed is told of each want that ended, and how.
	completed func(id wire.Digest, how outcome)
}

// pullPeer are the requests for payloads that a peer has yet to answer.
type pullPeer struct {
	calls    int  // but those to it as a relay
	relayed  int  // those
	bytes    int  // of all
	late     int  // how often its time was doubled, as a request came to no end in it
	measured bool // its rate was, by a payload
}

func pullOf(p *peers.Peer) *pullPeer { return peers.Note[pullPeer](p) }

// outcome is how a want ended.
type outcome uint8

const (
	held     outcome = iota // verified and held
	missing                 // nobody gave it, or it is unusable
	unwanted                // the outer side has no use for it
)

// want is one payload that is missing.
type want struct {
	id          wire.Digest
	header      *wire.SignedHeader
	sources     []source // beside the author
	author      source
	brought     wire.PeerID // who brought the header first
	narrow      bool        // the author's uplink is narrower than most
	via         wire.PeerID // the author or a relay, to ask before the others; zero for none
	flights     flights
	asked       bool // ever, of anybody
	fetched     bool // handed up, awaiting Complete
	speculative bool // it may never come, by its author: see comesLast
	strange     bool // its author is a stranger, and nobody who is known has it
	until       Time // nobody is asked any more then
}

func newPull(e *env, r *relays) pull {
	return pull{env: e, relays: r, byID: map[wire.Digest]*want{}, counts: map[wire.PeerID]int{}, failed: map[wire.PeerID]int{}}
}

// want begins to fetch the payload of s, which from holds. It reports false if there is no
// room.
func (p *pull) want(id wire.Digest, s *wire.SignedHeader, from wire.PeerID) bool {
	if p.byID[id] != nil {
		p.source(id, from)
		return true
	}
	w := p.add(id, s, wantTtlMs, !p.Stranger(from))
	if w == nil {
		return false
	}
	p.source(id, from)
	return true
}

// announced begins to fetch the payload of a header that gossip brought just now.
func (p *pull) announced(id wire.Digest, s *wire.SignedHeader, from wire.PeerID) {
	if p.byID[id] == nil {
		if w := p.add(id, s, wantTtlMs, false); w != nil {
			author, load := s.Header.Author, p.relays.load()
			w.brought, w.narrow = from, load.narrow(author)
			w.goVia(p.relays.via(load, id, author))
		}
	}
	p.source(id, from)
}

// goVia has a peer asked before the others; zero is none.
func (w *want) goVia(via wire.PeerID) {
	w.via = via
	if via != w.author.id && via != (wire.PeerID{}) {
		w.first(source{id: via, relay: true})
	}
}

// first puts a source before the others.
func (w *want) first(s source) {
	if old := w.find(s.id); old != nil {
		s.asked = old.asked
	}
	w.sources = slices.DeleteFunc(w.sources, func(other source) bool { return other.id == s.id })
	w.sources = slices.Insert(w.sources, 0, s)
	w.sources = w.sources[:min(len(w.sources), maxPayloadSources)]
}

// deliver hands up a payload that came along with its header.
func (p *pull) deliver(id wire.Digest, s *wire.SignedHeader, payload []byte) {
	w := p.byID[id]
	if w == nil {
		w = p.add(id, s, storeTtlMs, false)
	}
	if w == nil || w.fetched {
		return
	}
	p.handUp(w, payload)
}

// add makes a want. vouched says that somebody who is known has the payload.
func (p *pull) add(id wire.Digest, s *wire.SignedHeader, ttl Time, vouched bool) *want {
	author := s.Header.Author
	strange := !vouched && p.Stranger(author)
	if p.Paused || p.counts[author] >= maxWantsPerAuthor || !p.makeRoom(strange) {
		return nil
	}
	w := &want{id: id, header: s, author: source{id: author}, until: p.Now + ttl, speculative: p.comesLast(author), strange: strange}
	p.wants = append(p.wants, w)
	p.byID[id] = w
	p.counts[author]++
	if strange {
		p.strangers++
	}
	return w
}

// makeRoom reports whether there is room for one more want. A stranger's takes the place of the
// oldest one of strangers that nobody is asked for now, as does any once all slots are taken.
func (p *pull) makeRoom(strange bool) bool {
	if len(p.wants) < maxWants && !(strange && p.strangers >= maxStrangersWants) {
		return true
	}
	i := slices.IndexFunc(p.wants, func(w *want) bool { return w.strange && !w.fetched && w.flights.n == 0 })
	if i < 0 {
		return false
	}
	p.end(p.wants[i].id, missing)
	return true
}

// source notes a further peer that should have the payload of id, if it is
// still wanted, and asks it if it is its turn.
func (p *pull) source(id wire.Digest, from wire.PeerID) {
	w := p.byID[id]
	if w == nil || w.fetched || from == p.cfg.Self {
		return
	}
	listed := slices.ContainsFunc(w.sources, func(s source) bool { return s.id == from })
	if !listed && from != w.author.id && len(w.sources) < maxPayloadSources {
		w.sources = append(w.sources, source{id: from})
	}
	p.advance(w)
}

// holder notes a peer that says it holds the payload of id, not only that it heard
// of it: it is asked before the others.
func (p *pull) holder(id wire.Digest, from wire.PeerID) {
	w := p.byID[id]
	if w == nil || w.fetched {
		return
	}
	if from == w.author.id {
		w.author.tries = 0
		return
	}
	w.first(source{id: from, holds: true})
}

// tick ends what took too long, or came to be of no use, and asks for whatever can
// be asked for now.
func (p *pull) tick() {
	for i := 0; i < len(p.wants); { // an end moves the next want to i
		w := p.wants[i]
		p.acquaint(w)
		switch {
		case p.Now > w.until && p.spent(w):
			p.giveUp(w, "took too long")
		case !w.fetched && p.final(w.header.Header):
			p.outlived(w)
		default:
			i++
		}
	}
	p.pump()
}

// spent reports whether a want ends with its time: nothing of it is under way, and it had
// its turn. A stranger's has none to wait for.
func (p *pull) spent(w *want) bool {
	return w.fetched || w.flights.n == 0 && (w.asked || w.speculative)
}

// final reports whether a delta is older than what this node can still fold.
func (p *pull) final(h wire.Header) bool { return h.Round <= p.unionBase(int(h.Fragment)) }

// comesLast reports whether an author's payloads may never come, so that they are asked for after
// all others: it is a failing source, or a stranger.
func (p *pull) comesLast(author wire.PeerID) bool { return p.failing(author) || p.Stranger(author) }

// failing reports whether an author is a failing source: it did not give what it announced recently.
func (p *pull) failing(author wire.PeerID) bool { return p.failed[author] >= MostOwed }

// doubtful reports whether a payload that is wanted may never come, and a peer that listed it does not give it.
func (p *pull) doubtful(id wire.Digest, peer wire.PeerID) bool {
	w := p.byID[id]
	if w == nil || w.fetched || !w.speculative || peer == w.author.id {
		return false
	}
	s := w.find(peer)
	return s != nil && s.tries >= maxTries && !s.asked
}

// fails counts so many payloads that an author owes. That it says itself that it has none counts
// more than that nobody had one: its uplink may be thin.
func (p *pull) fails(author wire.PeerID, times int) {
	if _, noted := p.failed[author]; !noted && len(p.failed) >= maxWants {
		maps.DeleteFunc(p.failed, func(id wire.PeerID, _ int) bool { return p.Stranger(id) })
		if len(p.failed) >= maxWants {
			return
		}
	}
	p.failed[author] += times
}

// acquaint decides anew whether a want comes last: its author may have become known, or failed.
// A stranger's delta is as any other once one of the same author was folded. A delta that came
// before the run began, when nobody was a stranger, comes last if its author is still unknown and
// cannot be asked, and another peer was asked in vain.
func (p *pull) acquaint(w *want) {
	if w.strange && p.Known(w.author.id) {
		w.strange = false
		p.strangers--
	}
	if w.flights.n == 0 { // a request in flight is counted as what it was
		last := w.speculative || w.asked && p.Begun() && !p.Usable(p.Find(w.author.id))
		w.speculative = p.failing(w.author.id) || last && !p.Known(w.author.id)
	}
}

// pump asks for as much as there is room for: the oldest wants first, and after them those that
// come last. The strangers' are the last of these, the newest first: the older ones were asked for
// in vain.
func (p *pull) pump() {
	for _, pass := range []func(w *want) bool{
		func(w *want) bool { return !w.speculative },
		func(w *want) bool { return w.speculative && !w.strange },
	} {
		for i := 0; i < len(p.wants) && p.hasRoom(); {
			w := p.wants[i]
			if pass(w) {
				p.advance(w)
			}
			if i < len(p.wants) && p.wants[i] == w {
				i++
			}
		}
	}
	for i := len(p.wants) - 1; i >= 0 && p.hasRoom() && p.speculative < maxSpeculative; i-- {
		if i < len(p.wants) && p.wants[i].speculative && p.wants[i].strange {
			p.advance(p.wants[i])
		}
	}
}

// hasRoom reports whether one more request may be in flight.
func (p *pull) hasRoom() bool { return p.flying < p.disk.allows(p.Now, maxPulls) }

// advance asks the next source of w, if it has room, and gives up if there is
// none left. One that waited for its turn longer than it may be asked for still has it.
func (p *pull) advance(w *want) {
	if w.fetched || w.flights.full(p.Now) || p.Now > w.until && (w.asked || w.speculative) || !p.hasRoom() || w.speculative && p.speculative >= maxSpeculative {
		return
	}
	s, left := p.pick(w)
	if s != nil {
		if p.full(w) {
			return
		}
		p.ask(w, s)
		return
	}
	if !left && w.flights.n == 0 {
		p.giveUp(w, "no source had it")
	}
}

// full reports whether what is asked for is all that the capped downlink of this node
// carries soon. Two requests are under way in any case: one may wait for its payload.
func (p *pull) full(w *want) bool {
	ahead := p.cfg.DownMs * downAheadMs
	return ahead > 0 && p.flying >= minDownCalls && float64(p.bytes+int(w.header.Header.Size)) > ahead
}

func (p *pull) handUp(w *want, payload []byte) {
	w.fetched, w.until = true, p.Now+storeTtlMs
	p.hangUpAll(w)
	p.Emit(Fetched{ID: w.id, Header: w.header, Payload: payload})
}

func (p *pull) giveUp(w *want, why string) {
	if w.asked {
		p.fails(w.author.id, 1)
	}
	p.report(w, why)
	p.end(w.id, missing)
}

// outlived ends a want whose round has become final.
func (p *pull) outlived(w *want) {
	if w.asked {
		p.report(w, "no source had it before the round was final")
	}
	p.end(w.id, unwanted)
}

// report says why a payload is not asked for any more.
func (p *pull) report(w *want, why string) {
	h := w.header.Header
	p.Event(EventGaveUp, h.Author, fmt.Sprintf("payload of fragment %d round %d: %s", h.Fragment, h.Round, why))
}

// end forgets the want for id, if there is one, and tells how it ended.
func (p *pull) end(id wire.Digest, how outcome) {
	if w := p.byID[id]; w != nil {
		delete(p.byID, id)
		p.hangUpAll(w)
		i := slices.Index(p.wants, w)
		p.wants = slices.Delete(p.wants, i, i+1)
		if p.counts[w.author.id]--; p.counts[w.author.id] == 0 {
			delete(p.counts, w.author.id)
		}
		if w.strange {
			p.strangers--
		}
		if how == held {
			delete(p.failed, w.author.id)
		}
	}
	p.completed(id, how)
}
