package p2p

import (
	"bytes"
	"crypto/ed25519"
	"testing"
	"time"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/p2p/messagegate"
	"atoll/gossip/wire"
)

// flood is 64 keys that came by an invite for 5, in a run that has another member as well.
type flood struct {
	members *member.Table
	keys    []ed25519.PrivateKey
	member  ed25519.PrivateKey
	seq     uint64
}

const (
	floodUses = 5
	floodKeys = 64
)

func newFlood(t *testing.T) *flood {
	key := func(n byte) ed25519.PrivateKey {
		return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
	}
	f := &flood{members: member.NewTable(testRun, []wire.PeerID{wire.PeerIDOf(key(200))}), member: key(201)}
	admit := func(v member.Invite, invite byte, keys ...ed25519.PrivateKey) {
		pass := member.Issue(key(200), testRun, v, key(invite))
		for _, k := range keys {
			if _, err := f.members.Add(pass.AdmitOther(testRun, wire.PeerIDOf(k))); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range byte(floodKeys) {
		f.keys = append(f.keys, key(100+i))
	}
	admit(member.Invite{Uses: floodUses}, 202, f.keys...)
	admit(member.Invite{}, 203, f.member)
	return f
}

// heartbeat is the next one of a key.
func (f *flood) heartbeat(key ed25519.PrivateKey) []byte {
	f.seq++
	return wire.EncodeHeartbeat(key, testRun, wire.Heartbeat{
		Incarnation: 1, Seq: f.seq, State: wire.Observing, Unpublished: []uint64{0}, Closed: []uint32{0}, PeriodMs: wire.MinPeriodMs,
	})
}

// limits has a host pass on what a node passes on.
func (f *flood) limits(c *Config) {
	gate, start := messagegate.New(testRun, f.members), time.Now()
	gate.Limiter.Store(messagegate.NewLimiter(gossip.Config{Self: wire.PeerIDOf(c.Key), Run: testRun, Members: f.members, HeartbeatMinMs: 500}.Limits()))
	c.Check = func(from wire.PeerID, raw []byte) error {
		return gate.Check(time.Since(start).Milliseconds(), from, raw)
	}
	c.Spares = func(from wire.PeerID, raw []byte) error {
		return gate.Spares(time.Since(start).Milliseconds(), from, raw)
	}
}

// An honest node passes on of 64 keys of one invite for 5 what 5 nodes may say, whoever brings it, and all that a member says.
func TestInviteFloodIsNotForwarded(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		f := newFlood(t)
		honest := newPerson(2).config()
		f.limits(&honest)
		a, b, c := w.host(newPerson(1).config()), w.host(honest), w.host(newPerson(3).config()) // a and c let all pass
		dial(t, a, b)
		dial(t, b, c)
		time.Sleep(5 * time.Second)
		drain(c)
		const seconds = 4
		said := map[string]bool{} // by the member
		for range seconds {
			for i := range 800 {
				if err := a.Publish(f.heartbeat(f.keys[i%floodKeys])); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Second / 1000)
			}
			own := f.heartbeat(f.member)
			said[string(own)] = true
			if err := a.Publish(own); err != nil {
				t.Fatal(err)
			}
			time.Sleep(200 * time.Millisecond)
		}
		passed, mine := 0, 0
		for _, text := range gets(c) {
			if said[text] {
				mine++
			} else {
				passed++
			}
		}
		const atOnce, perSecond = 32, 16 // of one author (limit.Limiter), where heartbeats may come every 500 ms
		most := floodUses * (atOnce + perSecond*(seconds+1))
		if passed > most || passed < floodUses*atOnce || mine != seconds {
			t.Errorf("%d of %d heartbeats of the flood were passed on, at most %d; %d of %d of a member", passed, seconds*800, most, mine, seconds)
		}
	})
}
