package node

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"strings"
	"testing"

	"atoll/gossip/member"
	"atoll/gossip/p2p"
	"atoll/gossip/wire"
)

// listening is a node of the run on this machine that does nothing but serve what it
// says is the genesis.
func listening(t *testing.T, seed byte, run wire.RunID, serves []byte) *node {
	t.Helper()
	cfg, err := Config{Dir: t.TempDir(), Observe: true, Profile: p2p.Local, Listen: []string{"/ip4/127.0.0.1/tcp/0"}}.withDefaults()
	must(t, err)
	n := newNode(cfg)
	n.key = ed25519.NewKeyFromSeed(bytes.Repeat([]byte{seed}, ed25519.SeedSize))
	n.self, n.run = wire.PeerIDOf(n.key), run
	must(t, n.listen())
	t.Cleanup(func() { n.host.Close() })
	go func() { // whoever answers has read who asks
		for {
			select {
			case <-n.host.Events():
			case <-t.Context().Done():
				return
			}
		}
	}()
	n.host.Handle(func(context.Context, wire.PeerID, []byte) []byte {
		return wire.Response{Status: wire.OK, Body: serves}.Encode()
	})
	return n
}

// A peer that serves another document than the run's is not believed: the next one is asked.
func TestGenesisOfAnotherRunIsNotTaken(t *testing.T) {
	t.Parallel()
	right := toyGenesis(1000)
	other := right
	other.Outer.Budget++
	run := right.RunID()
	asker, liar, honest := listening(t, 1, run, nil), listening(t, 2, run, other.Encode()), listening(t, 3, run, right.Encode())
	at := func(n *node) string { return n.host.Addrs()[0] }
	_, err := asker.genesisFrom(t.Context(), p2p.Hint{ID: liar.self, Addrs: liar.host.Addrs()})
	if err == nil || !strings.Contains(err.Error(), "it is of run "+other.RunID().String()) {
		t.Errorf("error %v", err)
	}
	asker.dials = []string{at(liar), at(honest)}
	if err := asker.learnGenesis(t.Context()); err != nil || asker.genesis.RunID() != run {
		t.Errorf("of run %v, want %v; %v", asker.genesis.RunID(), run, err)
	}
}

// invited has a node that listens bring a certificate by an invite.
func invited(t *testing.T, n *node, pass member.Pass) member.Certificate {
	t.Helper()
	c, err := pass.Admit(n.run, n.key)
	must(t, err)
	must(t, n.admitSelf(c))
	must(t, n.record.set(n.firstRecord()))
	return c
}

// knowing has a node that listens judge others by the certificates that it knows.
func knowing(t *testing.T, n *node, owner ed25519.PrivateKey, known ...member.Certificate) *node {
	t.Helper()
	n.members = member.NewTable(n.run, []wire.PeerID{wire.PeerIDOf(owner)})
	for _, c := range known {
		_, err := n.members.Add(c)
		must(t, err)
	}
	n.knows.Store(true)
	n.remembers.Store(true)
	return n
}

// One peer knows as many of an invite as it is for, and another one does not, which lets the newcomer in.
func TestUsedUpInviteAsksOthers(t *testing.T) {
	t.Parallel()
	g, owner := ownedGenesis(1000)
	run := g.RunID()
	pass, err := NewInvite(owner, run, 1, 0)
	must(t, err)
	asker, full, free := listening(t, 1, run, nil), listening(t, 2, run, g.Encode()), listening(t, 3, run, g.Encode())
	invited(t, asker, pass)
	other, err := pass.Admit(run, ed25519.NewKeyFromSeed(bytes.Repeat([]byte{9}, ed25519.SeedSize)))
	must(t, err)
	knowing(t, full, owner, other)
	knowing(t, free, owner)
	asker.dials = full.host.Addrs()[:1]
	if err := asker.learnGenesis(t.Context()); !errors.Is(err, p2p.ErrNotAdmitted) || !strings.Contains(err.Error(), "for 1 machine, and 1 came") {
		t.Errorf("the one that is asked alone says %v", err)
	}
	asker.dials = append(asker.dials, free.host.Addrs()[0])
	if err := asker.learnGenesis(t.Context()); err != nil {
		t.Errorf("the other one lets it in: %v", err)
	}
}

// Only what all nodes of the run say alike ends a join at one refusal.
func TestWhatShutsOut(t *testing.T) {
	g, owner := ownedGenesis(1000)
	stranger := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{8}, ed25519.SeedSize))
	n := newNode(Config{Dir: t.TempDir()})
	n.run, n.key = g.RunID(), ed25519.NewKeyFromSeed(bytes.Repeat([]byte{7}, ed25519.SeedSize))
	refusal := func(text string) error {
		return fmt.Errorf("%w: %w: %s", p2p.ErrRefusedByPeer, p2p.ErrNotAdmitted, text)
	}
	revoked := func(by ed25519.PrivateKey, c member.Certificate) error {
		m := member.NewTable(n.run, []wire.PeerID{wire.PeerIDOf(by)})
		_, err := m.AddRevocation(wire.SignHeader(by, n.run, wire.NewRevocation(0, 1, wire.Digest(c.Invite.Key), []byte("gone"))))
		must(t, err)
		return refusal(m.Revoked(c).Error())
	}
	for _, test := range []struct {
		name    string
		expires int64
		refusal func(c member.Certificate) error
		want    bool
	}{
		{"used up", 0, func(member.Certificate) error { return refusal("this link was for 1 machines") }, false},
		{"a peer that says so of an invite that lasts", 0, func(member.Certificate) error { return refusal("its invite has expired") }, false},
		{"expired", 1, func(member.Certificate) error { return refusal("its invite has expired") }, true},
		{"nobody there", 1, func(member.Certificate) error { return errors.New("timeout") }, false},
		{"revoked", 0, func(c member.Certificate) error { return revoked(owner, c) }, true},
		{"revoked by a stranger", 0, func(c member.Certificate) error { return revoked(stranger, c) }, false},
	} {
		c, err := member.Issue(owner, n.run, member.Invite{ExpiresMs: test.expires}, stranger).Admit(n.run, n.key)
		must(t, err)
		must(t, n.admitSelf(c))
		if got := n.shutOut(test.refusal(c)); got != test.want {
			t.Errorf("%s: shut out %v", test.name, got)
		}
	}
}
