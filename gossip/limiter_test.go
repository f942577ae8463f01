package gossip

import (
	"errors"
	"math"
	"testing"

	"atoll/gossip/limit"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"

	"pgregory.net/rapid"
)

// limited is the limiter of a run of two fragments that has begun, and so many rounds of each closed.
func limited(closed uint32) *limit.Limiter {
	return limitedBy(closed, nil)
}

// limitedBy is limited with members.
func limitedBy(closed uint32, members *member.Table) *limit.Limiter {
	l := limit.New(limit.Config{Self: wire.PeerID{99}, Members: members, HeartbeatMinMs: 500, WindowAccept: 4})
	l.Tick(0, true, []uint32{closed, closed}, limit.Fit{})
	return l
}

func heartbeatOf(author wire.PeerID, process int64, seq uint64) wire.Message {
	return wire.Message{Heartbeat: &wire.Heartbeat{Author: author, Incarnation: process, Seq: seq}}
}

func headerOf(author wire.PeerID, fragment uint16, round uint32) wire.Message {
	return wire.Message{Header: &wire.SignedHeader{Header: wire.Header{Author: author, Fragment: fragment, Round: round}}}
}

func equivocationOf(author wire.PeerID) wire.Message {
	h := *headerOf(author, 0, 1).Header
	return wire.Message{Equivocation: &wire.Equivocation{A: h, B: h}}
}

// passing counts the messages that pass.
func passing(l *limit.Limiter, now Time, count int, message func(i int) wire.Message) (n int) {
	for i := range count {
		if l.Check(now, wire.PeerID{7}, message(i)) == nil {
			n++
		}
	}
	return n
}

func specPassing(t *testing.T, s *spectest.Spec) {
	numbers(t, s, "passing", map[string]int64{"heartbeats": limit.HeartbeatsOfPeriod, "heartbeats at once": limit.HeartbeatsAtOnce, "strangers": limit.StrangersHeartbeats, "part of strangers": peers.StrangersShare, "strangers at least": limit.LeastStrangersHeartbeats, "late heartbeats": limit.LateHeartbeats, "headers": limit.PaceTimes, "old": limit.OldWindows,
		"guests": limit.GuestsSlots, "proofs": limit.MaxEquivocationPerAuthor, "unknown": limit.UnknownPerSecond, "unknown at once": limit.UnknownAtOnce})
	l, author := limited(0), wire.PeerID{1}
	l.Know(author)
	seq := uint64(0)
	flood := func(now Time) int {
		return passing(l, now, 500, func(int) wire.Message { seq++; return heartbeatOf(author, 1, seq) })
	}
	if n := flood(0); n != limit.HeartbeatsAtOnce {
		t.Errorf("%d heartbeats at once", n)
	}
	if n := flood(500); n != limit.HeartbeatsOfPeriod {
		t.Errorf("%d heartbeats in a period", n)
	}
	size := 2 * limit.HeadersOfRound * (3*4 + 2)
	headers := func(now Time, author wire.PeerID) int {
		return passing(l, now, 500, func(i int) wire.Message { return headerOf(author, uint16(i%2), 1) })
	}
	if n := headers(0, author); n != size {
		t.Errorf("%d headers at once, want %d", n, size)
	}
	if n := headers(0, wire.PeerID{2}); n != size {
		t.Errorf("%d headers of another", n)
	}
	l.Tick(limit.PaceMs, true, []uint32{3, 4}, limit.Fit{})
	if n := headers(1000, author); n != 1000*7*limit.PaceTimes/limit.PaceMs {
		t.Errorf("%d headers in a second in which 0.7 rounds closed", n)
	}
}

// An author that publishes in each round is not held back while no pace is known yet, nor when rounds become shorter all at once.
func TestShortRoundsPass(t *testing.T) {
	for _, rounds := range [][2]Time{{80, 80}, {400, 20}} { // ms, before and after so many
		l, author, round := limited(0), wire.PeerID{1}, uint32(0)
		l.Know(author)
		for now, takes := Time(0), rounds[0]; now < 4*limit.PaceMs; now += takes {
			if now >= 2*limit.PaceMs {
				takes = rounds[1]
			}
			for fragment := range uint16(2) {
				if err := l.Check(now, wire.PeerID{7}, headerOf(author, fragment, round)); err != nil {
					t.Fatalf("rounds of %d and then %d ms: round %d after %d ms: %v", rounds[0], rounds[1], round, now, err)
				}
			}
			round++
			l.Tick(now, true, []uint32{round, round}, limit.Fit{})
		}
	}
}

func specTooLate(t *testing.T, _ *spectest.Spec) {
	l, author := limited(20), wire.PeerID{1}
	l.Know(author)
	for seq, passes := range map[uint64]bool{100 - limit.LateHeartbeats: true, 99 - limit.LateHeartbeats: false, 1: false} {
		l := limited(20)
		l.Know(author)
		l.Check(0, wire.PeerID{7}, heartbeatOf(author, 5, 100))
		if got := l.Check(0, wire.PeerID{7}, heartbeatOf(author, 5, seq)) == nil; got != passes {
			t.Errorf("heartbeat %d after heartbeat 100 passes: %v", seq, got)
		}
		if l.Check(0, wire.PeerID{7}, heartbeatOf(author, 4, seq)) != nil || l.Check(0, wire.PeerID{7}, heartbeatOf(author, 6, seq)) != nil {
			t.Errorf("heartbeat %d of another process does not pass", seq)
		}
	}
	for round, passes := range map[uint32]bool{0: false, 11: false, 12: true, 20: true, 21: true, math.MaxUint32: true} {
		err := l.Check(0, wire.PeerID{7}, headerOf(author, 1, round))
		if (err == nil) != passes || err != nil && !errors.Is(err, limit.ErrHeldBack) {
			t.Errorf("a header of round %d with 20 closed: %v", round, err)
		}
	}
}

func specEquivocationPasses(t *testing.T, _ *spectest.Spec) {
	l := limited(1000)
	for author := range byte(3) {
		if n := passing(l, 0, 5000, func(int) wire.Message { return equivocationOf(wire.PeerID{author}) }); n != limit.MaxEquivocationPerAuthor {
			t.Errorf("%d pieces pass", n)
		}
	}
	own := equivocationOf(wire.PeerID{1})
	if err := l.Check(0, wire.PeerID{99}, own); err != nil {
		t.Errorf("a piece that this node found: %v", err)
	}
	l.Tick(limit.PaceMs, true, []uint32{1003, 1004}, limit.Fit{})
	if n := passing(l, limit.PaceMs, 5000, func(int) wire.Message { return equivocationOf(wire.PeerID{1}) }); n != 7 {
		t.Errorf("%d pieces pass in the time of 7 rounds", n)
	}
}

func specRevocationPasses(t *testing.T, _ *spectest.Spec) {
	word := headerOf(wire.PeerID{1}, 0, 1)
	word.Header.Header.Codec, word.Header.Header.Certificate = wire.CodecRevocation, wire.Digest{1}
	for _, invited := range []bool{true, false} {
		l := limited(1000)
		if invited {
			l = limitedBy(1000, member.NewTable(wire.RunID{}, nil))
		}
		n := passing(l, 0, 5000, func(int) wire.Message { return word })
		if want := 5000; invited && n != want || !invited && n == want {
			t.Errorf("in a run with owners %v: %d pass", invited, n)
		}
	}
	// The run has no such fragment.
	if l := limited(1000); l.Check(0, wire.PeerID{7}, headerOf(wire.PeerID{1}, 7, 1000)) == nil {
		t.Error("a header of no fragment passes")
	}
}

// Strangers share what they may say; those that are known, and a run that has not begun, do not.
func TestStrangersHeartbeatsShare(t *testing.T) {
	crowd := func(l *limit.Limiter, now Time) int {
		return passing(l, now, 1000, func(i int) wire.Message { return heartbeatOf(keyOf(uint32(i)), 1, uint64(now)+1) })
	}
	l := limited(1)
	if n := crowd(l, 0); n != limit.StrangersHeartbeats {
		t.Errorf("%d heartbeats of a crowd at once", n)
	}
	if n := crowd(l, 500); n != limit.StrangersHeartbeats {
		t.Errorf("%d heartbeats of a crowd in a period", n)
	}
	if l.Know(wire.PeerID{1}); l.Check(500, wire.PeerID{7}, heartbeatOf(wire.PeerID{1}, 1, 1)) != nil {
		t.Error("one who is known waits for the crowd")
	}
	l = limit.New(limit.Config{HeartbeatMinMs: 500})
	l.Tick(0, false, []uint32{0}, limit.Fit{})
	if n := crowd(l, 0); n != 1000 {
		t.Errorf("%d heartbeats before the run began", n)
	}
}

// What strangers say takes a part of an uplink that is known, in as many copies as heartbeats leave
// in. On any uplink something of it passes, and on no uplink more than before.
func specStrangersUplink(t *testing.T, s *spectest.Spec) {
	part, least, most := s.Number(t, "passing", "part of strangers"), s.Number(t, "passing", "strangers at least"), s.Number(t, "passing", "strangers")
	const seconds = 60
	for name, c := range map[string]struct {
		upload float64
		full   bool
		peers  int
		times  int  // as long as an own heartbeat
		bound  bool // by the uplink
	}{
		"not measured":          {0, false, 7, 1, false},
		"long, not measured":    {0, false, 7, 8, false},
		"carries more":          {20_000, false, 7, 1, false},
		"wide":                  {1e7, true, 7, 1, false},
		"thin":                  {125_000, true, 7, 1, true},
		"of few copies":         {30_000, true, 1, 1, true},
		"of no more copies":     {125_000, true, 40, 1, true},
		"as good as nothing":    {100, true, 7, 1, true},
		"long heartbeats":       {125_000, true, 7, 8, true},
		"long heartbeats, wide": {1e7, true, 7, 8, true},
		"longer than all":       {1000, true, 7, 100, true},
		"short heartbeats":      {125_000, true, 7, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAlone()
			l := limit.New(a.core.env.cfg.Limits())
			a.core.env.cfg.Limiter, a.chain.boast = l, 1
			for i := range c.peers {
				a.up(byte(i + 1))
			}
			a.core.SetSelf(a.now, peers.SelfState{State: wire.Training, Upload: c.upload, Full: c.full})
			a.wait(1100)
			author, size := uint32(0), c.times*a.size()
			crowd := func(int) wire.Message {
				author++
				m := heartbeatOf(keyOf(author), 1, 1)
				m.Size = size
				return m
			}
			each := 1.0 // of these heartbeats counts as so many
			if c.bound {
				each = float64(min(max(c.times, 1), int(most)))
			}
			if n := passing(l, a.now, 500, crowd); n != int(float64(most)/each) {
				t.Errorf("%d at once", n)
			}
			passed := 0
			for range seconds {
				a.wait(1000)
				passed += passing(l, a.now, 100, crowd)
			}
			want := float64(most) * seconds
			if c.bound {
				copies := float64(min(c.peers, peers.HeartbeatCopies) * a.size())
				want = min(max(c.upload/float64(part)/copies, float64(least)), float64(most)) / each * seconds
			}
			if math.Abs(float64(passed)-want) > 0.02*want+1 {
				t.Errorf("%d pass in a minute, want %.0f", passed, want)
			}
		})
	}
}

// Recordings of an author take nothing from what it says now: heartbeats of an earlier process have a
// bucket of their own, and all headers that are left to show fill half of theirs.
func TestRecordingsDelayNobody(t *testing.T) {
	l, author := limited(40), wire.PeerID{1}
	l.Know(author)
	l.Check(0, wire.PeerID{7}, heartbeatOf(author, 5, 1))
	passing(l, 0, 5000, func(i int) wire.Message { return heartbeatOf(author, 4, uint64(i)) })
	if l.Check(0, wire.PeerID{7}, heartbeatOf(author, 5, 2)) != nil {
		t.Error("recorded heartbeats keep a new one out")
	}
	for round := range uint32(41) {
		for fragment := range uint16(2) {
			l.Check(0, wire.PeerID{7}, headerOf(author, fragment, round))
		}
	}
	for round := uint32(41); round <= 44; round++ {
		if l.Check(0, wire.PeerID{7}, headerOf(author, 0, round)) != nil {
			t.Errorf("recorded headers keep that of round %d out", round)
		}
	}
}

// Whoever keeps to the rules has nothing dropped, whatever others say, and memory is bounded.
func TestHonestMessagesPass(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, honest := limited(0), wire.PeerID{1}
		l.Know(honest)
		now, closed, seq, round := Time(0), uint32(0), uint64(0), uint32(0)
		for range rapid.IntRange(1, 80).Draw(t, "inputs") {
			switch rapid.SampledFrom([]string{"heartbeat", "round", "flood", "late"}).Draw(t, "input") {
			case "heartbeat":
				now += Time(rapid.IntRange(500/peers.SoonParts, 2000).Draw(t, "ms"))
				seq++
				if l.Check(now, wire.PeerID{7}, heartbeatOf(honest, 7, seq)) != nil {
					t.Fatalf("heartbeat %d", seq)
				}
			case "round":
				round++
				for fragment := range uint16(2) {
					if l.Check(now, wire.PeerID{7}, headerOf(honest, fragment, round)) != nil {
						t.Fatalf("header of round %d", round)
					}
				}
				closed++
				now += Time(rapid.IntRange(1000, 20_000).Draw(t, "ms"))
				l.Tick(now, true, []uint32{closed, closed}, limit.Fit{})
			case "flood":
				for i := range 200 {
					l.Check(now, wire.PeerID{7}, heartbeatOf(keyOf(uint32(i)), 1, uint64(i)))
					l.Check(now, wire.PeerID{7}, headerOf(wire.PeerID{2}, 0, closed+uint32(i)))
				}
			case "late":
				l.Check(now, wire.PeerID{7}, heartbeatOf(honest, 6, rapid.Uint64Range(0, 500).Draw(t, "seq")))
				l.Check(now, wire.PeerID{7}, heartbeatOf(honest, 7, rapid.Uint64Range(0, seq).Draw(t, "seq")))
			}
		}
	})
}
