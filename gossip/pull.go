package gossip

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"atoll/gossip/wire"
)

// pull fetches the payloads that headers announce: first from the peer that
// brought the header, then from those that forwarded it again, last from its
// author. Each byte thus arrives about once.
type pull struct {
	*env
	wants  []*want // in order of arrival
	byID   map[wire.Digest]*want
	counts map[wire.PeerID]int // wants per author
	disk   diskPause
	flying int // requests in flight
	probes int // how many of them are for deltas of strangers

	// settled is told of each want that ended, and how.
	settled func(id wire.Digest, how outcome)
}

// pullPeer are the requests for payloads that a peer has yet to answer.
type pullPeer struct {
	calls int
	bytes int
}

// outcome is how a want ended.
type outcome uint8

const (
	held     outcome = iota // verified and held
	missing                 // nobody gave it, or it is unusable
	unwanted                // the outer side has no use for it
)

// want is one payload that is missing.
type want struct {
	id      wire.Digest
	header  *wire.SignedHeader
	sources []source // the author is the last resort, also if it is not listed
	author  source
	asking  bool // a request is in flight
	fetched bool // handed up, awaiting Settle
	probe   bool // the author has not contributed: it may never come
	until   Time // the want ends then
}

// source is a peer that should have the payload.
type source struct {
	id    wire.PeerID
	tries int
	after Time // not before: it was busy, or could not give it
	holds bool // it said so
}

func newPull(e *env) pull {
	return pull{env: e, byID: map[wire.Digest]*want{}, counts: map[wire.PeerID]int{}}
}

// want begins to fetch the payload of s, which from should have. It reports
// false if there is no room.
func (p *pull) want(id wire.Digest, s *wire.SignedHeader, from wire.PeerID) bool {
	if p.byID[id] != nil {
		p.source(id, from)
		return true
	}
	w := p.add(id, s, wantTtlMs)
	if w == nil {
		return false
	}
	p.source(id, from)
	return true
}

// deliver hands up a payload that came along with its header.
func (p *pull) deliver(id wire.Digest, s *wire.SignedHeader, payload []byte) {
	w := p.byID[id]
	if w == nil {
		w = p.add(id, s, storeTtlMs)
	}
	if w == nil || w.fetched {
		return
	}
	p.handUp(w, payload)
}

func (p *pull) add(id wire.Digest, s *wire.SignedHeader, ttl Time) *want {
	author := s.Header.Author
	if len(p.wants) >= maxWants || p.counts[author] >= maxWantsPerAuthor {
		return nil
	}
	w := &want{id: id, header: s, author: source{id: author}, until: p.now + ttl, probe: p.stranger(author)}
	p.wants = append(p.wants, w)
	p.byID[id] = w
	p.counts[author]++
	return w
}

// source notes a further peer that should have the payload of id, if it is
// still wanted, and asks it if it is its turn.
func (p *pull) source(id wire.Digest, from wire.PeerID) {
	w := p.byID[id]
	if w == nil || w.fetched || from == p.cfg.Self {
		return
	}
	listed := slices.ContainsFunc(w.sources, func(s source) bool { return s.id == from })
	if !listed && from != w.author.id && len(w.sources) < maxSources {
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
	w.sources = slices.DeleteFunc(w.sources, func(s source) bool { return s.id == from })
	w.sources = slices.Insert(w.sources, 0, source{id: from, holds: true})
	w.sources = w.sources[:min(len(w.sources), maxSources)]
}

// tick ends what took too long, or came to be of no use, and asks for whatever can
// be asked for now.
func (p *pull) tick() {
	for i := 0; i < len(p.wants); { // an end moves the next want to i
		w := p.wants[i]
		p.acquaint(w)
		switch {
		case p.now > w.until:
			p.giveUp(w, "took too long")
		case !w.fetched && p.final(w.header.Header):
			p.outlived(w)
		default:
			i++
		}
	}
	p.pump()
}

// final reports whether a delta is older than what this node can still fold.
func (p *pull) final(h wire.Header) bool { return h.Round <= p.unionBase(int(h.Fragment)) }

// stranger reports whether nothing of an author was folded here, though the run
// has begun.
func (p *pull) stranger(author wire.PeerID) bool {
	return !p.chain.Contributed(author) && p.chain.FoldedTokens() > 0
}

// acquaint makes a probe an ordinary want once its author is no stranger any more. To a
// node that was stopped early in a run all authors are strangers at first.
func (p *pull) acquaint(w *want) {
	if w.probe && !w.asking { // a request in flight is counted as what it was
		w.probe = !p.chain.Contributed(w.author.id)
	}
}

// pump asks for as much as there is room for: the oldest wants first, deltas of
// strangers last.
func (p *pull) pump() {
	for _, probes := range []bool{false, true} {
		for i := 0; i < len(p.wants) && p.flying < p.disk.takes(p.now, maxPulls); {
			w := p.wants[i]
			if w.probe == probes {
				p.advance(w)
			}
			if i < len(p.wants) && p.wants[i] == w {
				i++
			}
		}
	}
}

// advance asks the next source of w, if it has room, and gives up if there is
// none left.
func (p *pull) advance(w *want) {
	if w.asking || w.fetched || p.flying >= p.disk.takes(p.now, maxPulls) || w.probe && p.probes >= maxProbes {
		return
	}
	s, left := p.pick(w)
	if s != nil {
		p.ask(w, s)
		return
	}
	if !left {
		p.giveUp(w, "no source had it")
	}
}

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
		if s.holds && s.tries < maxTries && p.now >= s.after && p.usable(q) && p.room(w, q) && q.pull.calls < least {
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

func (p *pull) ask(w *want, s *source) {
	q := p.peers.find(s.id)
	size := int(w.header.Header.Size)
	transfer := q.rate.transferMs(size)
	wait := min(max(transfer, waitMinMs), waitMaxMs)
	w.asking = true
	s.tries++
	q.pull.calls++
	q.pull.bytes += size
	p.count(w, 1)
	asked, from := p.now, s.id
	request := wire.Request{Kind: wire.GetPayload, Digest: w.id, WaitMs: uint32(wait)}
	limit := size + len(wire.Response{Status: wire.OK}.Encode())
	p.call(from, request, limit, wait+transfer, func(b []byte, err error) {
		p.count(w, -1)
		q.pull.calls--
		q.pull.bytes -= size
		w.asking = false
		if err == nil {
			q.rate.sampled(len(b), p.now-asked)
		}
		p.answered(w, from, b, err)
	})
}

// count adds to the requests in flight.
func (p *pull) count(w *want, n int) {
	p.flying += n
	if w.probe {
		p.probes += n
	}
}

func (p *pull) answered(w *want, from wire.PeerID, b []byte, err error) {
	switch {
	case p.byID[w.id] != w || w.fetched:
		// Ended or came another way meanwhile: only the place is freed.
	case errors.Is(err, wire.ErrBusy):
		p.again(w, from)
	case err != nil:
		p.pause(w, from)
	default:
		if bad := w.header.Header.CheckPayload(b); bad != nil {
			p.misbehaved(from, bad.Error())
			p.exclude(w, from)
			break
		}
		p.handUp(w, b)
	}
	p.pump()
}

// again lets a busy source be asked later without counting it as a try.
func (p *pull) again(w *want, from wire.PeerID) {
	if s := w.find(from); s != nil {
		s.tries--
	}
	p.pause(w, from)
}

// pause leaves a source alone for a while, in which others may turn up.
func (p *pull) pause(w *want, from wire.PeerID) {
	if s := w.find(from); s != nil {
		s.after = p.now + busyRetryMs
	}
}

// exclude does not ask a source of w again.
func (p *pull) exclude(w *want, from wire.PeerID) {
	if s := w.find(from); s != nil {
		s.tries = maxTries
	}
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

func (p *pull) handUp(w *want, payload []byte) {
	w.fetched, w.until = true, p.now+storeTtlMs
	p.emit(Fetched{ID: w.id, Header: w.header, Payload: payload})
}

func (p *pull) giveUp(w *want, why string) {
	p.tell(w, why)
	p.end(w.id, missing)
}

// outlived ends a want whose round has become final.
func (p *pull) outlived(w *want) {
	if w.asked() {
		p.tell(w, "no source had it before the round was final")
	}
	p.end(w.id, unwanted)
}

// tell says why a payload is not asked for any more.
func (p *pull) tell(w *want, why string) {
	h := w.header.Header
	p.event(EventGaveUp, h.Author, fmt.Sprintf("payload of fragment %d round %d: %s", h.Fragment, h.Round, why))
}

// asked reports whether any source was.
func (w *want) asked() bool {
	return w.author.tries > 0 || slices.ContainsFunc(w.sources, func(s source) bool { return s.tries > 0 })
}

// end forgets the want for id, if there is one, and tells how it ended.
func (p *pull) end(id wire.Digest, how outcome) {
	if w := p.byID[id]; w != nil {
		delete(p.byID, id)
		i := slices.Index(p.wants, w)
		p.wants = slices.Delete(p.wants, i, i+1)
		if p.counts[w.author.id]--; p.counts[w.author.id] == 0 {
			delete(p.counts, w.author.id)
		}
	}
	p.settled(id, how)
}
