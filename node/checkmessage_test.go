package node

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// checking is a node of a run with one member, who came by an invite for one. Beats come once a day, so that no bucket fills
// again while a test runs.
type checking struct {
	*node
	member, stranger ed25519.PrivateKey
	seq              uint64
}

func newChecking(t testing.TB) *checking {
	key := func(n byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(append(make([]byte, 31), n)) }
	run, owner := wire.RunID{7}, key(1)
	n := &node{clock: newClock(), started: time.Now(), identity: identity{self: wire.PeerIDOf(key(9))}, shared: shared{run: run}}
	n.members = member.NewTable(run, []wire.PeerID{wire.PeerIDOf(owner)})
	invite := member.Issue(owner, run, member.Invite{Uses: 1}, key(2))
	c := &checking{node: n, member: key(3), stranger: key(4)}
	if _, err := n.members.Add(invite.AdmitOther(run, wire.PeerIDOf(c.member))); err != nil {
		t.Fatal(err)
	}
	n.gate = p2p.NewMessageGate(run, n.members)
	n.gate.Limiter.Store(p2p.NewLimiter(gossip.Config{Self: n.self, Run: run, Members: n.members, BeatMinMs: 24 * 3600 * 1000}))
	return c
}

// beat is the next one that names an author, with a wrong signature if it is forged.
func (c *checking) beat(of ed25519.PrivateKey, forged bool) []byte {
	c.seq++
	raw := wire.EncodeBeat(of, c.run, wire.Beat{Incarnation: 1, Seq: c.seq, State: wire.Observing, Unpublished: []uint64{0}, Closed: []uint32{0}, PeriodMs: 500})
	if forged {
		raw[len(raw)-1] ^= 1
	}
	return raw
}

// A message that would go no further has no signature checked, and one whose signature is wrong takes nothing from whoever it names.
func TestSignaturesAreCheckedLast(t *testing.T) {
	n, from := newChecking(t), wire.PeerID{8}
	author, stranger, beat := n.member, n.stranger, n.beat
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

// What it takes to pass a beat on, and to hold one back.
func BenchmarkCheckMessage(b *testing.B) {
	for _, c := range []struct {
		name   string
		passes bool
	}{{"passes", true}, {"held back", false}} {
		b.Run(c.name, func(b *testing.B) {
			n := newChecking(b)
			raw := n.beat(n.member, false)
			for !c.passes && n.checkMessage(wire.PeerID{8}, raw) == nil { // until no more may pass
			}
			if c.passes {
				n.gate.Limiter.Store(nil)
			}
			for b.Loop() {
				if err := n.checkMessage(wire.PeerID{8}, raw); (err == nil) != c.passes {
					b.Fatal(err)
				}
			}
		})
	}
}
