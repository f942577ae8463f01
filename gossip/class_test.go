package gossip

import (
	"crypto/ed25519"
	"encoding/binary"
	"slices"
	"testing"

	"atoll/gossip/effect"
	"atoll/gossip/fetch"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/serve"
	"atoll/gossip/wire"
)

// begunWith is a core of a run in which the peers of these numbers were folded.
func begunWith(known ...byte) *alone {
	a := specAlone()
	a.holds(200, 0, 1, 1)
	a.chain.contributed = map[wire.PeerID]bool{}
	for _, id := range known {
		a.chain.contributed[wire.PeerID{id}] = true
	}
	return a
}

// keyOf is one of many keys that nobody has seen.
func keyOf(i uint32) (id wire.PeerID) {
	id[0] = 250
	binary.BigEndian.PutUint32(id[1:], i)
	return id
}

func TestClasses(t *testing.T) {
	a := begunWith(1)
	a.core.env.Config.Trusted = []wire.PeerID{{2}}
	for id, known := range map[wire.PeerID]bool{a.core.env.cfg.Self: true, {1}: true, {2}: true, {3}: false} {
		if a.core.env.Known(id) != known || a.core.env.Stranger(id) == known {
			t.Errorf("%v is known: %v", id, a.core.env.Known(id))
		}
	}
	if before := specAlone(); before.core.env.Stranger(wire.PeerID{3}) {
		t.Error("a stranger before the run began")
	}
}

// In a run that admits by invitation whoever has a certificate is known.
func TestMembersAreKnown(t *testing.T) {
	a := begunWith()
	owner, node := testKey(50), testKey(51)
	a.core.env.Config.Members = member.NewTable(a.run, []wire.PeerID{wire.PeerIDOf(owner)})
	a.core.env.cfg.Members = a.core.env.Config.Members
	pass := member.Issue(owner, a.run, member.Invite{Key: wire.PeerIDOf(testKey(52))}, testKey(52))
	c, err := pass.Admit(a.run, ed25519.PrivateKey(node))
	if err != nil {
		t.Fatal(err)
	}
	if a.core.env.Known(c.Author) {
		t.Error("known before its certificate came")
	}
	if _, err := a.core.env.cfg.Members.Add(c); err != nil || a.core.env.Stranger(c.Author) {
		t.Errorf("a stranger with a certificate, %v", err)
	}
}

// The connection to a peer is kept once it is known, and said again for the next one.
func TestConnectionsOfTheKnownAreKept(t *testing.T) {
	a := begunWith(1)
	kept := func(ms Time) (ids []wire.PeerID) {
		for _, e := range find[Keep](a.wait(ms, 1, 2)) {
			ids = append(ids, e.Peer)
		}
		return ids
	}
	a.up(1)
	a.up(2)
	sameIDs(t, "kept", kept(2*peers.DialPeriodMs), wire.PeerID{1})
	a.chain.contributed[wire.PeerID{2}] = true
	sameIDs(t, "kept later", kept(2*peers.DialPeriodMs), wire.PeerID{2})
	a.core.Step(a.now, PeerDown{Peer: wire.PeerID{1}})
	a.up(1)
	sameIDs(t, "kept again", kept(2*peers.DialPeriodMs), wire.PeerID{1})
}

// Repairs with strangers give way to those with peers that are known, and who does not answer comes
// after both.
func TestStrangersRepairsGiveWay(t *testing.T) {
	a := begunWith(1, 2, 3, 4)
	for id := byte(1); id <= 8; id++ {
		a.up(id)
		a.told(id, nil)
	}
	repairs := func(want ...byte) {
		t.Helper()
		var got, ids []wire.PeerID
		for _, s := range a.core.repair.sessions {
			got = append(got, s.peer.ID)
		}
		for _, id := range want {
			ids = append(ids, wire.PeerID{id})
		}
		slices.SortFunc(got, wire.PeerID.Compare)
		sameIDs(t, "repairs with", got, ids...)
	}
	begin := func(ids ...byte) (e []Effect) {
		for _, id := range ids {
			a.core.repair.begin(a.core.env.Find(wire.PeerID{id}))
			e = append(e, a.core.Effects()...)
		}
		return e
	}
	begin(5, 6, 7, 8)
	repairs(5, 6, 7) // nobody else is there
	begin(1, 2)
	repairs(1, 2, 7)
	q := questions(t, begin(3), wire.GetRounds)
	repairs(1, 2, 3)
	begin(4, 5)
	repairs(1, 2, 3)
	a.core.Step(a.now, Answered{Call: q[len(q)-1].call.ID, Err: effect.ErrNoAnswer})
	repairs(1, 2)
	begin(3)
	repairs(1, 2, 3) // without an answer it is the last of all
	begin(5)
	repairs(1, 2, 5)
	a.core.repair.sessions[2].answered = true
	begin(4)
	repairs(1, 2, 5) // whoever answers stays
}

// A snapshot source that does not say what its tips are has another asked beside it.
func TestAnotherSourceIsAskedBeside(t *testing.T) {
	a := newAlone()
	a.core.SetSelf(a.now, peers.SelfState{State: wire.Joining})
	for id := byte(1); id <= 3; id++ {
		a.up(id)
		a.told(id, func(b *wire.Heartbeat) { b.Folded = uint64(id) })
	}
	a.core.FetchSnapshot(a.now)
	first := questions(t, a.core.Effects(), wire.GetManifest)
	if len(first) != 1 || first[0].to != 3 {
		t.Fatalf("asks %+v", first)
	}
	if early := questions(t, a.wait(anotherSourceMs-100, 1, 2, 3), wire.GetManifest); len(early) != 0 {
		t.Errorf("asks %+v early", early)
	}
	second := questions(t, a.wait(300, 1, 2, 3), wire.GetManifest)
	if len(second) != 1 || second[0].to != 2 {
		t.Fatalf("then asks %+v", second)
	}
	a.fails(second[0], wire.Busy)
	if s := a.core.snapshot.stage; s != asking {
		t.Errorf("gives up the first for the second: %v", s)
	}
	a.fails(first[0], wire.Busy)
	if s := a.core.snapshot.stage; s != choosing {
		t.Errorf("waits for nobody: %v", s)
	}
}

// Requests of strangers that wait have an eighth of the slots, and give them to others.
func TestStrangersParkedGiveWay(t *testing.T) {
	a := begunWith()
	handle, busy := uint64(0), map[uint64]bool{}
	asks := func(from wire.PeerID, times int) {
		if a.core.env.Find(from) == nil {
			a.core.Step(a.now, PeerUp{Peer: from})
		}
		for range times {
			handle++
			q := wire.Request{Kind: wire.GetPayload, Digest: wire.Digest{byte(handle), byte(handle >> 8), 7}, WaitMs: 5000}
			a.core.Step(a.now, Requested{Handle: handle, From: from, Request: q.Encode()})
		}
		for _, r := range find[Reply](a.core.Effects()) {
			busy[r.Handle] = true
		}
	}
	for i := range uint32(serve.MaxParked / fetch.MaxParkedPerPeer) {
		asks(keyOf(i), fetch.MaxParkedPerPeer)
	}
	if n := a.core.size("parked requests"); n != serve.MaxParked/peers.StrangersShare {
		t.Errorf("%d requests of strangers wait", n)
	}
	for i := range serve.MaxParked / fetch.MaxParkedPerPeer {
		id := wire.PeerID{byte(i + 1)}
		a.chain.contributed[id] = true
		asks(id, fetch.MaxParkedPerPeer)
	}
	if n := a.core.size("parked requests"); n != serve.MaxParked || !busy[1] {
		t.Errorf("%d requests wait, and the first is turned away: %v", n, busy[1])
	}
	for h := range uint64(serve.MaxParked) {
		if !busy[1+h] {
			t.Fatalf("request %d, of a stranger, keeps another one out", 1+h)
		}
	}
}
