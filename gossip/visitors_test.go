package gossip

import (
	"slices"
	"strings"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// A visitor sees what the run is and whom else to ask, so often and nothing more. Nothing of it stays, and nobody hears of it.
func specVisitors(t *testing.T, _ *spectest.Spec) {
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
	if e := find[Reply](a.ask(1, 1, wire.Request{Kind: wire.GetPeerList})); len(e) != 1 || strings.Contains(string(e[0].Response), "192.0.2.9") {
		t.Error("another peer hears of the visitor")
	}
	if a.step(PeerDown{Peer: visitor}); len(a.core.visitors) > 0 {
		t.Error("the visitor is remembered")
	}
}

func specVisitsEnd(t *testing.T, s *spectest.Spec) {
	a := newAlone()
	most, longest := int(s.Number(t, "visits", "at once")), Time(s.Number(t, "visits", "visit"))
	comes := func(id byte) []EndVisit {
		return find[EndVisit](a.step(PeerUp{Peer: wire.PeerID{id}, Record: hello.Record{Visits: true}}))
	}
	for id := range byte(most) {
		if ended := append(comes(id+1), comes(id+1)...); len(ended) > 0 {
			t.Fatalf("visit %d: %+v", id, ended)
		}
	}
	if ended := comes(100); len(ended) != 1 || ended[0].Peer != (wire.PeerID{1}) {
		t.Errorf("one too many: %+v", ended)
	}
	ended := map[wire.PeerID]bool{}
	tick := func(at Time) {
		a.now = at
		a.core.Tick(at)
		for _, d := range find[EndVisit](a.core.Effects()) {
			ended[d.Peer] = true
		}
	}
	if tick(a.now + longest - 1); len(ended) > 0 {
		t.Errorf("ended too early: %v", ended)
	}
	if tick(a.now + 1); len(ended) != most {
		t.Errorf("%d of %d visits are over", len(ended), most)
	}
	if ended := comes(100); len(ended) > 0 {
		t.Errorf("there is room, and one has to go: %+v", ended)
	}
}

// Who looked and then takes part is a peer from that moment on, whose visit does not end it.
func specVisitorStays(t *testing.T, s *spectest.Spec) {
	a := newAlone()
	a.step(PeerUp{Peer: wire.PeerID{9}, Record: hello.Record{Seq: 1, Visits: true}})
	a.step(PeerUp{Peer: wire.PeerID{9}, Record: hello.Record{Seq: 2}})
	if !slices.ContainsFunc(a.core.Peers().All(), func(v PeerView) bool { return v.ID == wire.PeerID{9} && v.Connected }) {
		t.Error("it is no peer")
	}
	a.core.Tick(a.now + Time(s.Number(t, "visits", "visit")))
	if ended := find[Drop](a.core.Effects()); len(ended) > 0 {
		t.Errorf("its visit ends: %+v", ended)
	}
}
