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
