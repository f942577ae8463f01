package gossip

import (
	"slices"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/hello"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

func TestSpecHeartbeats(t *testing.T) {
	spectest.Run(t, "B", map[string]spectest.Clause{
		"B-1": specNamed, "B-1.2": specPeriod, "B-1.6": specPeriodOfStrangers, "B-1.7": specPeriodOfInvites, "B-1.3": specPeriodOfWays, "B-1.4": specPeriodOfUpload, "B-1.5": specSoon, "B-2": specSequence, "B-3": specHeartbeatLists, "B-4": spectest.All(specLag, specObserverLag),
		"B-5": spectest.All(specSilent, specSigns), "B-5.2": specTheirPeriod, "B-6": spectest.All(specNews, specSurvivor), "B-7": specLearners,
	})
}

// heartbeatTimes are when a core sends heartbeats within some ms, in which some peers are heard.
func (a *alone) heartbeatTimes(t testing.TB, ms Time, alive ...byte) (at []Time) {
	t.Helper()
	for end := a.now + ms; a.now < end; {
		if len(a.heartbeatsIn(t, a.wait(20, alive...))) > 0 {
			at = append(at, a.now)
		}
	}
	return at
}

func specPeriod(t *testing.T, s *spectest.Spec) {
	numbers(t, s, "heartbeats", map[string]int64{
		"least": defaultHeartbeatMinMs, "each": peers.HeartbeatMsPerPeer, "ways": peers.HeartbeatWays, "share": 1 / peers.HeartbeatShare, "soon": peers.SoonParts, "quiet": peers.QuietHeartbeats, "agree": agreeHeartbeats, "silent": peers.SilentHeartbeats,
		"lag": int64(peers.SelfState{State: wire.Training}.Lag()), "unequal": peers.HeartbeatsToRepair, "newcomers": peers.LeastNewcomers,
	})
	each := Time(s.Number(t, "heartbeats", "each"))
	for peers, want := range map[int]Time{0: 1000, 20: 1000, 99: 100 * each} {
		a := newAlone()
		var alive []byte
		for i := range peers {
			alive = append(alive, byte(i+1))
			a.up(byte(i + 1))
		}
		at := a.heartbeatTimes(t, 4*want, alive...)
		if len(at) < 3 || at[2]-at[1] != want {
			t.Errorf("%d peers: heartbeats at %v, want a period of %d", peers, at, want)
		}
	}
}

// A crowd that comes later counts as often as the others do; who was there before does in any
// case, and so does who is folded.
func specPeriodOfStrangers(t *testing.T, s *spectest.Spec) {
	each, least := s.Number(t, "heartbeats", "each"), s.Number(t, "heartbeats", "newcomers")
	for _, c := range []struct{ founders, folded, later, counted int64 }{
		{3, 2, 200, 3 + least}, {60, 1, 3, 63}, {60, 0, 180, 60}, {60, 2, 200, 60 + 61}, {2, 70, 200, 70 + 71},
	} {
		a := newAlone()
		heard := func(from, to int64) {
			for i := from; i < to; i++ {
				a.up(byte(i + 1))
				a.told(byte(i+1), nil)
			}
		}
		heard(0, c.founders)
		for i := range c.folded {
			a.holds(byte(i+1), 0, uint32(i+1), 1)
		}
		if c.folded == 0 {
			c.counted += c.later // the run has not begun: nobody can be more than a key
		}
		heard(c.founders, max(c.founders, c.folded))
		heard(max(c.founders, c.folded), max(c.founders, c.folded)+c.later)
		if got, want := a.period(t), max(1000, each*(c.counted+1)); got != want {
			t.Errorf("%+v: a period of %d ms, want %d", c, got, want)
		}
	}
}

func specNamed(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.core.env.Config.HeartbeatMinMs = 700
	a.wait(100)
	for range 3 {
		last, at := *a.core.peers.Heartbeats.Said(), a.now
		for a.core.peers.Heartbeats.Said().Seq == last.Seq {
			a.wait(20)
		}
		if gap := a.now - at; gap != Time(last.PeriodMs) {
			t.Errorf("a heartbeat %d ms after one that named %d", gap, last.PeriodMs)
		}
	}
}

// period is what the next heartbeat of a core names.
func (a *alone) period(t testing.TB) int64 {
	t.Helper()
	a.wait(20)
	a.core.HeartbeatNow(a.now)
	b := a.heartbeatsIn(t, a.core.Effects())
	return int64(b[len(b)-1].PeriodMs)
}

func specPeriodOfWays(t *testing.T, s *spectest.Spec) {
	a := specAlone(1, 2, 3)
	asks := func(id byte, ms Time, body []byte) {
		var q question
		a.core.at(a.now)
		a.core.env.Call(wire.PeerID{id}, wire.Request{Kind: wire.GetPeerList}, 1<<20, effect.CallMs, func([]byte, error) {})
		for _, q = range questions(t, a.core.Effects(), wire.GetPeerList) {
		}
		a.now += ms
		a.answer(q, body)
	}
	none := wire.PeerList{}.Encode()
	asks(1, 3000, none)
	if got := a.period(t); got != s.Number(t, "heartbeats", "ways")*1500 {
		t.Errorf("with a way of 1500 ms the period is %d", got)
	}
	asks(2, 1000, none)
	if got := a.period(t); got != 1000 {
		t.Errorf("one of two answers slowly: the period is %d", got)
	}
	asks(1, 1400, none)
	asks(1, 5000, none)
	asks(1, 20, wire.PeerList{Records: [][]byte{make([]byte, wire.MaxRecord), {1}}}.Encode()) // its bytes took a time that nobody saw
	for id, want := range map[byte]int64{1: 700, 2: 500, 3: 0} {
		if got := a.core.Peers().Way(wire.PeerID{id}); got != want {
			t.Errorf("the way to %d is %d ms, want %d", id, got, want)
		}
	}
	a.now += 2*peers.WayWindowMs + 1
	asks(1, 5000, none)
	a.now += peers.WayWindowMs
	asks(1, 6000, none)
	if got := a.core.Peers().Way(wire.PeerID{1}); got != 2500 {
		t.Errorf("much later the way is %d ms", got)
	}
}

// size is the bytes of the last own heartbeat.
func (a *alone) size() int {
	return len(wire.EncodeHeartbeat(a.core.env.cfg.Key, a.run, *a.core.peers.Heartbeats.Said()))
}

func specPeriodOfUpload(t *testing.T, s *spectest.Spec) {
	for upload, others := range map[float64]int{1e9: 3, 10_000: 1, 9_000: 3, 40_000: 20, 1: 1} {
		a := newAlone()
		for i := range others {
			a.up(byte(i + 1))
		}
		a.wait(100)
		a.core.SetSelf(a.now, peers.SelfState{State: wire.Training, Upload: upload, Full: true})
		got := a.period(t)
		share := float64(min(others, peers.HeartbeatCopies)*a.size()) / upload * float64(s.Number(t, "heartbeats", "share"))
		if want := min(max(1000, int64(share*1000)), s.Number(t, "limits", "MaxPeriodMs")); got < want-want/20 || got > want+want/20 {
			t.Errorf("upload %v and %d peers: a period of %d ms, want %d", upload, others, got, want)
		}
	}
}

func specSoon(t *testing.T, s *spectest.Spec) {
	for name, change := range map[string]func(s *peers.SelfState){
		"state": func(s *peers.SelfState) { s.State = wire.Stopped }, "paused": func(s *peers.SelfState) { s.Paused = true },
		"plan": func(s *peers.SelfState) { s.Plan = 36 }, "nothing": func(*peers.SelfState) {},
	} {
		a := newAlone()
		a.wait(1100)
		self := peers.SelfState{State: wire.Training}
		change(&self)
		a.core.SetSelf(a.now, self) // just after a heartbeat
		early, late := len(a.heartbeatsIn(t, a.wait(100))), len(a.heartbeatsIn(t, a.wait(1000/s.Number(t, "heartbeats", "soon"))))
		if want := name != "nothing"; early > 0 || (late > 0) != want {
			t.Errorf("%s: %d heartbeats within 100 ms and %d later", name, early, late)
		}
	}
	a := newAlone()
	a.wait(1600)
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Stopped})
	if got := a.heartbeatsIn(t, a.wait(100)); len(got) != 1 {
		t.Errorf("half a period after the last heartbeat it says %d", len(got))
	}
}

func specSequence(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	a.core.env.Config.Incarnation = 77
	for i, b := range a.heartbeatsIn(t, a.wait(3500)) {
		if b.Seq != uint64(i+1) || b.Incarnation != 77 {
			t.Errorf("heartbeat %d is %d of %d", i, b.Seq, b.Incarnation)
		}
	}
}

func specHeartbeatLists(t *testing.T, _ *spectest.Spec) {
	a := newAlone()
	b := a.heartbeatsIn(t, a.wait(100))
	if len(b) != 1 || len(b[0].Closed) != 2 || len(b[0].Unpublished) != 2 {
		t.Errorf("says %+v", b)
	}
	for _, n := range []int{1, 3} {
		a.told(1, func(b *wire.Heartbeat) { b.Closed, b.Unpublished = make([]uint32, n), make([]uint64, n) })
		if p := a.core.env.Find(wire.PeerID{1}); p != nil && p.Heartbeat != nil {
			t.Errorf("takes a heartbeat of %d fragments", n)
		}
	}
}

// lagIn returns the lag of the next heartbeat in a state.
func (a *alone) lagIn(t testing.TB, state wire.State, alive ...byte) int64 {
	t.Helper()
	a.core.SetSelf(a.now, peers.SelfState{State: state})
	b := a.heartbeatsIn(t, a.wait(1000, alive...))
	if len(b) == 0 || b[len(b)-1].State != state {
		t.Fatalf("says %+v", b)
	}
	return int64(b[len(b)-1].Lag)
}

func specLag(t *testing.T, s *spectest.Spec) {
	a := newAlone()
	a.holds(9, 0, 5, 1)
	for state, want := range map[wire.State]int64{
		wire.Joining: s.Number(t, "heartbeats", "lag"), wire.Training: s.Number(t, "heartbeats", "lag"), wire.Stopped: 0, wire.Leaving: 0,
	} {
		if got := a.lagIn(t, state); got != want {
			t.Errorf("%v: lag %d, want %d", state, got, want)
		}
	}
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Stopped, Unfinished: true})
	if b := a.heartbeatsIn(t, a.wait(1000)); int64(b[len(b)-1].Lag) != s.Number(t, "heartbeats", "lag") {
		t.Errorf("stopped, with something left to publish: lag %d", b[len(b)-1].Lag)
	}
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Training})
	b := a.heartbeatsIn(t, a.wait(1000))[0]
	one, _ := a.chain.ChainDigest(0, 3)
	two, _ := a.chain.ChainDigest(1, 0)
	if want := wire.Sum(append(one[:], two[:]...)); b.Chain != want {
		t.Errorf("digest %v of closed %v, want that of rounds 3 and 0", b.Chain, b.Closed)
	}
}

func specObserverLag(t *testing.T, s *spectest.Spec) {
	a := specAlone(1)
	if got := a.lagIn(t, wire.Observing, 1); got != s.Number(t, "heartbeats", "lag") {
		t.Errorf("beside one that trains: %d", got)
	}
	a.told(1, func(b *wire.Heartbeat) { b.State = wire.Stopped })
	if got := a.lagIn(t, wire.Observing, 1); got != s.Number(t, "heartbeats", "lag") {
		t.Errorf("beside one that stopped and lags: %d", got)
	}
	a.told(1, func(b *wire.Heartbeat) { b.State, b.Lag = wire.Stopped, 0 })
	if got := a.lagIn(t, wire.Observing, 1); got != 0 {
		t.Errorf("beside one that stopped: %d", got)
	}
}

func TestHeartbeatWithoutDigest(t *testing.T) {
	a := newAlone()
	a.holds(9, 0, 6, 1)
	a.chain.base[0] = 5 // nothing is known of round 4
	b := a.heartbeatsIn(t, a.wait(100))
	if !b[0].Chain.IsZero() || !b[0].StateDigest.IsZero() {
		t.Errorf("says %v and %v of a round that it does not know", b[0].Chain, b[0].StateDigest)
	}
	a = newAloneOn(func(c *fakeChain) Chain { return stateless{c} })
	b = a.heartbeatsIn(t, a.wait(100))
	if b[0].Chain.IsZero() || !b[0].StateDigest.IsZero() {
		t.Errorf("says chain %v and state %v where it does not know one state", b[0].Chain, b[0].StateDigest)
	}
}

// stateless is a chain without a known state of fragment 1.
type stateless struct{ *fakeChain }

func (c stateless) StateDigest(f int, r uint32) (wire.Digest, bool) {
	if f == 1 {
		return wire.Digest{}, false
	}
	return c.fakeChain.StateDigest(f, r)
}

func TestLeavingNodeHeartbeatsAtOnce(t *testing.T) {
	a := newAlone()
	a.wait(200)
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Leaving})
	a.core.HeartbeatNow(a.now)
	if b := a.heartbeatsIn(t, a.core.Effects()); len(b) != 1 || b[0].State != wire.Leaving {
		t.Errorf("says %+v", b)
	}
}

func specSigns(t *testing.T, _ *spectest.Spec) {
	for name, sign := range map[string]func(a *alone){
		"a session": func(a *alone) { a.up(1) },
		"a message": func(a *alone) { a.brought(1, a.header(9, 1, 0)) },
		"a copy":    func(a *alone) { a.core.Step(a.now, Forwarded{From: wire.PeerID{1}, ID: wire.Digest{1}}) },
		"a request": func(a *alone) { a.ask(1, 1, wire.Request{Kind: wire.GetPeerList}) },
		"its heartbeat": func(a *alone) {
			a.core.Step(a.now, Received{From: wire.PeerID{2}, Message: wire.Message{Heartbeat: a.heartbeatOf(1, 1<<40)}})
		},
		"an old heartbeat": func(a *alone) {
			a.core.Step(a.now, Received{From: wire.PeerID{2}, Message: wire.Message{Heartbeat: a.heartbeatOf(1, 0)}})
		},
		"an answer": func(a *alone) { a.core.Step(a.now, Answered{Call: 1, Response: []byte{1}}) },
	} {
		a := specAlone(1)
		a.now += 100_000
		sign(a)
		heard := a.core.env.Live(a.core.env.Find(wire.PeerID{1}))
		if want := name != "an old heartbeat" && name != "an answer"; heard != want {
			t.Errorf("%s: heard %v", name, heard)
		}
	}
}

func (a *alone) heartbeatOf(id byte, seq uint64) *wire.Heartbeat {
	return &wire.Heartbeat{Author: wire.PeerID{id}, Seq: seq, State: wire.Training, Closed: []uint32{0, 0}, Unpublished: []uint64{0, 0}}
}

func specSilent(t *testing.T, s *spectest.Spec) {
	a := specAlone(1)
	after := Time(s.Number(t, "heartbeats", "silent") * a.core.HeartbeatPeriodMs())
	a.wait(after)
	if a.core.Peers().All()[0].Silent {
		t.Errorf("silent after %d", a.now)
	}
	if a.wait(100); !a.core.Peers().All()[0].Silent {
		t.Errorf("not silent after %d", a.now)
	}
}

func specTheirPeriod(t *testing.T, s *spectest.Spec) {
	for period, want := range map[uint32]int64{0: 1000, 300: 1000, 1500: 1500, wire.MaxPeriodMs: wire.MaxPeriodMs} { // HeartbeatMs is 1000
		a := newAlone()
		if a.up(1); period > 0 {
			a.told(1, func(b *wire.Heartbeat) { b.PeriodMs = period })
		}
		quiet, silent := Time(s.Number(t, "heartbeats", "quiet")*want), Time(s.Number(t, "heartbeats", "silent")*want)
		seen := func() [2]bool {
			p := a.core.Peers().All()[0]
			return [2]bool{a.core.Peers().Idle(p.ID), p.Silent}
		}
		var at []bool
		for _, ms := range []Time{quiet, 100, silent - quiet - 100, 100} {
			a.wait(ms)
			at = append(at, seen()[0], seen()[1])
		}
		if !slices.Equal(at, []bool{false, false, true, false, true, false, true, true}) {
			t.Errorf("period %d: quiet and silent before and after each time: %v", period, at)
		}
		if a.core.heardOf(a.now, wire.PeerID{1}); seen() != [2]bool{} {
			t.Errorf("period %d: heard again it is %v", period, seen())
		}
	}
	a := specAlone(1)
	version := a.core.Peers().Version()
	if a.told(1, func(b *wire.Heartbeat) { b.Paused = true }); !a.core.Peers().Idle(wire.PeerID{1}) || a.isLive(1) || a.core.Peers().Version() == version {
		t.Error("a paused peer is waited for, or live, or nobody is told")
	}
}

// A few peers that name a long period lengthen no wait of the others, and keys that cost
// nothing keep no slot in the table by it.
func TestLongPeriodsOfAFew(t *testing.T) {
	a := specAlone(1, 2, 3)
	named := func(id byte, ms uint32) { a.told(id, func(b *wire.Heartbeat) { b.PeriodMs = ms }) }
	for id := range byte(3) {
		a.holds(id+1, 0, uint32(id)+1, 1)
	}
	named(1, wire.MaxPeriodMs)
	named(2, 1500)
	named(3, 1200)
	named(9, wire.MaxPeriodMs) // of which nothing was folded
	a.wait(100, 1, 2, 3)
	if got := a.core.HeartbeatPeriodMs(); got != 1500 {
		t.Errorf("the period of the run is %d, that of its median is 1500", got)
	}
	if got := a.core.Chains().QuietMs(); got != agreeHeartbeats*wire.MaxPeriodMs {
		t.Errorf("the end waits for %d ms for all to agree", got)
	}
	stranger, member := a.core.env.Find(wire.PeerID{9}), a.core.env.Find(wire.PeerID{1})
	a.core.at(a.now + 60_000)
	if a.core.env.Keeps(stranger) || !a.core.env.Keeps(member) {
		t.Error("what a peer contributed does not decide whether its period counts in the table")
	}
}

func specNews(t *testing.T, _ *spectest.Spec) {
	for _, c := range []struct {
		incarnation int64
		seq         uint64
		news        bool
	}{{5, 8, true}, {5, 7, false}, {5, 6, false}, {6, 1, true}, {4, 99, false}} {
		a := specAlone()
		a.told(1, func(b *wire.Heartbeat) { b.Incarnation, b.Seq = 5, 7 })
		a.told(1, func(b *wire.Heartbeat) { b.Incarnation, b.Seq, b.Steps = c.incarnation, c.seq, 3 })
		if got := a.core.Peers().All()[0].Heartbeat.Steps == 3; got != c.news {
			t.Errorf("heartbeat %d of process %d after heartbeat 7 of process 5: news is %v", c.seq, c.incarnation, got)
		}
	}
}

func specSurvivor(t *testing.T, _ *spectest.Spec) {
	for name, c := range map[string]struct {
		last wire.Heartbeat // of the later process
		then wire.Heartbeat // of the earlier one
		mute bool
		up   int64 // start of the process that shakes hands before
		news bool
	}{
		"shook hands":                         {last: wire.Heartbeat{State: wire.Training}, then: wire.Heartbeat{State: wire.Training, Folded: 10}, up: 2, news: true},
		"another shook hands":                 {last: wire.Heartbeat{State: wire.Training}, then: wire.Heartbeat{State: wire.Training, Folded: 10}, up: 1},
		"shook hands, fewer tokens":           {last: wire.Heartbeat{State: wire.Training}, then: wire.Heartbeat{State: wire.Training, Folded: 9}, up: 2},
		"shook hands, duplicate key is heard": {last: wire.Heartbeat{State: wire.Training, Seq: 8}, then: wire.Heartbeat{State: wire.Training, Folded: 10}, up: 2},
		"left":                                {last: wire.Heartbeat{State: wire.Leaving}, then: wire.Heartbeat{State: wire.Training, Folded: 10}, news: true},
		"silent":                              {last: wire.Heartbeat{State: wire.Training}, then: wire.Heartbeat{State: wire.Training, Folded: 10}, mute: true, news: true},
		"there":                               {last: wire.Heartbeat{State: wire.Training}, then: wire.Heartbeat{State: wire.Training, Folded: 10}},
		"fewer tokens":                        {last: wire.Heartbeat{State: wire.Leaving}, then: wire.Heartbeat{State: wire.Training, Folded: 9}},
		"that leaves, too":                    {last: wire.Heartbeat{State: wire.Leaving}, then: wire.Heartbeat{State: wire.Leaving, Folded: 10}},
		"of the same start":                   {last: wire.Heartbeat{State: wire.Leaving}, then: wire.Heartbeat{Incarnation: 3, State: wire.Training, Folded: 10}},
	} {
		a := specAlone()
		say := func(incarnation int64, seq uint64, w wire.Heartbeat) {
			a.told(1, func(b *wire.Heartbeat) {
				b.Incarnation, b.Seq, b.State, b.Folded = max(incarnation, w.Incarnation), seq, w.State, w.Folded
			})
		}
		say(3, 5, wire.Heartbeat{State: wire.Training, Folded: 10})
		say(3, 6, c.last)
		if c.mute {
			a.wait(60_000)
		}
		if c.up > 0 {
			a.core.Step(a.now, PeerUp{Peer: wire.PeerID{1}, Signed: hello.Signed{}, Record: hello.Record{StartedMs: c.up}})
		}
		if c.last.Seq > 0 {
			say(3, c.last.Seq, c.last)
		}
		c.then.Author, c.then.Seq, c.then.Incarnation = wire.PeerID{1}, 1, max(2, c.then.Incarnation)
		c.then.Closed, c.then.Unpublished = make([]uint32, 2), make([]uint64, 2)
		a.core.Step(a.now, Received{From: wire.PeerID{2}, Message: wire.Message{Heartbeat: &c.then}})
		if got := a.core.Peers().All()[0].Heartbeat.Seq == 1; got != c.news {
			t.Errorf("%s: news is %v", name, got)
		}
	}
}

// isLive says whether the core takes a peer for live.
func (a *alone) isLive(id byte) bool { return a.core.env.Live(a.core.env.Find(wire.PeerID{id})) }

func TestHeartbeatLive(t *testing.T) {
	s := spectest.Load(t)
	for _, row := range s.Table(t, "states") {
		a := specAlone()
		if a.up(1); a.isLive(1) {
			t.Fatal("live before it sent a heartbeat")
		}
		n := s.Number(t, "states", row[0])
		a.told(1, func(b *wire.Heartbeat) { b.State = wire.State(n) })
		if want := row[0] != "joining" && row[0] != "leaving"; a.isLive(1) != want {
			t.Errorf("%s: live %v", row[0], a.isLive(1))
		}
		if a.told(1, func(b *wire.Heartbeat) { b.State, b.Paused = wire.State(n), true }); a.isLive(1) {
			t.Errorf("%s and paused: live", row[0])
		}
		a.told(1, nil)
		a.told(1, func(b *wire.Heartbeat) { b.State = wire.Leaving })
		if a.isLive(1) {
			t.Error("live though it leaves")
		}
		if a.told(1, nil); !a.isLive(1) {
			t.Error("not live any more")
		}
		if a.wait(60_000); a.isLive(1) {
			t.Error("live though silent")
		}
	}
}

func specLearners(t *testing.T, _ *spectest.Spec) {
	a := specAlone(1, 2, 3, 4, 5)
	for id, state := range map[byte]wire.State{2: wire.Stopped, 3: wire.Observing, 4: wire.Leaving, 5: wire.Joining} {
		a.told(id, func(b *wire.Heartbeat) { b.State = state })
	}
	sameIDs(t, "learners", a.core.Peers().Learners(a.now), wire.PeerID{1}, wire.PeerID{2})
	a.told(2, func(b *wire.Heartbeat) { b.State, b.Paused = wire.Stopped, true })
	sameIDs(t, "learners of whom one is paused", a.core.Peers().Learners(a.now), wire.PeerID{1})
	a.told(2, func(b *wire.Heartbeat) { b.State = wire.Stopped })
	for id, role := range map[byte]string{6: hello.Learner, 7: hello.Observer} {
		a.core.Step(a.now, PeerUp{Peer: wire.PeerID{id}, Record: hello.Record{Role: role}})
	}
	sameIDs(t, "learners", a.core.Peers().Learners(a.now), wire.PeerID{1}, wire.PeerID{2}, wire.PeerID{6})
	a.core.Step(a.now, PeerDown{Peer: wire.PeerID{6}})
	sameIDs(t, "learners", a.core.Peers().Learners(a.now), wire.PeerID{1}, wire.PeerID{2})
}

func TestHeartbeatEqual(t *testing.T) {
	a := specAlone(1)
	a.holds(9, 0, 6, 1)
	a.chain.base[0] = 2
	a.chain.baseChain[0] = wire.Digest{1}
	unequal := func(change func(b *wire.Heartbeat)) int {
		a.told(1, nil)
		a.told(1, change)
		return a.core.env.Find(wire.PeerID{1}).Unequal()
	}
	at := func(round uint32, lag uint8) func(b *wire.Heartbeat) {
		return func(b *wire.Heartbeat) {
			b.Closed, b.Lag = []uint32{round, 0}, lag
			b.Chain, _, _ = a.core.peers.Heartbeats.DigestsAt(peers.Lagged(b.Closed, lag))
		}
	}
	for name, c := range map[string]struct {
		change func(b *wire.Heartbeat)
		want   int
	}{
		"the same":               {nil, 0},
		"an earlier round":       {at(4, 1), 0},
		"another digest":         {apart, 1},
		"a round not closed yet": {at(9, 2), 1},
		"one forgotten":          {at(1, 0), 1},
		"of a joiner":            {func(b *wire.Heartbeat) { apart(b); b.State = wire.Joining }, 0},
	} {
		if got := unequal(c.change); got != c.want {
			t.Errorf("%s: %d unequal", name, got)
		}
	}
}

func specUnequal(t *testing.T, s *spectest.Spec) {
	a := specAlone(1)
	n := s.Number(t, "heartbeats", "unequal")
	for i := range n {
		if e := a.told(1, apart); (len(questions(t, e, wire.GetRounds)) > 0) != (i+1 == n) {
			t.Errorf("%d unequal heartbeats: %v", i+1, e)
		}
	}
	if q := questions(t, a.told(1, apart), wire.GetRounds); len(q) != 0 {
		t.Errorf("a second repair: %+v", q)
	}
	a.core.repair.end(a.core.repair.sessions[0], "ended")
	a.now += 60_000
	for i := range n {
		a.core.heardOf(a.now, wire.PeerID{1})
		if e := a.told(1, apart); (len(questions(t, e, wire.GetRounds)) > 0) != (i+1 == n) {
			t.Errorf("%d unequal heartbeats after the first repair: %v", i+1, e)
		}
	}
}

func specEqualEnds(t *testing.T, _ *spectest.Spec) {
	a := specAlone(1)
	for range 5 {
		e := append(a.told(1, apart), a.told(1, nil)...)
		if q := questions(t, e, wire.GetRounds); len(q) != 0 {
			t.Fatalf("asks %+v", q)
		}
	}
}

func TestHeartbeatStateDiffers(t *testing.T) {
	for name, c := range map[string]struct {
		change func(b *wire.Heartbeat)
		audits bool
	}{
		"another state": {func(b *wire.Heartbeat) { b.StateDigest[0] ^= 1 }, true},
		"none":          {func(b *wire.Heartbeat) { b.StateDigest = wire.Digest{} }, false},
		"another chain": {func(b *wire.Heartbeat) { b.StateDigest[0] ^= 1; apart(b) }, false},
	} {
		a := specAlone(1)
		if q := questions(t, a.told(1, c.change), wire.GetRounds); len(q) > 0 != c.audits {
			t.Errorf("%s: asks %+v", name, q)
		}
	}
	a := newAloneOn(func(c *fakeChain) Chain { return stateless{c} })
	a.up(1)
	a.told(1, nil)
	if q := questions(t, a.told(1, func(b *wire.Heartbeat) { b.StateDigest[0] ^= 1 }), wire.GetRounds); len(q) > 0 {
		t.Errorf("audits a state that it does not know: %+v", q)
	}
}

// runs begins a session with a peer that then asks for the peer list, as one does that
// is at work.
func (a *alone) runs(id byte) {
	a.up(id)
	a.ask(1000+uint64(id), id, wire.Request{Kind: wire.GetPeerList})
}

func TestHeartbeatDeaf(t *testing.T) {
	deaf := Time(peers.DeafHeartbeats)
	a := newAlone()
	a.runs(1)
	period := Time(a.core.HeartbeatPeriodMs())
	if e := a.wait(deaf*period-100, 1); count[Reconnect](e) != 0 {
		t.Error("connects anew before the time")
	}
	if e := find[Reconnect](a.wait(200, 1)); len(e) != 1 || e[0].Peer != (wire.PeerID{1}) {
		t.Errorf("connects anew: %v", e)
	}
	a = newAlone()
	a.runs(1)
	a.told(1, nil)
	if e := a.wait(20*period, 1); count[Reconnect](e) != 0 {
		t.Error("connects anew a peer whose heartbeat came")
	}
	a.core.Step(a.now, RecordChanged{Peer: wire.PeerID{1}, Signed: hello.Signed{}, Record: hello.Record{StartedMs: 5}})
	if e := a.wait((deaf+1)*period, 1); count[Reconnect](e) != 1 {
		t.Error("the heartbeat of an earlier process counts for a new one")
	}
	a = newAlone()
	a.core.Step(a.now, Reached{Public: true})
	a.runs(1)
	a.told(1, nil)
	if e := a.wait(deaf*period-100, 1); count[Reconnect](e) != 0 {
		t.Error("connects anew where addresses change before the time")
	}
	if e := a.wait(200, 1); count[Reconnect](e) != 1 {
		t.Errorf("connects anew %d times a peer from which no heartbeat comes any more", count[Reconnect](e))
	}
	a.told(1, func(b *wire.Heartbeat) { b.State = wire.Leaving })
	if e := a.wait(20*period, 1); count[Reconnect](e) != 0 {
		t.Error("connects anew a peer that leaves")
	}
	a = newAlone()
	a.up(1)
	a.wait(10*period, 1)
	a.ask(1, 1, wire.Request{Kind: wire.GetRounds, Ranges: []wire.Range{{From: 1, To: 1}}})
	if early, late := count[Reconnect](a.wait(deaf*period-100, 1)), count[Reconnect](a.wait(200, 1)); early != 0 || late != 1 {
		t.Errorf("after its first request it connects anew %d times before the time and %d then", early, late)
	}
	a = newAlone()
	a.core.SetSelf(0, peers.SelfState{})
	a.runs(1)
	if e := a.wait(20*period, 1); count[Reconnect](e) != 0 {
		t.Error("connects anew though it says nothing itself")
	}
}

func TestHeartbeatDeafPause(t *testing.T) {
	a := newAlone()
	a.runs(1)
	period := Time(a.core.HeartbeatPeriodMs())
	var at []Time
	for len(at) < 12 {
		if count[Reconnect](a.wait(100, 1)) > 0 {
			at = append(at, a.now)
		}
	}
	pause, longest := Time(peers.DeafHeartbeats)*period, Time(peers.ReconnectPauseMaxMs)
	for i := 1; i < len(at); i++ {
		if got := at[i] - at[i-1]; got != pause {
			t.Errorf("pause %d is %d, want %d", i, got, pause)
		}
		pause = min(2*pause, longest)
	}
	a.told(1, nil)
	a.core.Step(a.now, RecordChanged{Peer: wire.PeerID{1}, Signed: hello.Signed{}, Record: hello.Record{StartedMs: 5}})
	if e := a.wait(Time(int64(peers.DeafHeartbeats)+1)*period, 1); count[Reconnect](e) != 1 {
		t.Error("the pause stays after a heartbeat")
	}
}

func TestHeartbeatDeafBusy(t *testing.T) {
	for name, busy := range map[string]func(a *alone, p *peers.Peer){
		"chunks are awaited":         func(_ *alone, p *peers.Peer) { snapshotOf(p).calls = 1 },
		"a payload is on its way":    func(a *alone, _ *peers.Peer) { a.ask(1, 1, payloadRequest(a.hold(9, 1, 5000), 0)) },
		"another peer gets payloads": func(a *alone, _ *peers.Peer) { a.ask(1, 2, payloadRequest(a.hold(9, 1, 5000), 0)) },
	} {
		a := newAlone()
		a.runs(1)
		busy(a, a.core.env.Find(wire.PeerID{1}))
		want := 0
		if name == "another peer gets payloads" {
			want = 1
		}
		if e := a.wait(5000, 1); count[Reconnect](e) != want {
			t.Errorf("%s: connects anew %d times", name, count[Reconnect](e))
		}
	}
}

func TestHeartbeatDeafStarting(t *testing.T) {
	a := newAlone()
	a.up(1)
	a.ask(1, 1, wire.Request{Kind: wire.GetGenesis, Run: a.run})
	if e := a.wait(60_000, 1); count[Reconnect](e) != 0 {
		t.Error("cuts off one that is starting")
	}
}
