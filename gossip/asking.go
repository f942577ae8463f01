package gossip

import (
	"errors"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// flights are the requests for one payload that await an answer. There is a second one
// only when the first is overdue: what it brings after all is still taken.
type flights struct {
	n     int
	due   Time // when the newest should have been answered
	calls []uint64
}

// full reports whether no further peer may be asked now.
func (f flights) full(now Time) bool { return f.n >= maxFlights || f.n > 0 && now < f.due }

// timeouts is how long a source of w may take: it may park the request for wait, and then
// sends for transfer, with all that was asked of it before.
func (p *pull) timeouts(w *want, s *source, q *peers.Peer) (wait, transfer int64) {
	size := int(w.header.Header.Size)
	bytes := pullOf(q).bytes + size
	transfer = min(expected(q).TransferMs(bytes)<<pullOf(q).late, peers.DeadlineMaxMs)
	if !pullOf(q).measured && !q.Claims() { // firstRate is a guess: the run says more of its links
		transfer = max(transfer, p.cfg.SweepMs)
	}
	if author := p.Find(w.author.id); s.relay && author != nil && expected(author) < expected(q) {
		wait = expected(author).TransferMs(bytes) // it has to come from there first
	}
	if !p.parks(w, s) {
		return 0, transfer
	}
	return min(max(wait, transfer), wire.MaxWaitMs), transfer
}

// ask requests the payload of w from s. After its timeout another source is asked too; the
// request goes on for as long as a transfer may take again, so that bytes under way need
// not travel twice.
func (p *pull) ask(w *want, s *source) {
	q := p.Find(s.id)
	size, from := int(w.header.Header.Size), s.id
	wait, transfer := p.timeouts(w, s, q)
	if !w.asked && !w.speculative {
		w.until = p.Now + max(wantTtlMs, wantAsks*(wait+2*transfer)) // one that waited for its turn has as long as any
	}
	w.asked = true
	s.tries++
	s.asked = true
	p.fly(w, s, q, 1)
	w.flights.due = p.Now + wait + transfer
	request := wire.Request{Kind: wire.GetPayload, Digest: w.id, WaitMs: uint32(wait)}
	limit := size + len(wire.Response{Status: wire.OK}.Encode())
	asked, began, late := *s, p.Now, pullOf(q).late
	var call uint64
	call = p.Call(from, request, limit, wait+2*transfer, func(b []byte, err error) {
		w.flights.calls = slices.DeleteFunc(w.flights.calls, func(id uint64) bool { return id == call })
		p.fly(w, &asked, q, -1)
		if s := w.find(from); s != nil {
			s.asked = false
		}
		if errors.Is(err, effect.ErrHungUp) {
			return
		}
		pullOf(q).ended(p.Now-began-wait, transfer, late, err)
		if err == nil && p.Took > 0 {
			p.measure(q, len(b))
		}
		p.answered(w, &asked, b, err)
	})
	w.flights.calls = append(w.flights.calls, call)
}

// measure takes a payload of so many bytes into what its peer is known to send. In a run of long transfers
// the first one takes the place of the guess, however much slower it was.
func (p *pull) measure(q *peers.Peer, bytes int) {
	if q.Sampled(bytes, p.Took, p.cfg.SweepMs > 0 && !pullOf(q).measured) {
		pullOf(q).measured = true
	}
}

// ended notes how long a request took that might have taken so long, twice. A peer that
// sends to several at once is slower than it says: with the same time at each try they
// would break off and begin again for ever. All requests that were under way together, with the
// time doubled late times, double it once: else a peer that gives nothing would have the longest
// time of all after a few seconds.
func (q *pullPeer) ended(took, transfer int64, late int, err error) {
	switch {
	case err != nil && took >= 2*transfer:
		q.late = max(q.late, min(late+1, maxLate))
	case err == nil && took <= transfer>>q.late:
		q.late = 0
	}
}

// hangUpAll ends the requests for w: its payload is here, or of no use any more. What else
// waits for it elsewhere would only travel in vain.
func (p *pull) hangUpAll(w *want) {
	for _, call := range slices.Clone(w.flights.calls) {
		p.HangUp(call)
	}
}

// fly adds to the requests in flight, of w and of q.
func (p *pull) fly(w *want, s *source, q *peers.Peer, n int) {
	w.flights.n += n
	if s.relay {
		pullOf(q).relayed += n
	} else {
		pullOf(q).calls += n
	}
	pullOf(q).bytes += n * int(w.header.Header.Size)
	p.bytes += n * int(w.header.Header.Size)
	p.flying += n
	if w.speculative {
		p.speculative += n
	}
}

func (p *pull) answered(w *want, s *source, b []byte, err error) {
	switch {
	case p.byID[w.id] != w || w.fetched:
		// Ended or came another way meanwhile: only the slot is freed.
	case errors.Is(err, wire.ErrBusy):
		p.again(w, s.id)
	case err != nil:
		if s.id == w.author.id && errors.Is(err, wire.ErrNotFound) {
			p.fails(s.id, MostOwed)
		}
		p.pause(w, s.id)
	default:
		p.came(w, s, b)
	}
	p.pump()
}

// came takes a payload.
func (p *pull) came(w *want, s *source, b []byte) {
	if bad := w.header.Header.CheckPayload(b); bad != nil {
		p.Misbehaved(s.id, bad.Error())
		p.exclude(w, s.id)
		return
	}
	p.handUp(w, b)
	switch q := p.Find(w.via); {
	case q == nil || w.via == w.author.id:
	case s.id == w.via:
		p.relays.gave(q)
	case s.id == w.author.id && p.relays.failed(q):
		p.goRound(w.via)
	}
}

// goRound has all that waits for a relay come another way.
func (p *pull) goRound(relay wire.PeerID) {
	load := p.relays.load()
	for _, w := range p.wants {
		if w.via == relay && !w.fetched {
			w.flights.due = min(w.flights.due, p.Now)
			w.goVia(p.relays.via(load, w.id, w.author.id))
		}
	}
}

// again lets a busy source be asked later without counting it as a try.
func (p *pull) again(w *want, from wire.PeerID) {
	if s := w.find(from); s != nil {
		s.tries--
	}
	p.pause(w, from)
}

// pause leaves a source alone for a while, in which others are asked.
func (p *pull) pause(w *want, from wire.PeerID) {
	w.flights.due = min(w.flights.due, p.Now)
	if s := w.find(from); s != nil {
		s.after = p.Now + busyRetryMs
	}
}

// exclude does not ask a source of w again.
func (p *pull) exclude(w *want, from wire.PeerID) {
	w.flights.due = min(w.flights.due, p.Now)
	if s := w.find(from); s != nil {
		s.tries = maxTries
	}
}

// expected is the rate at which a peer should send. Before something of it was measured
// that is what it says that its uplink carries: one that claims much has little time.
func expected(q *peers.Peer) peers.Rate {
	if !pullOf(q).measured && q.Claims() {
		return max(q.Rate, peers.Rate(q.Heartbeat.Upload/1000))
	}
	return q.Rate
}
