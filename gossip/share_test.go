package gossip

import (
	"errors"
	"fmt"
	"testing"

	"atoll/gossip/limit"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"

	"pgregory.net/rapid"
)

// invites are those of a run, and the certificates by them.
type invites struct {
	members *member.Table
	named   map[wire.PeerID]wire.Digest // the newest certificate of an author
}

// inviting is the limiter of a run by invitation, see limited, and its invites.
func inviting(closed uint32) (*limit.Limiter, invites) {
	members := member.NewTable(wire.RunID{1}, []wire.PeerID{wire.PeerIDOf(testKey(50))})
	return limitedBy(closed, members), invites{members, map[wire.PeerID]wire.Digest{}}
}

// Kinds of messages that authors have a rate for, each.
const (
	saysHeartbeat = iota
	saysHeader
	saysEquivocation
	sayings
)

// admit lets authors in by the invite of that number.
func (v invites) admit(t testing.TB, number int, limits member.Invite, authors ...wire.PeerID) {
	t.Helper()
	pass := member.Issue(testKey(50), wire.RunID{1}, limits, testKey(60+number))
	for _, author := range authors {
		c := pass.AdmitOther(wire.RunID{1}, author)
		if _, err := v.members.Add(c); err != nil {
			t.Fatal(err)
		}
		v.named[author] = c.ID(wire.RunID{1})
	}
}

// says is a message of each kind, which an author says for the n-th time.
func (v invites) says(kind int, author wire.PeerID, n int) wire.Message {
	certified := func(m *wire.SignedHeader) { m.Header.Certificate = v.named[author] }
	switch kind {
	case saysHeartbeat:
		return heartbeatOf(author, 1, uint64(n))
	case saysHeader:
		m := headerOf(author, uint16(n%2), 1)
		certified(m.Header)
		return m
	}
	m := equivocationOf(author)
	certified(&m.Equivocation.A)
	certified(&m.Equivocation.B)
	return m
}

// crowd are the authors first, first + 1 and so on.
func crowd(first, count int) (authors []wire.PeerID) {
	for i := range count {
		authors = append(authors, keyOf(uint32(first+i)))
	}
	return authors
}

// ofOne is what passes of one author at once, by kind, in the run of limited.
var ofOne = [sayings]int{limit.HeartbeatsAtOnce, 2 * limit.HeadersOfRound * (3*4 + 2), limit.MaxEquivocationPerAuthor}

// 64 keys of an invite for 5 may say as much as 5 nodes, of each kind. Those of other invites do not notice.
func specInvitesShare(t *testing.T, _ *spectest.Spec) {
	const uses, keys = 5, 64
	for kind := range sayings {
		t.Run(fmt.Sprint(kind), func(t *testing.T) {
			l, v := inviting(1)
			leaked, others, free := crowd(1, keys), crowd(100, uses), crowd(200, 10)
			v.admit(t, 1, member.Invite{Uses: uses}, leaked...)
			v.admit(t, 2, member.Invite{Uses: uses}, others...)
			v.admit(t, 3, member.Invite{}, free...)
			seq := 0
			passing := func(now Time, of []wire.PeerID) int {
				return passing(l, now, 200*len(of), func(i int) wire.Message { seq++; return v.says(kind, of[i%len(of)], seq) })
			}
			for _, c := range []struct {
				of    []wire.PeerID
				nodes int
			}{{leaked, uses}, {others, uses}, {free, len(free)}} {
				if n, want := passing(0, c.of), c.nodes*ofOne[kind]; n != want {
					t.Errorf("%d of %d authors pass, want %d", n, len(c.of), want)
				}
			}
			if kind == saysHeartbeat {
				if n := passing(500, leaked); n != uses*limit.HeartbeatsOfPeriod {
					t.Errorf("%d heartbeats pass in a period", n)
				}
			}
		})
	}
}

func specGuestsHeadersShare(t *testing.T, _ *spectest.Spec) {
	l, v := inviting(1)
	guests := crowd(1, 100)
	for i, guest := range guests {
		v.admit(t, i%3, member.Invite{Guests: true}, guest)
	}
	n := passing(l, 0, 10_000, func(i int) wire.Message { return v.says(saysHeader, guests[i%len(guests)], i) })
	if n != limit.GuestsSlots*ofOne[saysHeader] {
		t.Errorf("%d headers of guests pass", n)
	}
}

// Keys are free to guests before a run begins as well, and at a relay, which learns nothing of
// rounds: their heartbeats share what strangers may say. Those of members do not.
func TestGuestsHeartbeatsShare(t *testing.T) {
	_, v := inviting(1)
	l := limit.New(limit.Config{HeartbeatMinMs: 500, Members: v.members})
	guests, members := crowd(1, 100), crowd(200, 100)
	v.admit(t, 1, member.Invite{Guests: true}, guests...)
	v.admit(t, 2, member.Invite{}, members...)
	for name, c := range map[string]struct {
		of   []wire.PeerID
		want int
	}{"guests": {guests, limit.StrangersHeartbeats}, "members": {members, 100}} {
		if n := passing(l, 0, 100, func(i int) wire.Message { return v.says(saysHeartbeat, c.of[i], 1) }); n != c.want {
			t.Errorf("%d heartbeats of 100 %s at once, want %d", n, name, c.want)
		}
	}
}

// An author with a slot says what it has to say, whatever others of its invite say. Those without one have what is left.
func specSlots(t *testing.T, _ *spectest.Spec) {
	for kind := range sayings {
		l, v := inviting(1)
		leaked := crowd(1, 64)
		v.admit(t, 1, member.Invite{Uses: 2}, leaked...)
		for _, author := range leaked[:3] {
			l.Contributed(author)
			l.Check(0, wire.PeerID{7}, v.says(kind, author, 0))
		}
		flood := func(of []wire.PeerID) int {
			return passing(l, 0, 100*len(of), func(i int) wire.Message { return v.says(kind, of[i%len(of)], 1+i) })
		}
		if n := flood(leaked[2:]); n != 2*ofOne[kind]-3 {
			t.Errorf("kind %d: %d of those without a slot", kind, n)
		}
		if n := flood(leaked[:1]); n != ofOne[kind]-1 {
			t.Errorf("kind %d: %d of one that has a slot", kind, n)
		}
		if n := flood(leaked[2:3]); n != 0 {
			t.Errorf("kind %d: %d of one that came when all slots were taken", kind, n)
		}
	}
}

// Slots are for whose deltas were folded first, not for who speaks first or whose name others write.
func TestSlotsFollowFolds(t *testing.T) {
	l, v := inviting(1)
	first, later := keyOf(1), keyOf(2)
	v.admit(t, 1, member.Invite{Uses: 1}, first, later)
	l.Contributed(first)
	l.Contributed(later)
	_ = l.Spares(0, wire.PeerID{7}, v.says(saysHeartbeat, later, 1)) // perhaps a forgery
	passing(l, 0, 200, func(i int) wire.Message { return v.says(saysHeartbeat, later, 1+i) })
	if err := l.Check(0, wire.PeerID{7}, v.says(saysHeartbeat, first, 1)); err != nil {
		t.Errorf("the first whose delta was folded: %v", err)
	}
}

// Whoever has an invite can admit by it a member that came by another. When its share and its slots
// are used up, that member is heard as before: whether its delta was folded before or after.
func TestForeignInviteMutesNobody(t *testing.T) {
	for _, folded := range []string{"before", "after"} {
		l, v := inviting(1)
		victim, liars := keyOf(1), []wire.PeerID{keyOf(2), keyOf(3)}
		v.admit(t, 1, member.Invite{Uses: 1}, victim)
		if folded == "before" {
			l.Contributed(victim)
		}
		v.admit(t, 2, member.Invite{Uses: 2}, liars[0], liars[1], keyOf(4), victim)
		for _, liar := range liars {
			l.Contributed(liar)
		}
		if folded == "after" {
			l.Contributed(victim)
		}
		for _, liar := range append(liars, keyOf(4)) {
			passing(l, 0, 200, func(i int) wire.Message { return v.says(saysHeartbeat, liar, 1+i) })
		}
		if err := l.Check(0, wire.PeerID{7}, v.says(saysHeartbeat, victim, 1)); err != nil {
			t.Errorf("folded %s the invite was given: %v", folded, err)
		}
	}
}

// Whoever writes an author's name takes nothing from it, before the signature shows that.
func specForgeriesTakeNothing(t *testing.T, _ *spectest.Spec) {
	l, v := inviting(1)
	author := keyOf(1)
	v.admit(t, 1, member.Invite{Uses: 1}, author)
	spares := func(seq int) error { return l.Spares(0, wire.PeerID{7}, v.says(saysHeartbeat, author, seq)) }
	for i := range 1000 {
		if err := spares(1000 + i); err != nil {
			t.Fatalf("forgery %d: %v", i, err)
		}
	}
	if n := passing(l, 0, 100, func(i int) wire.Message { return v.says(saysHeartbeat, author, i) }); n != limit.HeartbeatsAtOnce {
		t.Errorf("%d heartbeats pass after forgeries", n)
	}
	// What would not pass costs no signature.
	if err := spares(101); !errors.Is(err, limit.ErrHeldBack) {
		t.Errorf("one too many: %v", err)
	}
	if err := l.Spares(0, wire.PeerID{99}, v.says(saysHeartbeat, author, 101)); err != nil {
		t.Errorf("what this node says: %v", err)
	}
}

func specUnknownOfAPeer(t *testing.T, _ *spectest.Spec) {
	l, v := inviting(1)
	member1 := keyOf(1)
	v.admit(t, 1, member.Invite{}, member1)
	from := func(peer byte, now Time, of wire.PeerID) (n int) {
		for i := range 1000 {
			if l.Spares(now, wire.PeerID{peer}, v.says(saysHeartbeat, of, i)) == nil {
				n++
			}
		}
		return n
	}
	for peer := range byte(2) {
		if n := from(peer, 0, keyOf(2)); n != limit.UnknownAtOnce {
			t.Errorf("%d at once", n)
		}
	}
	if n := from(1, 1000, keyOf(3)); n != limit.UnknownPerSecond {
		t.Errorf("%d in a second", n)
	}
	if n := from(1, 1000, member1); n != 1000 {
		t.Errorf("%d of a member that such a peer brings", n)
	}
	l = limited(1)
	if n := from(1, 1000, keyOf(3)); n != 1000 {
		t.Errorf("%d where admission is open", n)
	}
}

func specPeriodOfInvites(t *testing.T, s *spectest.Spec) {
	each := s.Number(t, "heartbeats", "each")
	for _, begun := range []bool{false, true} {
		a := newAlone()
		owner := testKey(50)
		a.core.env.Config.Members = member.NewTable(a.run, []wire.PeerID{wire.PeerIDOf(owner)})
		a.core.env.cfg.Members = a.core.env.Config.Members
		leaked, free := member.Issue(owner, a.run, member.Invite{Uses: 3}, testKey(51)), member.Issue(owner, a.run, member.Invite{}, testKey(52))
		hear := func(first, last byte, by member.Pass) {
			for id := first; id <= last; id++ {
				if _, err := a.core.env.cfg.Members.Add(by.AdmitOther(a.run, wire.PeerID{id})); err != nil {
					t.Fatal(err)
				}
				a.told(id, nil)
			}
		}
		if begun {
			a.holds(1, 0, 1, 1)
		}
		hear(1, 100, leaked)
		hear(101, 160, free)
		if got, want := a.period(t), each*(1+3+60); got != want {
			t.Errorf("begun %v: a period of %d ms, want %d", begun, got, want)
		}
	}
}

// Whatever the authors of an invite say and when, no more of it passes than so many nodes may say, twice what may come at once
// where slots are taken. Those that have a slot and keep to the rules have nothing dropped.
func TestInvitesShareProperty(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		l, v := inviting(1)
		uses, keys := rapid.IntRange(1, 4).Draw(t, "uses"), rapid.IntRange(1, 20).Draw(t, "keys")
		authors := crowd(1, keys)
		pass := member.Issue(testKey(50), wire.RunID{1}, member.Invite{Uses: uint32(uses)}, testKey(61))
		for _, a := range authors {
			if _, err := v.members.Add(pass.AdmitOther(wire.RunID{1}, a)); err != nil {
				t.Fatal(err)
			}
		}
		honest := min(uses, rapid.IntRange(0, keys).Draw(t, "honest"))
		for _, a := range authors[:honest] {
			l.Contributed(a)
			l.Check(0, wire.PeerID{7}, v.says(saysHeartbeat, a, 1))
		}
		now, passed, seq, next := Time(0), honest, make([]int, keys), make([]Time, honest)
		for range rapid.IntRange(1, 60).Draw(t, "inputs") {
			i := rapid.IntRange(0, keys-1).Draw(t, "author")
			count := rapid.IntRange(1, 100).Draw(t, "count")
			now += Time(rapid.IntRange(0, 300).Draw(t, "ms"))
			if i < honest { // it sends a heartbeat when it may
				now, count = max(now, next[i]), 1
				next[i] = now + 500/peers.SoonParts
			}
			for range count {
				seq[i]++
				m := v.says(saysHeartbeat, authors[i], 1+seq[i])
				before := l.Spares(now, wire.PeerID{7}, m)
				after := l.Check(now, wire.PeerID{7}, m)
				if (before == nil) != (after == nil) {
					t.Fatalf("before its signature is checked %v, after it %v", before, after)
				}
				if after == nil {
					passed++
				} else if i < honest {
					t.Fatalf("a heartbeat of one that has a slot: %v", after)
				}
			}
		}
		if most := uses * (2*limit.HeartbeatsAtOnce + int(now)*limit.HeartbeatsOfPeriod/500 + 1); passed > most {
			t.Fatalf("%d heartbeats pass in %d ms, at most %d", passed, now, most)
		}
	})
}
