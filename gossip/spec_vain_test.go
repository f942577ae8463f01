package gossip

import (
	"testing"

	"atoll/gossip/fetch"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

func TestForkSpent(t *testing.T) {
	for _, c := range []struct {
		repairs string // with the peer: in vain (v), fruitful (f), ended early (e)
		want    bool
	}{{"", false}, {"v", false}, {"vv", true}, {"vfv", false}, {"vev", true}, {"fvv", true}, {"vvf", false}} {
		a := specAlone(1)
		for _, how := range c.repairs {
			a.core.Compare(a.now, wire.PeerID{1})
			ses := a.core.repair.sessions[0]
			switch ses.lost = how == 'v'; how {
			case 'e':
				a.core.repair.end(ses, "ended")
			default:
				a.core.repair.finish(ses)
			}
		}
		p := a.core.env.Find(wire.PeerID{1})
		if got := repairOf(p).spent >= int(spentRepairs); got != c.want {
			t.Errorf("%q: spent %v", c.repairs, got)
		}
	}
	// What is spent decides from that number on.
	for spent, want := range map[int]string{spentRepairs - 1: "give", spentRepairs: "take"} {
		a, b := newSide(t, parseChain(t, "0: 1 3 3")), newSide(t, parseChain(t, "2: 1 2 2 2"))
		if got := courseOf(a, b, func(ses *session) { repairOf(ses.peer).spent = spent }); got != want {
			t.Errorf("after %d repairs in vain: course %s", spent, got)
		}
	}
}

func TestForkVain(t *testing.T) {
	for _, c := range []struct {
		closed      uint32 // by the node, where a delta of round 1 is missing; 0 where none is
		learned     int
		here, there uint8 // lag
		want        bool
	}{
		{18, 1, 2, 2, true}, {17, 1, 2, 2, false}, {0, 0, 0, 0, true}, {0, 1, 0, 0, false}, {0, 0, 2, 0, false}, {0, 0, 0, 2, false},
	} {
		a := specAlone(1)
		a.core.Compare(a.now, wire.PeerID{1})
		ses, p := a.core.repair.sessions[0], a.core.env.Find(wire.PeerID{1})
		if c.closed > 0 {
			h := a.signed(9, 1)
			id := h.Header.ID(a.run)
			a.core.headers.Add(id, &h)
			a.chain.closed[0], ses.waiting[id], ses.batch = c.closed, 0, []wire.RoundKey{{Round: 1}}
			a.core.repair.completed(id, fetch.Missing)
		}
		said := *p.Heartbeat
		said.Lag, p.Heartbeat.Lag = c.here, c.there
		a.core.HeartbeatNow(a.now)
		*a.core.peers.Heartbeats.Said(), ses.learned = said, c.learned
		a.core.repair.finish(ses)
		if got := repairOf(p).spent == 1; got != c.want {
			t.Errorf("%+v: in vain %v", c, got)
		}
	}
}

// A peer that folded a delta before there was an equivocation proof against it, and cannot leave it
// out any more, has more than this node ever may.
func TestForkEquivocation(t *testing.T) {
	a := specAlone(1)
	first, second, other := a.header(9, 1, 0), a.header(9, 1, 1), a.header(8, 1, 0)
	for name, c := range map[string]struct {
		base   uint32 // the peer's
		proved bool   // here
		listed []wire.SignedHeader
		want   bool
	}{
		"has one of them":          {1, true, []wire.SignedHeader{other, first}, true},
		"has both":                 {1, true, []wire.SignedHeader{first, second, other}, true},
		"has neither header":       {1, true, nil, true},
		"has what this node lacks": {1, true, []wire.SignedHeader{first, a.header(7, 1, 0)}, false},
		"can leave it out":         {0, true, []wire.SignedHeader{first}, false},
		"nothing is proved":        {1, false, []wire.SignedHeader{first}, false},
	} {
		a := specAlone(1)
		a.core.Compare(a.now, wire.PeerID{1})
		ses, p := a.core.repair.sessions[0], a.core.env.Find(wire.PeerID{1})
		a.chain.store(first, []byte{1})
		a.chain.store(other, []byte{1})
		if c.proved {
			a.chain.convict(wire.Equivocation{A: first, B: second})
		}
		ses.fragments[0].theirs.Base, ses.learned, ses.batch = c.base, 1, []wire.RoundKey{{Round: 1}}
		if a.core.repair.accept(ses, c.listed); len(ses.waiting) == 0 != (name != "has what this node lacks") {
			t.Fatalf("%s: waits for %d", name, len(ses.waiting))
		}
		if len(ses.waiting) > 0 {
			a.core.repair.finish(ses)
		}
		if got := repairOf(p).spent == 1; got != c.want {
			t.Errorf("%s: in vain %v", name, got)
		}
	}
}

// An observer lags for as long as anybody says to train. It gives up its chain for that of a peer that has stopped all the same.
func TestForkWatches(t *testing.T) {
	for _, c := range []struct {
		here      wire.State
		unsettled bool
		there     wire.State
		lag       uint8
		want      bool
	}{
		{wire.Observing, false, wire.Stopped, 0, true},
		{wire.Observing, true, wire.Stopped, 0, false},
		{wire.Observing, false, wire.Stopped, 2, false},
		{wire.Observing, false, wire.Leaving, 0, false},
		{wire.Stopped, true, wire.Stopped, 0, false},
		{wire.Training, false, wire.Stopped, 0, false},
	} {
		a := specAlone(1)
		a.core.SetSelf(a.now, peers.SelfState{State: c.here, Unfinished: c.unsettled})
		a.core.Compare(a.now, wire.PeerID{1})
		ses, p := a.core.repair.sessions[0], a.core.env.Find(wire.PeerID{1})
		said := *p.Heartbeat
		said.Lag, p.Heartbeat.Lag, p.Heartbeat.State = 2, c.lag, c.there
		a.core.HeartbeatNow(a.now)
		*a.core.peers.Heartbeats.Said() = said
		a.core.repair.finish(ses)
		if got := repairOf(p).spent == 1; got != c.want {
			t.Errorf("%+v: in vain %v", c, got)
		}
	}
}
