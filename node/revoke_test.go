package node

import (
	"crypto/ed25519"
	"errors"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/node/status"
)

// revocationOf is what an owner signs to revoke a name from the open rounds of a node on.
func revocationOf(g genesis.Genesis, owner ed25519.PrivateKey, s status.Snapshot, name string) status.Revocation {
	var id wire.PeerID
	if err := id.UnmarshalText([]byte(name)); err != nil {
		panic(err)
	}
	v := status.Revocation{Reason: "no more"}
	for f, at := range s.Fragments {
		h := wire.NewRevocation(f, at.Closed+1, wire.Digest(id), []byte(v.Reason))
		v.Words = append(v.Words, wire.SignHeader(owner, g.RunID(), h).Append(nil))
	}
	return v
}

// A member that an owner revokes ends with the reason, and so does one that was away meanwhile. The run
// goes on without it, its ledger replays, and nobody but an owner can revoke.
func TestRevokedNodeEnds(t *testing.T) {
	t.Parallel()
	g, owner := ownedGenesis(20_000)
	text := toyText(t)
	first := launch(t, Config{Genesis: g.Encode(), Owner: owner, Data: text, Pace: slowPace})
	link := first.link()
	second := launch(t, Config{Link: link, Data: text, Pace: slowPace})
	away := launch(t, Config{Link: link, Data: text, Pace: slowPace})
	second.until("it contributes", contributes)
	away.until("it contributes", contributes)
	gone := away.leave().Self

	client, self := dialNode(t, first), nowOf(t, second).Self
	stranger := ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), 9))
	if err := client.Revoke(t.Context(), revocationOf(g, stranger, nowOf(t, first), self)); err == nil || !strings.Contains(err.Error(), "no owner of this run") {
		t.Errorf("revoked by a stranger: %v", err)
	}
	for _, name := range []string{self, gone} {
		must(t, client.Revoke(t.Context(), revocationOf(g, owner, nowOf(t, first), name)))
	}
	if <-second.ended; !errors.Is(second.err, ErrRevoked) {
		t.Errorf("the revoked node ends with %v", second.err)
	}
	last, err := status.ReadFinal(second.cfg.Dir)
	must(t, err)
	told := slices.ContainsFunc(last.Alarms, func(a status.Alarm) bool {
		return a.Kind == status.Revoked && strings.HasSuffix(a.Text, ": no more") && a.Remedy != ""
	})
	if w := last.Condition(); w.Word != status.Revoked || !told {
		t.Errorf("its folder says %+v, %+v", w, last.Alarms)
	}
	if err := fails(t, Config{Dir: second.cfg.Dir, Link: link, Data: text}); !errors.Is(err, ErrRevoked) {
		t.Errorf("started again it ends with %v", err)
	}
	if err := fails(t, Config{Dir: away.cfg.Dir, Link: link, Data: text}); !errors.Is(err, ErrRevoked) {
		t.Errorf("the node that was away ends with %v", err)
	}
	members, err := inspect.Members(t.Context(), first.cfg.Dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range members {
		if m.Revoked != (m.ID == self || m.ID == gone) {
			t.Errorf("member %.8s: revoked %v", m.ID, m.Revoked)
		}
	}
	must(t, first.handle().Pace(0))
	checkVerify(t, first.cfg.Dir, first.end())
	if kept, err := inspect.Members(t.Context(), first.cfg.Dir); err != nil || !slices.Equal(kept, members) {
		t.Errorf("on disk the members are %+v, %v; they were %+v", kept, err, members)
	}
}

// nowOf is the status of a node by its socket.
func nowOf(t *testing.T, m *launched) status.Snapshot {
	t.Helper()
	s, err := dialNode(t, m).Snapshot(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return s
}
