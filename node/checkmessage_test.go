package node

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// A message that would go no further has no signature checked, and one whose signature is wrong takes nothing from whoever it names.
func TestSignaturesAreCheckedLast(t *testing.T) {
	key := func(n byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(append(make([]byte, 31), n)) }
	run, owner := wire.RunID{7}, key(1)
	n := &node{clock: newClock(), started: time.Now(), identity: identity{self: wire.PeerIDOf(key(9))}, shared: shared{run: run}}
	n.members = member.NewTable(run, []wire.PeerID{wire.PeerIDOf(owner)})
	invite := member.Issue(owner, run, member.Invite{Uses: 1}, key(2))
	author, stranger, from := key(3), key(4), wire.PeerID{8}
	if _, err := n.members.Add(invite.AdmitOther(run, wire.PeerIDOf(author))); err != nil {
		t.Fatal(err)
	}
	// Beats come once a day, so that no bucket fills again while the test runs.
	n.limiter.Store(newLimiter(gossip.Config{Self: n.self, Run: run, Members: n.members, BeatMinMs: 24 * 3600 * 1000}))
	seq := uint64(0)
	beat := func(of ed25519.PrivateKey, forged bool) []byte {
		seq++
		raw := wire.EncodeBeat(of, run, wire.Beat{Incarnation: 1, Seq: seq, State: wire.Observing, Unpublished: []uint64{0}, Closed: []uint32{0}, PeriodMs: 500})
		if forged {
			raw[len(raw)-1] ^= 1
		}
		return raw
	}
	for range 200 {
		if err := n.checkMessage(from, beat(author, true)); !errors.Is(err, wire.ErrSignature) {
			t.Fatalf("a forged beat: %v", err)
		}
	}
	passed := 0
	for range 200 {
		if n.checkMessage(from, beat(author, false)) == nil {
			passed++
		}
	}
	if passed < 8 || passed > 100 {
		t.Errorf("%d of 200 beats pass", passed)
	}
	if err := n.checkMessage(from, beat(author, true)); !errors.Is(err, gossip.ErrHeldBack) {
		t.Errorf("a forged beat where a true one would not pass: %v", err)
	}
	// Of authors that nobody knows a peer brings some, and no more are looked at.
	asked, last := 0, error(nil)
	for range 1000 {
		var s *member.Stranger
		if last = n.checkMessage(from, beat(stranger, false)); errors.As(last, &s) {
			asked++
		}
	}
	if asked == 0 || asked == 1000 || !errors.Is(last, gossip.ErrHeldBack) {
		t.Errorf("%d messages of a stranger were looked at, then: %v", asked, last)
	}
	var s *member.Stranger
	if err := n.checkMessage(wire.PeerID{7}, beat(stranger, false)); !errors.As(err, &s) {
		t.Errorf("one that another peer brings: %v", err)
	}
}
