package node

import (
	"context"
	"errors"
	"fmt"
	"time"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
)

// network takes an event of the host.
func (n *node) network(e p2p.Event) {
	now := n.clock.Now()
	switch e := e.(type) {
	case p2p.PeerUp:
		if !e.Record.Visits {
			n.screen.PeerUp(e.ID, e.Record.Role, e.Addr)
			n.duplicate.peerUp(now)
		}
		n.machine.Step(now, gossip.PeerUp{Peer: e.ID, Signed: e.Signed, Record: e.Record, Near: e.Near})
	case p2p.PeerDown:
		n.machine.Step(now, gossip.PeerDown{Peer: e.ID})
	case p2p.RecordChanged:
		n.machine.Step(now, gossip.RecordChanged{Peer: e.ID, Signed: e.Signed, Record: e.Record})
	case p2p.Addresses:
		n.readdress(now, e)
	case p2p.Reserved:
		n.reserved(now, e)
	case p2p.Hint:
		n.machine.Step(now, gossip.Hinted{Peer: e.ID, Addrs: e.Addrs})
	case p2p.Refused:
		n.screen.Refused(e.ID, e.Addr, shownReason{e.Reason})
		n.machine.ToldRevoked(now, e.Reason.Error())
		if n.keptOut(e.Reason) {
			n.fail(fmt.Errorf("join run %v: %w", n.run, shownReason{e.Reason}))
		}
	case p2p.Message:
		n.message(now, e)
	case p2p.Stranger:
		n.machine.Step(now, gossip.Stranger{From: e.From, Stranger: e.Stranger})
	case p2p.Has:
		n.has(now, e)
	}
}

// keptOut reports whether a newcomer that only looked is refused, now that it is to take part, and nobody else is there who lets it in. It
// must not wait, or train, beside a run that it is not in.
func (n *node) keptOut(reason error) bool {
	return n.told && errors.Is(reason, p2p.ErrRefusedByPeer) && errors.Is(reason, p2p.ErrNotAdmitted) && n.machine.View().Joins() && len(n.host.Connected()) == 0
}

// shownReason is a refusal as people read it.
type shownReason struct{ error }

func (r shownReason) Error() string { return member.Shown(r.error.Error()) }
func (r shownReason) Unwrap() error { return r.error }

func (n *node) message(now core.Time, e p2p.Message) {
	msg, err := wire.Decode(e.Data) // the host has opened it, which is its Check
	if err != nil {
		n.log.Warn("gossip message", "from", e.From, "err", err)
		return
	}
	if b := msg.Heartbeat; b != nil && b.Author == n.self && b.Incarnation != n.started.UnixMilli() {
		n.heardDuplicate(now, *b)
		return
	}
	n.screen.Heard(now, msg)
	n.machine.Step(now, gossip.Received{From: e.From, Message: msg})
	n.announced(now, e.ID, msg)
}

// asker is a stream that waits for its reply.
type asker struct {
	ctx     context.Context // ends with the stream
	answers chan replica.Reply
}

// serve answers a stream request. It runs on the stream's goroutine, asks the
// loop, and waits for its reply. ctx ends when the response has left, or when
// the stream failed and nothing was handed over.
func (n *node) serve(ctx context.Context, from wire.PeerID, request []byte) []byte {
	answers := make(chan replica.Reply, 1)
	var handle uint64 // of the loop
	reached := time.Now()
	n.post(func(now core.Time) {
		n.handle++
		handle = n.handle
		n.handles[handle] = asker{ctx, answers}
		n.machine.Step(now, gossip.Requested{Handle: handle, From: from, Request: request})
	})
	select {
	case r := <-answers:
		if r.Bulk {
			p2p.AfterLeft(ctx, func() {
				n.post(func(now core.Time) { n.machine.Step(now, gossip.Left{Handle: handle}) })
			})
			context.AfterFunc(ctx, func() {
				payload := handedOver(ctx, r)
				n.post(func(now core.Time) { n.machine.Step(now, gossip.Replied{Handle: handle, Payload: payload}) })
			})
		}
		n.trace.Served(r.Payload, from, reached.UnixMilli())
		n.sending("reply")
		return r.Response
	case <-ctx.Done():
		n.post(func(now core.Time) {
			delete(n.handles, handle)
			n.machine.Step(now, gossip.Replied{Handle: handle})
		})
		return wire.Response{Status: wire.Busy}.Encode()
	}
}

// handedOver is the delta that the asker has because of a reply whose stream
// ended, or zero.
func handedOver(ctx context.Context, r replica.Reply) wire.Digest {
	if errors.Is(context.Cause(ctx), p2p.ErrSent) {
		return r.Payload
	}
	return wire.Digest{}
}
