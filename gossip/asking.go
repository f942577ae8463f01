package gossip

import (
	"errors"

	"atoll/gossip/wire"
)

// flights are the requests for one payload that await an answer. There is a second one
// only when the first is overdue: what it brings after all is still taken.
type flights struct {
	n   int
	due Time // when the newest should have been answered
}

// full reports whether no further peer may be asked now.
func (f flights) full(now Time) bool { return f.n >= maxFlights || f.n > 0 && now < f.due }

// patience is how long a peer may take for n bytes beyond those that were asked of it
// before: it may park the request for wait, and then sends for transfer.
func (q *peer) patience(n int) (wait, transfer int64) {
	transfer = q.rate.transferMs(q.pull.bytes + n)
	return min(transfer, wire.MaxWaitMs), transfer
}

// ask requests the payload of w from s. After patience another source is asked too; the
// request goes on for as long as a transfer may take again, so that bytes under way need
// not travel twice.
func (p *pull) ask(w *want, s *source) {
	q := p.peers.find(s.id)
	size, from := int(w.header.Header.Size), s.id
	wait, transfer := q.patience(size)
	if !w.asked && !w.probe {
		w.until = p.now + wantTtlMs // one that waited for its turn has as long as any
	}
	w.asked = true
	s.tries++
	s.asked = true
	p.fly(w, q, 1)
	w.flights.due = p.now + wait + transfer
	request := wire.Request{Kind: wire.GetPayload, Digest: w.id, WaitMs: uint32(wait)}
	limit := size + len(wire.Response{Status: wire.OK}.Encode())
	p.call(from, request, limit, wait+2*transfer, func(b []byte, err error) {
		p.fly(w, q, -1)
		if s := w.find(from); s != nil {
			s.asked = false
		}
		if err == nil && p.took > 0 {
			q.rate.sampled(len(b), p.took)
		}
		p.answered(w, from, b, err)
	})
}

// fly adds to the requests in flight, of w and of q.
func (p *pull) fly(w *want, q *peer, n int) {
	w.flights.n += n
	q.pull.calls += n
	q.pull.bytes += n * int(w.header.Header.Size)
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

// pause leaves a source alone for a while, in which others are asked.
func (p *pull) pause(w *want, from wire.PeerID) {
	w.flights.due = min(w.flights.due, p.now)
	if s := w.find(from); s != nil {
		s.after = p.now + busyRetryMs
	}
}

// exclude does not ask a source of w again.
func (p *pull) exclude(w *want, from wire.PeerID) {
	w.flights.due = min(w.flights.due, p.now)
	if s := w.find(from); s != nil {
		s.tries = maxTries
	}
}
