package gossip

import (
	"cmp"
	"errors"
	"slices"

	"atoll/gossip/wire"
)

// env is what the machines of one Core share: configuration, the view of the
// outer side, the time of the current input, queued effects, the table of
// peers, and calls in flight.
type env struct {
	cfg     Config
	chain   Chain
	now     Time
	effects []Effect
	peers   peers
	common  []uint32 // per fragment: the last round at which a peer showed this node's chain
	calls   []call   // by id, as ids only grow
	lastID  uint64
	took    int64 // ms from first to last byte of the answer that is being taken, 0 if unknown
	period  int64 // own heartbeat period in ms, as of the last tick
	paused  bool  // nothing heavy is asked for or given: see Core.Rest
	moves   bool  // addresses change while nodes run, as on the internet
}

// call is a request that awaits its answer.
type call struct {
	id       uint64
	to       wire.PeerID
	sent     Time
	small    bool // its answer is there at once, so it shows the way
	deadline Time
	done     answer
}

// answer receives the body of an OK answer, or an error: one of wire's for
// the other statuses, else what the caller reported.
type answer func(body []byte, err error)

var (
	// errNoAnswer ends a call that the caller never answered.
	errNoAnswer = errors.New("no answer in time")
	// errHungUp ends a call by hangUp.
	errHungUp = errors.New("not needed any more")
)

func (e *env) emit(f Effect) { e.effects = append(e.effects, f) }

func (e *env) event(kind EventKind, p wire.PeerID, text string) {
	e.emit(Event{Kind: kind, Peer: p, Text: text})
}

// misbehaved reports a peer that broke the protocol, remembers why, and has
// it dropped if that goes on.
func (e *env) misbehaved(id wire.PeerID, reason string) {
	e.emit(Misbehaved{Peer: id, Reason: reason})
	p := e.peers.find(id)
	if p == nil {
		return
	}
	if p.refused != reason {
		p.refused = reason
		e.event(EventMisbehaved, id, reason)
	}
	p.faults++
	if p.faults >= maxFaults && p.connected {
		p.faults = 0
		e.emit(Drop{Peer: id, Reason: reason})
	}
}

// call sends a request whose answer, status included, has at most max bytes.
// done is called exactly once, during a later input, or by hangUp.
func (e *env) call(to wire.PeerID, r wire.Request, max int, timeoutMs int64, done answer) (id uint64) {
	e.lastID++
	e.calls = append(e.calls, call{
		id: e.lastID, to: to, sent: e.now, small: showsWay(r.Kind), deadline: e.now + (timeoutMs + callGraceMs),
		done: func(b []byte, err error) { done(openAnswer(b, max, err)) },
	})
	e.emit(Call{ID: e.lastID, To: to, Request: r.Encode(), MaxResponse: max, TimeoutMs: timeoutMs})
	return e.lastID
}

// hangUp ends a call that nobody needs the answer of.
func (e *env) hangUp(id uint64) {
	if c, ok := e.finish(id); ok {
		e.emit(Hangup{ID: id})
		c.done(nil, errHungUp)
	}
}

func openAnswer(b []byte, max int, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	return wire.OpenResponse(b, max)
}

// answered hands an answer to the machine that made the call. A late one is ignored.
func (e *env) answered(id uint64, b []byte, err error) {
	c, ok := e.finish(id)
	if !ok {
		return
	}
	if err == nil {
		e.sampleWay(c, len(b))
	}
	c.done(b, err)
}

// finish forgets a call and returns it.
func (e *env) finish(id uint64) (c call, ok bool) {
	i, ok := slices.BinarySearchFunc(e.calls, id, func(c call, id uint64) int {
		return cmp.Compare(c.id, id)
	})
	if ok {
		c = e.calls[i]
		e.calls = slices.Delete(e.calls, i, i+1)
	}
	return c, ok
}

// expireCalls ends calls that the caller forgot, so that nothing here waits
// for ever on a fault elsewhere.
func (e *env) expireCalls() {
	var late []uint64
	for _, c := range e.calls {
		if e.now > c.deadline {
			late = append(late, c.id)
		}
	}
	e.took = 0
	for _, id := range late {
		e.answered(id, nil, errNoAnswer)
	}
}

// usable reports whether p can be asked now: connected and heard recently.
func (e *env) usable(p *peer) bool {
	return p != nil && p.connected && e.heardLately(p)
}

// guest reports whether a peer is a guest of the run: keys are free to guests, so their claims count for nothing.
func (e *env) guest(id wire.PeerID) bool { return e.cfg.Members.Guest(id) }

// trusts reports whether the link names a peer that is no guest.
func (e *env) trusts(id wire.PeerID) bool { return e.cfg.trusts(id) && !e.guest(id) }

// contributed reports whether p is more than a key that anybody can make: the link
// names it, or a delta of it was folded here. A guest never is.
func (e *env) contributed(p *peer) bool { return e.trusts(p.id) || e.chain.Contributed(p.id) }

// poll counts the live peers that may vote, and how many of them say so.
func (e *env) poll(votes, says func(*peer) bool) (peers, yes int) {
	for _, p := range e.peers.list {
		if e.live(p) && votes(p) {
			peers++
			if says(p) {
				yes++
			}
		}
	}
	return peers, yes
}

// fragmentOf checks that f names a fragment of this run.
func (e *env) fragmentOf(f uint16) bool { return int(f) < e.chain.Fragments() }

// unionBase is the newest round of f below which this node reconciles nothing:
// where its history begins, or where the union window does.
func (e *env) unionBase(f int) uint32 {
	closed := e.chain.Closed(f)
	return max(e.chain.Base(f), closed-min(closed, e.cfg.WindowUnion))
}
