package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// A visitor sees what the run is and whom else to ask, so often and nothing more. Nothing of it stays, and nobody hears of it.
func TestVisitors(t *testing.T) {
	a := newAlone()
	a.connect(1, 2)
	visitor := wire.PeerID{9}
	record := hello.Record{Seq: 1, Author: visitor, Visits: true, Stateless: true, Addrs: []string{"/ip4/192.0.2.9/tcp/1"}}
	a.step(PeerUp{Peer: visitor, Signed: hello.Signed{Bytes: []byte{9}}, Record: record})
	record.Seq++
	a.step(RecordChanged{Peer: visitor, Signed: hello.Signed{Bytes: []byte{9}}, Record: record})
	ask := func(r wire.Request) []Effect {
		return a.step(Requested{Handle: 7, From: visitor, Request: r.Encode()})
	}
	status := func(effects []Effect) wire.Status {
		replies := find[Reply](effects)
		if len(replies) != 1 || replies[0].Handle != 7 {
			t.Fatalf("effects %+v", effects)
		}
		return wire.Status(replies[0].Response[0])
	}
	for range 2 {
		if len(find[ReplyGenesis](ask(wire.Request{Kind: wire.GetGenesis, Run: a.core.env.cfg.Run}))) != 1 {
			t.Error("no genesis")
		}
		if st := status(ask(wire.Request{Kind: wire.GetPeerList})); st != wire.OK {
			t.Errorf("peer list: %v", st)
		}
	}
	if st := status(ask(wire.Request{Kind: wire.GetGenesis, Run: wire.RunID{1}})); st != wire.Refused {
		t.Errorf("genesis of another run: %v", st)
	}
	if st := status(ask(wire.Request{Kind: wire.GetOwn})); st != wire.Refused {
		t.Errorf("own deltas: %v", st)
	}
	for range visitorAsks {
		ask(wire.Request{Kind: wire.GetPeerList})
	}
	if st := status(ask(wire.Request{Kind: wire.GetPeerList})); st != wire.Refused {
		t.Errorf("one answer too many: %v", st)
	}
	if slices.ContainsFunc(a.core.Peers().All(), func(v PeerView) bool { return v.ID == visitor }) {
		t.Error("the visitor is a peer")
	}
	if a.step(PeerDown{Peer: visitor}); len(a.core.visitors) > 0 {
		t.Error("the visitor is remembered")
	}
}
