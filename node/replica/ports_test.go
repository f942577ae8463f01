package replica_test

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/replica"
	"atoll/optimizer/outer"
	"atoll/testnet/sim/memory"
)

func (g *rig) put(kind string, do func()) { g.work[kind] = append(g.work[kind], do) }
func (g *rig) post(do func(core.Time))    { g.put("loop", func() { do(g.now) }) }

// Disk implements replica.Exec, as do the methods up to Cut.
func (g *rig) Disk(do func())    { g.put("disk", do) }
func (g *rig) Fold(do func())    { g.put("fold", do) }
func (g *rig) Learn(do func())   { g.put("learn", do) }
func (g *rig) Install(do func()) { g.put("install", do) }
func (g *rig) Serve(_ uint64, do func(gone func() bool)) {
	g.put("serve", func() { do(func() bool { return g.gone }) })
}
func (g *rig) Post(do func(core.Time))     { g.post(do) }
func (g *rig) Announce(do func(core.Time)) { g.post(do) }
func (g *rig) Cut() bool                   { return g.cut }
func (g *rig) Elapsed() int64 {
	ms := g.ms
	if meanwhile := g.elapsed; meanwhile != nil {
		g.elapsed = nil
		meanwhile()
	}
	return ms
}

// Publish implements replica.Net, as do the methods up to Reply.
func (g *rig) Publish(message []byte) { g.sent = append(g.sent, gossip.Publish{Bytes: message}) }
func (g *rig) Hangup(call uint64)     { g.sent = append(g.sent, gossip.Hangup{ID: call}) }
func (g *rig) Dial(peer wire.PeerID, addrs []string) {
	g.sent = append(g.sent, gossip.Dial{Peer: peer, Addrs: addrs})
}
func (g *rig) Discover()             { g.sent = append(g.sent, gossip.Discover{}) }
func (g *rig) Reserve(p wire.PeerID) { g.sent = append(g.sent, gossip.Reserve{Peer: p}) }
func (g *rig) Release(p wire.PeerID) { g.sent = append(g.sent, gossip.Release{Peer: p}) }
func (g *rig) Keep(p wire.PeerID)    { g.sent = append(g.sent, gossip.Keep{Peer: p}) }
func (g *rig) Drop(peer wire.PeerID, reason string) {
	g.sent = append(g.sent, gossip.Drop{Peer: peer, Reason: reason})
}
func (g *rig) Disconnect(peer wire.PeerID)          { g.sent = append(g.sent, gossip.EndVisit{Peer: peer}) }
func (g *rig) Reconnect(peer wire.PeerID)           { g.sent = append(g.sent, gossip.Reconnect{Peer: peer}) }
func (g *rig) Reply(handle uint64, r replica.Reply) { g.replies[handle] = r }

// Call has the snapshot source answer, if there is one.
func (g *rig) Call(e gossip.Call) {
	g.sent = append(g.sent, e)
	if g.source == nil {
		return
	}
	g.post(func(now core.Time) {
		response, err := g.source.serves(e.Request)
		g.Machine().Step(now, gossip.Answered{Call: e.ID, Response: response, Err: err})
	})
}

// serves answers requests for snapshots.
func (g *rig) serves(request []byte) ([]byte, error) {
	q, err := wire.DecodeRequest(request)
	g.check(err)
	switch q.Kind {
	case wire.GetManifest:
		return wire.Response{Status: wire.OK, Body: g.ask()}.Encode(), nil
	case wire.GetChunk:
		return wire.Response{Status: wire.OK, Body: g.chunk(q.Digest)}.Encode(), nil
	}
	return nil, errors.New("it answers nothing else")
}

// Saw implements replica.Watcher, as do the methods up to Fail.
func (g *rig) Saw(event any) { g.seen = append(g.seen, event) }
func (g *rig) Check(_ string, err error) {
	if err != nil {
		g.checked = append(g.checked, err)
	}
}
func (g *rig) Fail(err error) { g.failed = err }

type arithmetic struct{ g *rig }

// CheckPayload implements replica.Arithmetic, as do the methods below.
func (a arithmetic) CheckPayload(d outer.Delta, payload []byte) error {
	return a.g.params.CheckPayload(a.g.plan[d.Fragment], d, payload)
}

func (a arithmetic) Fold(p int, prev *outer.Tip, set []outer.Contribution) (*outer.Tip, outer.Result, error) {
	if a.g.beforeFold != nil {
		a.g.beforeFold()
	}
	if a.g.folds != nil {
		return a.g.folds(prev), outer.Result{}, nil
	}
	return outer.Fold(a.g.params, a.g.plan[p], prev, prev.Round+1, set)
}

func (a arithmetic) Intern(tip *outer.Tip) *outer.Tip { return tip }

// faulty is a disk some of whose methods fail.
type faulty struct {
	*memory.Ledger
	g *rig
}

func (f faulty) Payload(id wire.Digest) ([]byte, error) {
	if err := cmp.Or(f.g.errs["Payload"], f.g.errs["Payload "+id.String()]); err != nil {
		return nil, err
	}
	return f.Ledger.Payload(id)
}

func (f faulty) Base(p int, round uint32) (*outer.Tip, error) {
	if err := f.g.errs[fmt.Sprint("Base ", p, " ", round)]; err != nil {
		return nil, err
	}
	return f.Ledger.Base(p, round)
}

func (f faulty) PutOwn(e core.StoreOwn) error {
	return errors.Join(f.g.errs["PutOwn"], f.Ledger.PutOwn(e))
}

func (f faulty) Bases(p int) ([]uint32, error) {
	kept, err := f.Ledger.Bases(p)
	return kept, errors.Join(f.g.errs["Bases"], err)
}

func (f faulty) Archive(limit []uint32) error {
	f.g.archived = append(f.g.archived, slices.Clone(limit))
	return errors.Join(f.g.errs["Archive"], f.Ledger.Archive(limit))
}

func (f faulty) Own() ([]core.OwnRecord, error) {
	own, err := f.Ledger.Own()
	return own, errors.Join(f.g.errs["Own"], err)
}

func (f faulty) Equivocation() ([]wire.Equivocation, error) {
	e, err := f.Ledger.Equivocation()
	return e, errors.Join(f.g.errs["Equivocation"], err)
}

func (f faulty) Rounds(p int, from, to uint32, do func(outer.Link) error) error {
	return errors.Join(f.g.errs["Rounds"], f.Ledger.Rounds(p, from, to, do))
}
