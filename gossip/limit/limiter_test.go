package limit

import (
	"crypto/ed25519"
	"encoding/binary"
	"testing"

	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// brings is a peer that forwards messages.
var brings = wire.PeerID{7}

// begun is the limiter of a run of two fragments in which a round of each is closed.
func begun(members *member.Table) *Limiter {
	l := New(Config{Self: wire.PeerID{99}, Members: members, HeartbeatMinMs: 500, WindowAccept: 4})
	l.Tick(0, true, []uint32{1, 1}, Fit{})
	return l
}

// key is one of many that nobody has seen.
func key(i uint32) (id wire.PeerID) {
	binary.BigEndian.PutUint32(id[1:], i+1)
	return id
}

// passing counts the messages that pass at once.
func passing(l *Limiter, count int, message func(i int) wire.Message) (n int) {
	for i := range count {
		if l.Check(0, brings, message(i)) == nil {
			n++
		}
	}
	return n
}

func heartbeatOf(author wire.PeerID, seq uint64) wire.Message {
	return wire.Message{Heartbeat: &wire.Heartbeat{Author: author, Incarnation: 1, Seq: seq}}
}

func headerOf(author wire.PeerID) wire.Message {
	return wire.Message{Header: &wire.SignedHeader{Header: wire.Header{Author: author, Round: 2}}}
}

func equivocationOf(author wire.PeerID) wire.Message {
	h := *headerOf(author).Header
	return wire.Message{Equivocation: &wire.Equivocation{A: h, B: h}}
}

// A limiter remembers so many authors at most.
func TestLimiterIsBounded(t *testing.T) {
	l := begun(nil)
	for i := range uint32(5 * peers.MaxPeers) {
		l.Check(0, brings, headerOf(key(i)))
		l.Know(key(i))
	}
	if n := l.meters.len(); n > 2*peers.MaxPeers || len(l.known) > 2*peers.MaxPeers {
		t.Errorf("%d authors are remembered, %d are known", n, len(l.known))
	}
}

// Names that anybody wrote are not remembered, so no crowd of them has a limiter forget what an author has said.
func TestForgeriesAreNotRemembered(t *testing.T) {
	l, author := begun(nil), wire.PeerID{1}
	l.Know(author)
	if n := passing(l, 500, func(i int) wire.Message { return heartbeatOf(author, uint64(i)) }); n != HeartbeatsAtOnce {
		t.Errorf("%d heartbeats pass", n)
	}
	for i := range uint32(5 * peers.MaxPeers) {
		for _, forged := range []wire.Message{heartbeatOf(key(i), 1), headerOf(key(i)), equivocationOf(key(i))} {
			_ = l.Spares(0, brings, forged)
		}
	}
	if n := l.meters.len(); n != 1 {
		t.Errorf("%d authors are remembered, one has signed anything", n)
	}
	if n := passing(l, 500, func(i int) wire.Message { return heartbeatOf(author, uint64(i)) }); n != 0 {
		t.Errorf("%d more heartbeats pass of an author who has said all that it may", n)
	}
}

// A guest becomes no more by being there before the run begins.
func TestGuestIsNotKnown(t *testing.T) {
	owner, invite := ed25519.NewKeyFromSeed(make([]byte, 32)), ed25519.NewKeyFromSeed(append(make([]byte, 31), 1))
	members := member.NewTable(wire.RunID{1}, []wire.PeerID{wire.PeerIDOf(owner)})
	guest := key(1)
	if _, err := members.Add(member.Issue(owner, wire.RunID{1}, member.Invite{Guests: true}, invite).AdmitOther(wire.RunID{1}, guest)); err != nil {
		t.Fatal(err)
	}
	l := begun(members)
	if l.Know(guest); l.knows(guest) {
		t.Error("a guest counts as known")
	}
}
