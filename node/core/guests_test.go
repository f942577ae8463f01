package core

import (
	"reflect"
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// invited is lone in a run that admits by invitation, with the owners of these keys: true for a guest. change is to its
// configuration, nil for none.
func invited(t testing.TB, keys map[byte]bool, change func(cfg *Config)) *Machine {
	t.Helper()
	cfg := lone(4, 4, 8).cfg
	owner := testKey(50)
	cfg.Gossip.Members = member.NewTable(cfg.Run, []wire.PeerID{wire.PeerIDOf(owner)})
	for key, guest := range keys {
		c, err := member.Issue(owner, cfg.Run, member.Invite{Guests: guest}, testKey(51+byte(one(guest)))).Admit(cfg.Run, testKey(key))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := cfg.Gossip.Members.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	if change != nil {
		change(&cfg)
	}
	return New(cfg, []*outer.Tip{outer.Genesis(cfg.Plan[0], make([]float32, 4), cfg.Params)})
}

// What was folded of guests makes their claims count for nothing, as do those of a member that is a guest now.
func TestGuestsGetNoCredit(t *testing.T) {
	m := invited(t, map[byte]bool{2: false, 3: true}, nil)
	for key, want := range map[byte]bool{2: true, 3: false} {
		id := wire.PeerIDOf(testKey(key))
		m.Credit(id)
		if has := (chain{m}).Contributed(id); m.contributed[id] != want || has != want {
			t.Errorf("the peer of key %d has contributed: %v", key, has)
		}
	}
	id := wire.PeerIDOf(testKey(2))
	members := m.cfg.Gossip.Members
	pass := member.Issue(testKey(50), m.cfg.Run, member.Invite{Guests: true}, testKey(52))
	if _, err := members.Add(pass.AdmitOther(m.cfg.Run, id)); err != nil || !(chain{m}).Contributed(id) {
		t.Fatalf("an invite for guests makes a guest of a member: %v", err)
	}
	word := wire.SignHeader(testKey(50), m.cfg.Run, wire.NewRevocation(0, 1, wire.Digest(wire.PeerIDOf(testKey(51))), []byte("gone")))
	if _, err := members.AddRevocation(word); err != nil || !members.Guest(id) {
		t.Fatalf("no guest: %v", err)
	}
	if (chain{m}).Contributed(id) {
		t.Error("a guest that was a member has contributed")
	}
}

// meets has a machine meet the owner of a key, who trains and of whom a delta came.
func (m *Machine) meets(now Time, key byte) wire.PeerID {
	id := wire.PeerIDOf(testKey(key))
	c := m.cfg.Gossip.Members.Of(id)[0]
	m.Step(now, gossip.PeerUp{Peer: id, Record: hello.Record{Author: id, Certificate: c.Encode(), Role: hello.Learner, Trainer: hello.Builtin}})
	b := wire.Heartbeat{Author: id, Incarnation: 1, Seq: 1, State: wire.Training, Closed: []uint32{0}, Unpublished: []uint64{5}, Tokens: 5, Steps: 5}
	m.Step(now, gossip.Received{From: id, Message: wire.Message{Heartbeat: &b}})
	m.heard.delivered(id, 8)
	m.attendance.attended(id)
	return id
}

// No round waits for a guest, no claim of one counts, and none is counted among those that are here. A guest waits for members,
// not for itself.
func TestGuestsAreNotWaitedFor(t *testing.T) {
	const now = 1_000_000
	for _, self := range []bool{false, true} {
		m := invited(t, map[byte]bool{1: self, 2: false, 3: true}, func(cfg *Config) { cfg.Learner = true })
		one, guest := m.meets(now, 2), m.meets(now, 3)
		learners := m.gossip.Peers().Learners(now)
		if len(learners) != 2 {
			t.Fatalf("%d learners are here", len(learners))
		}
		if live := m.liveLearners(learners); !slices.Contains(live, outer.Author(one)) || slices.Contains(live, outer.Author(guest)) {
			t.Errorf("rounds wait for %v", live)
		}
		m.updatePeerList(now)
		if m.attendance.present != 2 {
			t.Errorf("%d are here, want the member and this node", m.attendance.present)
		}
		if m.cache.peerList.idle != self {
			t.Errorf("a guest %v: waits for itself %v", self, !m.cache.peerList.idle)
		}
		if claimants := m.claimants(now); !m.believes(one) || m.believes(guest) || len(claimants) != 1 || claimants[0].author != outer.Author(one) {
			t.Errorf("believes the member %v, the guest %v; claimants %v", m.believes(one), m.believes(guest), claimants)
		}
	}
}

// awaited is how many learners rounds wait for, this one among them. Rounds tell nobody: it shows in when they close.
func (m *Machine) awaited() int {
	return reflect.ValueOf(m.rounds).Elem().FieldByName("peerList").FieldByName("live").Len()
}

// A guest that comes by an invite for members is waited for at once, whoever else comes and goes. Rounds are told of revocations as well.
func TestChangeOfClassIsSeen(t *testing.T) {
	const now = 1_000_000
	m := invited(t, map[byte]bool{1: false, 2: false, 3: true}, func(cfg *Config) { cfg.Learner = true })
	m.meets(now, 2)
	guest := m.meets(now, 3)
	m.updatePeerList(now)
	if n := m.awaited(); n != 2 || m.attendance.present != 2 {
		t.Fatalf("rounds wait for %d, %d are here: want this node and the member", n, m.attendance.present)
	}
	members := m.cfg.Gossip.Members
	pass := member.Issue(testKey(50), m.cfg.Run, member.Invite{Key: guest}, nil)
	c, err := pass.Admit(m.cfg.Run, testKey(3))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := members.Add(c); err != nil {
		t.Fatal(err)
	}
	m.updatePeerList(now)
	if n := m.awaited(); n != 3 || m.attendance.present != 3 {
		t.Errorf("rounds wait for %d, %d are here: want the new member too", n, m.attendance.present)
	}
	word := wire.SignHeader(testKey(50), m.cfg.Run, wire.NewRevocation(0, 1, wire.Digest(guest), []byte("gone")))
	if _, err := members.AddRevocation(word); err != nil {
		t.Fatal(err)
	}
	m.updatePeerList(now)
	if before := m.cache.peerList.members; before != members.Changes() {
		t.Errorf("the rounds were told at change %d of %d", before, members.Changes())
	}
}
