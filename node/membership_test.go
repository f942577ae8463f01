package node

import (
	"crypto/ed25519"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/node/status"
)

// ownedGenesis is a run that admits by invitation, and its owner's key.
func ownedGenesis(budget uint64) (genesis.Genesis, ed25519.PrivateKey) {
	owner := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	g := toyGenesis(budget)
	g.Format, g.Rules, g.Init, g.WayMs = genesis.Format, genesis.Rules, genesis.Seeded, 1
	g.Admission, g.Owners, g.Outer.Revocations = genesis.Invite, append(g.Owners, wire.PeerIDOf(owner)), true
	return g, owner
}

// The owner's node invites another by its link. Both train one model, whose ledger replays, and each
// comes back without owner and link. Who has no invite is refused.
func TestInvitedNodesTrain(t *testing.T) {
	t.Parallel()
	g, owner := ownedGenesis(20_000)
	text := toyText(t)
	first := launch(t, Config{Genesis: g.Encode(), Owner: owner, Data: text, Pace: slowPace, Lab: true})
	link := first.link()
	if link.Invite == nil {
		t.Fatal("the link of the first node has no invite")
	}
	second := launch(t, Config{Link: link, Data: text, Pace: slowPace, Lab: true})
	second.until("it contributes", contributes)
	first.until("both are known", func(s status.Snapshot) bool { return len(s.Peers) == 2 })

	bare := link
	bare.Invite = nil
	if err := fails(t, Config{Link: bare, Data: text}); !strings.Contains(err.Error(), "ask the run's owner") {
		t.Errorf("without an invite: %v", err)
	}
	other := member.Issue(ed25519.NewKeyFromSeed(append(make([]byte, 31), 1)), g.RunID(), member.Invite{}, nil)
	forged := link
	forged.Invite = &other
	if err := fails(t, Config{Link: forged, Data: text}); err == nil {
		t.Error("an invite of somebody else lets in")
	}

	second.leave()
	again := launch(t, Config{Dir: second.cfg.Dir, Link: bare, Data: text, Pace: slowPace, Lab: true})
	again.until("it contributes again", contributes)
	members, err := inspect.Members(t.Context(), first.cfg.Dir)
	if err != nil || len(members) != 2 {
		t.Errorf("%d members, %v", len(members), err)
	}
	for _, m := range []*launched{first, again} {
		must(t, dialNode(t, m).Pace(t.Context(), 0))
	}
	want, got := first.end(), again.end()
	if !got.Finished || got.StateDigest != want.StateDigest || got.ChainDigest != want.ChainDigest {
		t.Errorf("finished %v, state %.8s chain %.8s; the first has %.8s %.8s", got.Finished, got.StateDigest, got.ChainDigest, want.StateDigest, want.ChainDigest)
	}
	for _, dir := range []string{first.cfg.Dir, again.cfg.Dir} {
		checkVerify(t, dir, want)
		if members, err := inspect.Members(t.Context(), dir); err != nil || len(members) != 2 {
			t.Errorf("%s: %d members, %v", dir, len(members), err)
		}
	}
	if info, err := os.Stat(filepath.Join(first.cfg.Dir, inviteFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the invite: %v, %v", info.Mode(), err)
	}
}

// Without an invite and without the owner's key a run that asks for one has no first node, and says
// what is missing.
func TestNobodyInvited(t *testing.T) {
	t.Parallel()
	g, _ := ownedGenesis(1000)
	if err := fails(t, Config{Genesis: g.Encode(), Data: toyText(t)}); !strings.Contains(err.Error(), "--owner FILE") {
		t.Errorf("error %v", err)
	}
}

// Nodes of a run that votes certify its rounds. A restart has the certificates, status and verify tell of them.
func TestInvitedNodesCertify(t *testing.T) {
	t.Parallel()
	g, owner := ownedGenesis(400_000)
	g.Finality, g.Outer.WindowAccept, g.Outer.WindowUnion = true, 2, 4
	text := toyText(t)
	first := launch(t, Config{Genesis: g.Encode(), Owner: owner, Data: text, Pace: slowPace, Lab: true})
	// Who takes tips cannot vote on the first rounds, so the second must not have a part in them.
	first.until("it has a certificate", func(s status.Snapshot) bool { return s.Final != nil && s.Final.Certificates > 0 })
	second := launch(t, Config{Link: first.link(), Data: text, Pace: slowPace, Lab: true})
	certified := func(s status.Snapshot) bool { return s.Final != nil && s.Final.Certificates > 1 }
	first.until("it has certificates", certified)
	second.until("it has certificates", certified)
	second.leave()
	first.leave()
	result, err := inspect.Verify(t.Context(), first.cfg.Dir)
	if err != nil || result.Final == nil || result.Final.Certificates < 2 || len(result.Final.Contradicted) > 0 {
		t.Errorf("verify: %+v, %v", result.Final, err)
	}
	again := launch(t, Config{Dir: first.cfg.Dir, Data: text, Pace: slowPace, Lab: true})
	s := again.until("it is there", func(s status.Snapshot) bool { return s.Final != nil })
	if s.Final.Certificates < 2 || s.Final.Round == 0 || s.Final.OtherChain {
		t.Errorf("after a restart: %+v", s.Final)
	}
}
