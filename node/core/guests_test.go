package core

import (
	"testing"

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

// What was folded of guests gives them no word. Who was a member and is a guest now has none either.
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
