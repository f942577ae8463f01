package trace

import (
	"atoll/gossip"
	"atoll/gossip/wire"
)

// Bounds of what a line says of requests that failed: a node that asks again and again
// is seen by the first, and by their number.
const (
	maxFailures = 8
	maxWhy      = 160 // bytes of an error
)

// request is one for a payload, under way.
type request struct {
	delta wire.Digest
	of    wire.PeerID
	at    int64
}

// asked records a request for the payload of a delta.
func (r *Recorder) asked(now int64, e gossip.Call, id wire.Digest) {
	l := r.open[id]
	if l == nil {
		return
	}
	r.calls[e.ID] = request{delta: id, of: e.To, at: now}
	if l.Requests++; l.Asked == 0 {
		l.Asked = now
	}
}

// Answered takes the outcome of a Call: when its first and its last byte came, and what
// they were. A Recorder that is nil takes nothing.
func (r *Recorder) Answered(call uint64, first, last int64, response []byte, err error) {
	if r == nil {
		return
	}
	r.at(func(now int64) {
		q, known := r.calls[call]
		delete(r.calls, call)
		l := r.open[q.delta]
		if !known || l == nil {
			return
		}
		had := l.LastByte != 0 || l.Inline
		switch why := failure(response, err); {
		case had && why == "":
			l.Again++
		case had:
		case why == "":
			l.Requested, l.FirstByte, l.LastByte, l.Gave = q.at, first, last, q.of
		case why == wire.Busy.String():
			l.Busy++
			l.fail(now, q, why)
		default:
			l.Failed++
			l.fail(now, q, why)
		}
	})
}

// failure says why an answer has no payload, "" where it has one.
func failure(response []byte, err error) string {
	switch {
	case err != nil:
		return err.Error()[:min(len(err.Error()), maxWhy)]
	case len(response) == 0:
		return "nothing"
	case wire.Status(response[0]) == wire.OK:
		return ""
	}
	return wire.Status(response[0]).String()
}

func (l *Line) fail(now int64, q request, why string) {
	if len(l.Failures) < maxFailures {
		l.Failures = append(l.Failures, Failure{Of: q.of, Asked: q.at, Ended: now, Why: why})
	}
}

// Served records that this node begins to give the payload of a delta to a peer whose
// request came at a time. A Recorder that is nil takes nothing.
func (r *Recorder) Served(delta wire.Digest, to wire.PeerID, reached int64) {
	if r == nil || delta == (wire.Digest{}) {
		return
	}
	r.at(func(now int64) {
		r.put(entry{Served: &Served{Delta: delta, Node: r.cfg.Self, To: to, Reached: reached, Begun: now}})
	})
}
