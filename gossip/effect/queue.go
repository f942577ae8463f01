package effect

import (
	"cmp"
	"errors"
	"slices"

	"atoll/gossip/wire"
)

// Time is milliseconds since any origin. It never goes back. It is an alias, so
// that the times of both cores and of all that drive them are of one type.
type Time = int64

// CallGraceMs is added to a call's timeout before the core stops waiting
// for the caller's Answered.
const CallGraceMs = 2_000

// Queue holds the effects of one core until they are taken, and its calls until they are answered.
type Queue struct {
	Now     Time  // of the present input
	Took    int64 // ms from first to last byte of the answer that is being taken, 0 if unknown
	Paused  bool  // nothing heavy is asked for or given
	effects []Effect
	calls   []call // by id, as ids only grow
	lastID  uint64
}

// call is a request that awaits its answer.
type call struct {
	id       uint64
	to       wire.PeerID
	sent     Time
	small    bool // its answer is there at once, so it shows the way
	large    bool // its answer may be
	deadline Time
	done     func(body []byte, err error)
}

var (
	// ErrNoAnswer ends a call that the caller never answered.
	ErrNoAnswer = errors.New("no answer in time")
	// ErrHungUp ends a call by HangUp.
	ErrHungUp = errors.New("not needed any more")
)

// At sets the time of an input. A clock that goes back is held.
func (q *Queue) At(now Time) { q.Now = max(q.Now, now) }

// Take returns the effects queued since it was last called, in order.
func (q *Queue) Take() []Effect {
	out := q.effects
	q.effects = nil
	return out
}

// Emit queues an effect.
func (q *Queue) Emit(f Effect) { q.effects = append(q.effects, f) }

// Event queues an Event.
func (q *Queue) Event(kind EventKind, p wire.PeerID, text string) {
	q.Emit(Event{Kind: kind, Peer: p, Text: text})
}

// CallMs is the time for a small answer (peer list, rounds, headers, manifest).
const CallMs = 20_000

// Call sends a request whose answer, status included, has at most max bytes. done receives the
// body of an OK answer, or an error: one of wire's for the other statuses, else what the caller
// reported. It is called exactly once, during a later input, or by HangUp.
func (q *Queue) Call(to wire.PeerID, r wire.Request, max int, timeoutMs int64, done func(body []byte, err error)) (id uint64) {
	q.lastID++
	q.calls = append(q.calls, call{
		id: q.lastID, to: to, sent: q.Now, small: r.Kind.AtOnce(), large: r.Kind.Large(), deadline: q.Now + (timeoutMs + CallGraceMs),
		done: func(b []byte, err error) { done(openAnswer(b, max, err)) },
	})
	q.Emit(Call{ID: q.lastID, To: to, Request: r.Encode(), MaxResponse: max, TimeoutMs: timeoutMs})
	return q.lastID
}

// Calls are the calls that await their answers, the oldest first.
func (q *Queue) Calls() []uint64 {
	ids := make([]uint64, len(q.calls))
	for i, c := range q.calls {
		ids[i] = c.id
	}
	return ids
}

// Small says to whom a call went whose answer is there at once, and when. ok is false for
// others, and for one that awaits no answer any more.
func (q *Queue) Small(id uint64) (to wire.PeerID, sent Time, ok bool) {
	if i, found := q.find(id); found && q.calls[i].small {
		return q.calls[i].to, q.calls[i].sent, true
	}
	return to, 0, false
}

// HangUp ends a call that nobody needs the answer of.
func (q *Queue) HangUp(id uint64) {
	if c, ok := q.finish(id); ok {
		q.Emit(Hangup{ID: id})
		c.done(nil, ErrHungUp)
	}
}

// HangUpHeavy ends the calls whose answers may be large.
func (q *Queue) HangUpHeavy() {
	for _, c := range slices.Clone(q.calls) {
		if c.large {
			q.HangUp(c.id)
		}
	}
}

func openAnswer(b []byte, max int, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return wire.OpenResponse(b, max)
}

// Answered hands an answer to the machine that made the call. A late one is ignored.
func (q *Queue) Answered(id uint64, b []byte, err error) {
	if c, ok := q.finish(id); ok {
		c.done(b, err)
	}
}

// finish forgets a call and returns it.
func (q *Queue) finish(id uint64) (c call, ok bool) {
	i, ok := q.find(id)
	if ok {
		c = q.calls[i]
		q.calls = slices.Delete(q.calls, i, i+1)
	}
	return c, ok
}

func (q *Queue) find(id uint64) (int, bool) {
	return slices.BinarySearchFunc(q.calls, id, func(c call, id uint64) int {
		return cmp.Compare(c.id, id)
	})
}

// ExpireCalls ends calls that the caller forgot, so that nothing here waits
// for ever on a fault elsewhere.
func (q *Queue) ExpireCalls() {
	var late []uint64
	for _, c := range q.calls {
		if q.Now > c.deadline {
			late = append(late, c.id)
		}
	}
	q.Took = 0
	for _, id := range late {
		q.Answered(id, nil, ErrNoAnswer)
	}
}
