package node

import (
	"context"
	"time"

	"atoll/gossip"
	"atoll/gossip/p2p"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
)

// executor is what a replica needs of a process: goroutines, and the host.
type executor struct{ n *node }

// Disk implements replica.Exec, as do the methods up to Cut.
func (x executor) Disk(do func()) { x.n.work.disk.Put(do) }
func (x executor) Fold(do func()) { x.n.work.folds.Put(do) }

// Install waits for the chunks to be on disk, and for the folds that it overtakes.
func (x executor) Install(do func()) {
	x.n.work.disk.Put(func() { x.n.work.folds.Put(do) })
}

func (x executor) Learn(do func()) { x.n.train.Do(do) }

// Serve does nothing for a stream that failed before the loop came to it. Handle 0 is
// no stream.
func (x executor) Serve(handle uint64, do func(gone func() bool)) {
	stream := x.n.handles[handle].ctx
	if stream == nil && handle != 0 {
		return
	}
	x.n.work.goRun(func(ctx context.Context) {
		do(func() bool { return ctx.Err() != nil || stream != nil && stream.Err() != nil })
	})
}

func (x executor) Post(do func(core.Time))     { x.n.post(do) }
func (x executor) Announce(do func(core.Time)) { x.n.post(do) }
func (x executor) Elapsed() int64              { return x.n.clock.Awake().Milliseconds() }
func (x executor) Cut() bool                   { return x.n.work.folding.Err() != nil }

// Publish implements replica.Net, as do the methods up to Reply.
func (x executor) Publish(message []byte) {
	n := x.n
	n.work.sends.Put(func() {
		n.sending("publish")
		if err := n.host.Publish(message); err != nil {
			n.log.Warn("publish", "err", err)
		}
	})
}

func (x executor) Call(e gossip.Call) {
	wanted, hangUp := context.WithCancel(context.Background())
	x.n.calls[e.ID] = hangUp
	x.n.work.goRun(func(ctx context.Context) { x.n.call(ctx, wanted, e) })
}

// Hangup ends the stream of a call.
func (x executor) Hangup(call uint64) {
	if hangUp := x.n.calls[call]; hangUp != nil {
		hangUp()
	}
}

func (x executor) Dial(peer wire.PeerID, addrs []string) {
	x.n.work.goRun(func(ctx context.Context) {
		x.n.dial(ctx, peer, address.PeerText(peer), func(ctx context.Context) error { return x.n.host.DialPeer(ctx, peer, addrs) })
	})
}

func (x executor) Discover()                { x.n.host.Discover(x.n.discoveryPoints()) }
func (x executor) Reserve(peer wire.PeerID) { x.n.host.Reserve(peer) }
func (x executor) Release(peer wire.PeerID) { x.n.host.Release(peer) }

func (x executor) Keep(peer wire.PeerID) { x.n.host.Keep(peer) }

func (x executor) Drop(peer wire.PeerID, reason string) {
	x.n.work.goRun(func(context.Context) { x.n.host.Drop(peer, reason) })
}

func (x executor) Disconnect(peer wire.PeerID) {
	x.n.host.Reconsider(func(id wire.PeerID) bool { return id == peer })
}

func (x executor) Reconnect(peer wire.PeerID) { x.n.host.Reconnect(peer) }

// Reply hands the reply to the stream that waits for it. If the stream is gone its
// slot is free already.
func (x executor) Reply(handle uint64, r replica.Reply) {
	if waiting, ok := x.n.handles[handle]; ok {
		delete(x.n.handles, handle)
		waiting.answers <- r
	}
}

// call sends a request for as long as its answer is wanted.
func (n *node) call(ctx, wanted context.Context, e gossip.Call) {
	ctx, cancel := context.WithTimeout(ctx, time.Duration(e.TimeoutMs)*time.Millisecond)
	defer cancel()
	defer context.AfterFunc(wanted, cancel)()
	n.sending("call")
	var came p2p.Arrival
	response, err := n.host.Call(p2p.WithArrival(ctx, &came), e.To, e.Request, e.MaxResponse)
	n.post(func(now core.Time) {
		n.calls[e.ID]()
		delete(n.calls, e.ID)
		n.trace.answered(e.ID, came, response, err)
		n.screen.Called(e, len(response))
		n.machine.Step(now, gossip.Answered{Call: e.ID, Response: response, Err: err, TookMs: came.TookMs()})
	})
}

// dialTimeout is how long one address may take: longer than a slow handshake
// over a bad link.
const dialTimeout = 15 * time.Second

// dial makes an attempt that people know by an address or the peer's name.
func (n *node) dial(ctx context.Context, peer wire.PeerID, name string, try func(context.Context) error) {
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	err := try(ctx)
	n.post(func(core.Time) {
		n.screen.Dialled(name, err)
		n.refusedAsDuplicate(peer, name, err)
	})
}

// arithmetic is the outer step of the run.
type arithmetic struct {
	params outer.Params
	plan   outer.Plan
}

// CheckPayload implements replica.Arithmetic, as do the methods below.
func (a arithmetic) CheckPayload(d outer.Delta, payload []byte) error {
	return a.params.CheckPayload(a.plan[d.Fragment], d, payload)
}

func (a arithmetic) Fold(fragment int, prev *outer.Tip, set []outer.Contribution) (*outer.Tip, outer.Result, error) {
	return outer.Fold(a.params, a.plan[fragment], prev, prev.Round+1, set)
}

func (a arithmetic) Intern(tip *outer.Tip) *outer.Tip { return tip }
