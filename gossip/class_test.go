package gossip

import (
	"crypto/ed25519"
	"encoding/binary"
	"testing"

	"atoll/gossip/member"
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
	a.core.cfg.Trusted = []wire.PeerID{{2}}
	for id, known := range map[wire.PeerID]bool{a.core.cfg.Self: true, {1}: true, {2}: true, {3}: false} {
		if a.core.known(id) != known || a.core.stranger(id) == known {
			t.Errorf("%v is known: %v", id, a.core.known(id))
		}
	}
	if before := specAlone(); before.core.stranger(wire.PeerID{3}) {
		t.Error("a stranger before the run began")
	}
}

// In a run that admits by invitation whoever has a certificate is known.
func TestMembersAreKnown(t *testing.T) {
	a := begunWith()
	owner, node := testKey(50), testKey(51)
	a.core.cfg.Members = member.NewTable(a.run, []wire.PeerID{wire.PeerIDOf(owner)})
	pass := member.Issue(owner, a.run, member.Invite{Key: wire.PeerIDOf(testKey(52))}, testKey(52))
	c, err := pass.Admit(a.run, ed25519.PrivateKey(node))
	if err != nil {
		t.Fatal(err)
	}
	if a.core.known(c.Author) {
		t.Error("known before its certificate came")
	}
	if _, err := a.core.cfg.Members.Add(c); err != nil || a.core.stranger(c.Author) {
		t.Errorf("a stranger with a certificate, %v", err)
	}
}

// announces has a peer forward a header of an author.
func (a *alone) announces(from byte, author wire.PeerID, round uint32) wire.Digest {
	h := a.header(0, round, 0)
	h.Header.Author = author
	a.core.Step(a.now, Received{From: wire.PeerID{from}, Message: wire.Message{Header: &h}})
	a.core.Effects()
	return h.Header.ID(a.run)
}

// Headers of strangers fill an eighth of the payloads wanted, the newest in place of the oldest,
// and leave room for those that are known.
func TestStrangersWantsGiveWay(t *testing.T) {
	a := begunWith(1, 2)
	a.up(1)
	first := a.announces(1, keyOf(0), 2)
	var last wire.Digest
	for i := range uint32(2 * maxStrangersWants) {
		last = a.announces(1, keyOf(i+1), 2)
	}
	if n := len(a.core.pull.wants); n != maxStrangersWants || a.core.pull.strangers != n {
		t.Errorf("%d payloads wanted, %d of strangers", n, a.core.pull.strangers)
	}
	if a.core.pull.byID[last] == nil {
		t.Error("the newest is not wanted")
	}
	if w := a.core.pull.byID[first]; w == nil || w.flights.n == 0 {
		t.Error("the one that is asked for gave way")
	}
	if id := a.announces(1, wire.PeerID{2}, 3); a.core.pull.byID[id] == nil {
		t.Error("one who is known has no room")
	}
	// Once an author is folded its wants do not give way any more.
	a.chain.contributed[a.core.pull.byID[last].header.Header.Author] = true
	a.core.Tick(a.now)
	for i := range uint32(2 * maxStrangersWants) {
		a.announces(1, keyOf(i+1_000_000), 2)
	}
	if a.core.pull.byID[last] == nil {
		t.Error("one who came to be known gave way to strangers")
	}
}

// What somebody who is known holds is wanted whoever signed it.
func TestVouchedWantsStay(t *testing.T) {
	a := begunWith(1)
	a.up(1)
	a.up(3)
	want := func(from byte, i uint32) wire.Digest {
		h := a.header(0, 2, 0)
		h.Header.Author = keyOf(i)
		id := h.Header.ID(a.run)
		a.core.pull.want(id, &h, wire.PeerID{from})
		return id
	}
	vouched := want(1, 1)
	for i := range uint32(2 * maxStrangersWants) {
		want(3, 10+i)
	}
	if a.core.pull.byID[vouched] == nil || a.core.pull.strangers > maxStrangersWants {
		t.Errorf("%d wants of strangers, and the other one is there: %v", a.core.pull.strangers, a.core.pull.byID[vouched] != nil)
	}
}

// An author that says that it has none of what it announced comes after all others until a payload
// of its comes.
func TestAuthorThatOwesComesLast(t *testing.T) {
	a := begunWith(1, 2)
	a.up(1)
	a.up(2)
	bare := a.header(1, 2, 0)
	q := questions(t, a.brought(1, bare), wire.GetPayload)
	if len(q) != 1 {
		t.Fatalf("asks %+v", q)
	}
	a.fails(q[0], wire.NotFound)
	next := a.header(1, 3, 1)
	a.brought(1, next)
	if w := a.core.pull.byID[next.Header.ID(a.run)]; !w.probe || w.strange {
		t.Errorf("its next: %+v", w)
	}
	a.core.Settle(a.now, next.Header.ID(a.run), nil)
	if a.core.pull.owes(wire.PeerID{1}) {
		t.Error("it owes something after a payload came")
	}
}
