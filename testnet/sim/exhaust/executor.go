package exhaust

import (
	"errors"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/testnet/sim/memory"
)

// executor does at once what a replica wants done, while its process lives.
type executor struct{ n *node }

func (x executor) do(do func()) {
	if x.n.up {
		do()
	}
}

// Disk implements replica.Exec, as do the methods up to Cut.
func (x executor) Disk(do func())              { x.do(do) }
func (x executor) Fold(do func())              { x.do(do) }
func (x executor) Learn(do func())             { x.do(do) }
func (x executor) Post(do func(now core.Time)) { x.do(func() { do(x.n.clock) }) }
func (x executor) Elapsed() int64              { return 0 }
func (x executor) Cut() bool                   { return false }

func (x executor) Serve(_ uint64, do func(gone func() bool)) {
	x.do(func() { do(func() bool { return false }) })
}

// Install is never needed: nobody is so far behind.
func (x executor) Install(func()) { x.n.broken("takes a snapshot inside of the window") }

// Announce is when a torn step ends: the delta is durable, and nothing of it has left.
func (x executor) Announce(do func(now core.Time)) {
	if x.n.torn {
		x.n.crash()
		return
	}
	x.Post(do)
}

// Publish implements replica.Net, as do the methods up to Reply.
func (x executor) Publish(message []byte) {
	x.send(output{kind: outMessage, bytes: string(message)})
}

func (x executor) Call(e gossip.Call) {
	x.do(func() { x.n.calls[e.ID] = string(e.Request) })
	x.send(output{kind: outCall, to: indexOf(e.To), call: e.ID, bytes: string(e.Request)})
}

func (x executor) Reply(handle uint64, r replica.Reply) {
	q, ok := x.n.asked[handle]
	if !ok {
		x.n.broken("answers handle %d twice", handle)
		return
	}
	delete(x.n.asked, handle)
	x.send(output{kind: outAnswer, to: q.from, call: q.call, bytes: string(r.Response)})
	if r.Payload != (wire.Digest{}) {
		x.Post(func(now core.Time) {
			x.n.machine().Step(now, gossip.Replied{Handle: handle, Payload: r.Payload})
		})
	}
}

func (x executor) send(o output) {
	x.do(func() { x.n.out = append(x.n.out, o) })
}

// Hangup does nothing: an answer that nobody waits for is passed over.
func (x executor) Hangup(uint64) {}

// Dial and what follows is never needed: all nodes that are up are connected.
func (x executor) Dial(peer wire.PeerID, _ []string) { x.n.broken("dials %v", peer) }
func (x executor) Discover()                         { x.n.broken("looks for peers") }
func (x executor) Reserve(wire.PeerID)               { x.n.broken("reserves a slot at a relay") }
func (x executor) Release(wire.PeerID)               { x.n.broken("gives up a slot at a relay") }
func (x executor) Keep(wire.PeerID)                  {}
func (x executor) Drop(_ wire.PeerID, why string)    { x.n.broken("drops an honest peer: %s", why) }
func (x executor) Disconnect(wire.PeerID)            { x.n.broken("ends the visit of a peer that does not look") }
func (x executor) Reconnect(peer wire.PeerID) {
	x.send(output{kind: outReconnect, to: indexOf(peer)})
}

// Saw implements replica.Watcher.
func (x executor) Saw(event any) {
	switch e := event.(type) {
	case core.MayStep:
		x.n.may = e.Yes
	case core.Finished:
		x.n.done = true
	case gossip.Misbehaved, gossip.StateDiffers, core.Verdict, core.Refused, replica.Damaged, replica.DraftFailed, replica.FoldFailed:
		x.n.broken("%T among honest nodes inside of the window: %+v", e, e)
	}
}

// Check implements replica.Watcher.
func (x executor) Check(what string, err error) {
	if err != nil {
		x.n.broken("%s: %v", what, err)
	}
}

// Fail implements replica.Watcher.
func (x executor) Fail(err error) { x.n.broken("%v", err) }

// arithmetic folds, and no delta of an honest node is refused.
type arithmetic struct{ n *node }

func (arithmetic) CheckPayload(d outer.Delta, payload []byte) error {
	return params.CheckPayload(plan[0], d, payload)
}

func (arithmetic) Fold(_ int, prev *outer.Tip, set []outer.Contribution) (*outer.Tip, outer.Result, error) {
	tip, result, err := outer.Fold(params, plan[0], prev, prev.Round+1, set)
	if err == nil && len(result.Refused) > 0 {
		err = result.Refused[0].Err
	}
	if errors.Is(err, outer.ErrEnded) {
		err = nil
	}
	return tip, result, err
}

func (arithmetic) Intern(tip *outer.Tip) *outer.Tip { return tip }

// ledger sees to it that no round is signed twice.
type ledger struct {
	*memory.Ledger
	n *node
}

// PutOwn implements replica.Ledger.
func (l ledger) PutOwn(e core.StoreOwn) error {
	if mark, _ := l.Mark(0); e.Header.Header.Round <= mark {
		l.n.broken("signs round %d twice", e.Header.Header.Round)
	}
	return l.Ledger.PutOwn(e)
}

// learner gets no draft back: everything that it drafts can be published.
type learner struct {
	*outer.Learner
	owner *node
}

// Return implements replica.Learner.
func (l learner) Return(int, outer.Own) error {
	l.owner.broken("returns a draft")
	return nil
}
