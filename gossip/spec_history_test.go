package gossip

import (
	"testing"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// What is asked once the snapshot is there: the headers before it, and what a
// restored key signed.

func TestHistoryAsked(t *testing.T) {
	a, c := taken()
	a.core.env.Find(wire.PeerID{2}).Refused = "a fault"
	batch := int(historyBatch)
	for f := range uint16(2) {
		a.chain.closed[f], a.chain.base[f] = uint32(batch), uint32(batch)
		for r := uint32(1); r <= uint32(batch); r++ {
			h := wire.Header{Fragment: f, Round: r, Base: r - 1, Steps: 1, Tokens: 1, Size: 1}
			c.folded[wire.RoundKey{Fragment: f, Round: r}] = []wire.SignedHeader{wire.SignHeader(testKey(5), a.run, h)}
		}
	}
	var at []Time
	asked := map[wire.RoundKey]int{}
	for len(at) < 2 {
		for _, q := range questions(t, a.wait(100, 1, 2), wire.GetHeaders) {
			if q.to != 1 || len(q.Rounds) != batch {
				t.Fatalf("asks %+v", q)
			}
			at = append(at, a.now)
			var headers []wire.SignedHeader
			for _, k := range q.Rounds {
				asked[k]++
				headers = append(headers, c.folded[k]...)
			}
			a.answer(q, wire.EncodeHeaders(headers))
		}
	}
	if len(asked) != 2*batch || at[1]-at[0] < Time(a.core.HeartbeatPeriodMs()) {
		t.Errorf("asks for %d rounds at %v", len(asked), at)
	}
}

func specHistoryKept(t *testing.T, _ *spectest.Spec) {
	for name, c := range map[string]struct {
		change func(all []wire.SignedHeader) []wire.SignedHeader
		want   int
	}{
		"all":               {func(all []wire.SignedHeader) []wire.SignedHeader { return all }, 6},
		"a round left out":  {func(all []wire.SignedHeader) []wire.SignedHeader { return all[1:] }, 5},
		"another signature": {func(all []wire.SignedHeader) []wire.SignedHeader { all[2].Sig[0]++; return all }, 5},
		"another header": {func(all []wire.SignedHeader) []wire.SignedHeader {
			h := all[3].Header
			h.Tokens++
			all[3] = wire.SignHeader(testKey(5), newAlone().run, h)
			return all
		}, 5},
	} {
		a, chain := taken()
		e, asked := a.asked(t, func(keys []wire.RoundKey) (out []wire.SignedHeader) {
			for _, k := range keys {
				out = append(out, chain.folded[k]...)
			}
			return c.change(out)
		})
		if !asked || count[StoreHeader](e) != c.want {
			t.Errorf("%s: keeps %d", name, count[StoreHeader](e))
		}
	}
}

func TestHistoryOwnAsked(t *testing.T) {
	a := specAlone(1, 2)
	a.core.AskOwn(a.now, true)
	q := questions(t, a.wait(100, 1, 2), wire.GetOwn)
	if len(q) != 2 {
		t.Fatalf("asks %+v", q)
	}
	a.answer(q[0], nil)
	a.fails(q[1], wire.Busy)
	again := Time(ownRetryMs)
	if q := questions(t, a.wait(again-1, 1, 2), wire.GetOwn); len(q) != 0 {
		t.Errorf("asks %+v before the time", q)
	}
	if next := questions(t, a.wait(1, 1, 2), wire.GetOwn); len(next) != 1 || next[0].to != q[1].to {
		t.Errorf("asks %+v", next)
	}
	a.up(3)
	if q := questions(t, a.wait(100, 3), wire.GetOwn); len(q) != 1 || q[0].to != 3 {
		t.Errorf("asks %+v, of one that comes later", q)
	}
}

func specOwnBelieved(t *testing.T, _ *spectest.Spec) {
	a := specAlone(1)
	a.core.AskOwn(a.now, true)
	q := questions(t, a.wait(100, 1), wire.GetOwn)
	own := a.signed(0, 4)
	other, forged := a.signed(5, 4), a.signed(0, 9)
	forged.Sig[0] ^= 1
	e := find[OwnHeader](a.answer(q[0], wire.EncodeHeaders([]wire.SignedHeader{other, forged, own})))
	if len(e) != 1 || e[0].Header.Header.Round != 4 {
		t.Errorf("counts %+v", e)
	}
}

// ofHeartbeat gives a peer a newest heartbeat.
func ofHeartbeat(state wire.State, folded uint64) func(a *alone, p *peers.Peer) {
	return func(_ *alone, p *peers.Peer) { p.Heartbeat = &wire.Heartbeat{State: state, Folded: folded} }
}

func specMayTell(t *testing.T, _ *spectest.Spec) {
	stands := func(a *alone, p *peers.Peer) { a.chain.contributed = map[wire.PeerID]bool{p.ID: true} }
	guests := func(a *alone, p *peers.Peer) { a.guests(t, []wire.PeerID{p.ID}) }
	for name, c := range map[string]struct {
		prepare []func(a *alone, p *peers.Peer)
		want    bool
	}{
		"a stranger":  {nil, false},
		"asked":       {[]func(a *alone, p *peers.Peer){func(a *alone, p *peers.Peer) { a.core.own.asked[p.ID] = false }}, true},
		"usable":      {[]func(a *alone, p *peers.Peer){func(a *alone, p *peers.Peer) { a.up(p.ID[0]) }}, true},
		"contributed": {[]func(a *alone, p *peers.Peer){stands}, true},
		"told":        {[]func(a *alone, p *peers.Peer){stands, func(a *alone, p *peers.Peer) { a.core.own.told[p.ID] = true }}, false},
		"leaving":     {[]func(a *alone, p *peers.Peer){stands, ofHeartbeat(wire.Leaving, 9)}, false},
		"joining":     {[]func(a *alone, p *peers.Peer){stands, ofHeartbeat(wire.Joining, 0)}, false},
		"coming in":   {[]func(a *alone, p *peers.Peer){stands, ofHeartbeat(wire.Joining, 1)}, true},
		"training":    {[]func(a *alone, p *peers.Peer){stands, ofHeartbeat(wire.Training, 0)}, true},
		"a guest":     {[]func(a *alone, p *peers.Peer){guests, func(a *alone, p *peers.Peer) { a.up(p.ID[0]) }, ofHeartbeat(wire.Training, 9)}, false},
	} {
		a := newAlone()
		a.chain.contributed = map[wire.PeerID]bool{}
		p := a.core.env.Ensure(wire.PeerID{3}, false)
		for _, prepare := range c.prepare {
			prepare(a, p)
		}
		if got := a.core.AwaitsOwn(); got != c.want {
			t.Errorf("%s: may know more %v", name, got)
		}
	}
}

func specTold(t *testing.T, _ *spectest.Spec) {
	for name, c := range map[string]struct {
		session bool
		change  func(b *wire.Heartbeat)
		answers bool
		want    bool
	}{
		"equal through others":   {false, nil, false, true},
		"unequal through others": {false, apart, false, false},
		"equal and joining":      {false, func(b *wire.Heartbeat) { b.State, b.Folded = wire.Joining, 1 }, false, false},
		"equal with a session":   {true, nil, false, false},
		"answers":                {true, apart, true, true},
	} {
		a := newAlone()
		a.chain.contributed = map[wire.PeerID]bool{{3}: true}
		if c.session {
			a.up(3)
		}
		a.told(3, c.change)
		a.core.AskOwn(a.now, true)
		for _, q := range questions(t, a.wait(100, 3), wire.GetOwn) {
			if c.answers {
				a.answer(q, wire.EncodeHeaders(nil))
			}
		}
		if got := !a.core.AwaitsOwn(); got != c.want {
			t.Errorf("%s: told %v", name, got)
		}
	}
}

func specOwnEnough(t *testing.T, s *spectest.Spec) {
	a := specAlone(1, 2)
	a.core.AskOwn(a.now, true)
	q := questions(t, a.wait(100, 1, 2), wire.GetOwn)
	gather := Time(s.Number(t, "snapshot", "gather")) * Time(a.core.HeartbeatPeriodMs())
	a.answer(q[0], wire.EncodeHeaders(nil))
	if e := a.wait(2*gather, 1, 2); count[OwnKnown](e) != 0 {
		t.Error("enough though one may know more")
	}
	a.answer(q[1], wire.EncodeHeaders(nil))
	if e := a.wait(100, 1, 2); count[OwnKnown](e) != 1 {
		t.Error("not enough though all have answered")
	}
	a = specAlone(1)
	a.core.AskOwn(a.now, true)
	q = questions(t, a.wait(100, 1), wire.GetOwn)
	a.answer(q[0], wire.EncodeHeaders(nil))
	if e := a.wait(gather-100, 1); count[OwnKnown](e) != 0 {
		t.Error("enough before the time")
	}
	if e := a.wait(100, 1); count[OwnKnown](e) != 1 {
		t.Error("not enough after the time")
	}
	a = newAlone()
	a.core.AskOwn(a.now, true)
	if e := a.wait(10*gather, 1); count[OwnKnown](e) != 0 {
		t.Error("enough without an answer")
	}
	for name, c := range map[string]struct {
		begins  bool
		unready func(a *alone)
		want    int
	}{
		"ready":                           {false, func(*alone) {}, 1},
		"joining":                         {false, func(a *alone) { a.core.SetSelf(a.now, peers.SelfState{State: wire.Joining}) }, 0},
		"joining, where the run begins":   {true, func(a *alone) { a.core.SetSelf(a.now, peers.SelfState{State: wire.Joining}) }, 1},
		"without headers":                 {false, func(a *alone) { a.core.history.planned, a.core.history.todo = true, []wire.RoundKey{{Round: 1}} }, 0},
		"without, where the run begins":   {true, func(a *alone) { a.core.history.planned, a.core.history.todo = true, []wire.RoundKey{{Round: 1}} }, 1},
		"with a request for some of them": {false, func(a *alone) { a.core.history.asking = true }, 0},
	} {
		a := specAlone(1)
		a.core.env.Find(wire.PeerID{1}).Heartbeat = &wire.Heartbeat{State: wire.Training, Folded: 5}
		c.unready(a)
		a.core.AskOwn(a.now, c.begins)
		for _, q := range questions(t, a.wait(100, 1), wire.GetOwn) {
			a.answer(q, wire.EncodeHeaders(nil))
		}
		if e := a.wait(2*gather, 1); count[OwnKnown](e) != c.want {
			t.Errorf("%s: enough %d", name, count[OwnKnown](e))
		}
	}
}

func specOwnCounts(t *testing.T, s *spectest.Spec) {
	trains, joins := ofHeartbeat(wire.Training, 5), ofHeartbeat(wire.Joining, 0)
	guest := func(a *alone, p *peers.Peer) { a.guests(t, []wire.PeerID{p.ID}); trains(a, p) }
	for name, c := range map[string]struct {
		any  bool // it begins the run
		says []func(a *alone, p *peers.Peer)
		want bool
	}{
		"folded tokens":                {false, []func(a *alone, p *peers.Peer){trains}, true},
		"those, of a guest":            {false, []func(a *alone, p *peers.Peer){guest}, false},
		"a guest's, at the beginning":  {true, []func(a *alone, p *peers.Peer){guest}, false},
		"none":                         {false, []func(a *alone, p *peers.Peer){ofHeartbeat(wire.Training, 0)}, false},
		"nothing yet":                  {false, nil, false},
		"those of what it began":       {false, []func(a *alone, p *peers.Peer){joins, trains}, false},
		"comes back":                   {false, []func(a *alone, p *peers.Peer){ofHeartbeat(wire.Joining, 5), trains}, true},
		"none, where the run begins":   {true, []func(a *alone, p *peers.Peer){ofHeartbeat(wire.Training, 0)}, true},
		"joined, where the run begins": {true, []func(a *alone, p *peers.Peer){joins, trains}, true},
	} {
		a := newAlone()
		a.up(1)
		p := a.core.env.Find(wire.PeerID{1})
		p.Heartbeat = nil
		a.core.AskOwn(a.now, c.any)
		for _, says := range c.says {
			says(a, p)
			for _, q := range questions(t, a.wait(100, 1), wire.GetOwn) {
				a.answer(q, wire.EncodeHeaders(nil))
			}
		}
		gather := Time(s.Number(t, "snapshot", "gather")) * Time(a.core.HeartbeatPeriodMs())
		if e := a.wait(10*gather, 1); (count[OwnKnown](e) == 1) != c.want {
			t.Errorf("%s: enough %v", name, count[OwnKnown](e))
		}
	}
}
