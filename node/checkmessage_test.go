package node

import (
	"crypto/ed25519"
	"errors"
	"testing"
	"time"

	"atoll/gossip"
	"atoll/gossip/limit"
	"atoll/gossip/member"
	"atoll/gossip/p2p/messagegate"
	"atoll/gossip/wire"
	"atoll/node/clock"
)

// checking is a node of a run with one member, who came by an invite for one. Heartbeats come once a day, so that no bucket fills
// again while a test runs.
type checking struct {
	*node
	member, stranger ed25519.PrivateKey
	seq              uint64
}

func newChecking(t testing.TB) *checking {
	key := func(n byte) ed25519.PrivateKey { return ed25519.NewKeyFromSeed(append(make([]byte, 31), n)) }
	run, owner := wire.RunID{7}, key(1)
	n := &node{clock: clock.New(), started: time.Now(), identity: identity{self: wire.PeerIDOf(key(9))}, shared: shared{run: run}}
	n.members = member.NewTable(run, []wire.PeerID{wire.PeerIDOf(owner)})
	invite := member.Issue(owner, run, member.Invite{Uses: 1}, key(2))
	c := &checking{node: n, member: key(3), stranger: key(4)}
	if _, err := n.members.Add(invite.AdmitOther(run, wire.PeerIDOf(c.member))); err != nil {
		t.Fatal(err)
	}
	n.gate = messagegate.New(run, n.members)
	n.gate.Limiter.Store(messagegate.NewLimiter(gossip.Config{Self: n.self, Run: run, Members: n.members, HeartbeatMinMs: 24 * 3600 * 1000}.Limits()))
	return c
}

// heartbeat is the next one that names an author, with a wrong signature if it is forged.
func (c *checking) heartbeat(of ed25519.PrivateKey, forged bool) []byte {
	c.seq++
	raw := wire.EncodeHeartbeat(of, c.run, wire.Heartbeat{Incarnation: 1, Seq: c.seq, State: wire.Observing, Unpublished: []uint64{0}, Closed: []uint32{0}, PeriodMs: 500})
	if forged {
		raw[len(raw)-1] ^= 1
	}
	return raw
}

// A message that would go no further has no signature checked, and one whose signature is wrong takes nothing from whoever it names.
func TestSignaturesAreCheckedLast(t *testing.T) {
	n, from := newChecking(t), wire.PeerID{8}
	author, stranger, heartbeat := n.member, n.stranger, n.heartbeat
	for range 200 {
		if err := n.checkMessage(from, heartbeat(author, true)); !errors.Is(err, wire.ErrSignature) {
			t.Fatalf("a forged heartbeat: %v", err)
		}
	}
	passed := 0
	for range 200 {
		if n.checkMessage(from, heartbeat(author, false)) == nil {
			passed++
		}
	}
	if passed < 8 || passed > 100 {
		t.Errorf("%d of 200 heartbeats pass", passed)
	}
	if err := n.checkMessage(from, heartbeat(author, true)); !errors.Is(err, limit.ErrHeldBack) {
		t.Errorf("a forged heartbeat where a true one would not pass: %v", err)
	}
	// Of authors that nobody knows a peer brings some, and no more are looked at.
	asked, last := 0, error(nil)
	for range 1000 {
		var s *member.Stranger
		if last = n.checkMessage(from, heartbeat(stranger, false)); errors.As(last, &s) {
			asked++
		}
	}
	if asked == 0 || asked == 1000 || !errors.Is(last, limit.ErrHeldBack) {
		t.Errorf("%d messages of a stranger were looked at, then: %v", asked, last)
	}
	var s *member.Stranger
	if err := n.checkMessage(wire.PeerID{7}, heartbeat(stranger, false)); !errors.As(err, &s) {
		t.Errorf("one that another peer brings: %v", err)
	}
}

// What it takes to pass a heartbeat on, and to hold one back.
func BenchmarkCheckMessage(b *testing.B) {
	for _, c := range []struct {
		name   string
		passes bool
	}{{"passes", true}, {"held back", false}} {
		b.Run(c.name, func(b *testing.B) {
			n := newChecking(b)
			raw := n.heartbeat(n.member, false)
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
