package node

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/genesis"
	"atoll/node/inspect"
	"atoll/node/joinlink"
	"atoll/node/status"
	"atoll/node/store"
)

// ownedGenesis is a run that admits by invitation, and its owner's key.
func ownedGenesis(budget uint64) (genesis.Genesis, ed25519.PrivateKey) {
	owner := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	g := toyGenesis(budget)
	g.WayMs = 1
	g.Owners = append(g.Owners, wire.PeerIDOf(owner))
	return g, owner
}

// The owner's node invites another by its link. Both train one model, whose ledger replays, and each
// comes back without owner and link. A node without an invite is refused.
func TestInvitedNodesTrain(t *testing.T) {
	t.Parallel()
	g, owner := ownedGenesis(20_000)
	text := toyText(t)
	first := launch(t, Config{Genesis: g.Encode(), Owner: owner, Data: text, Pace: slowPace})
	link := first.link()
	if link.Invite == nil {
		t.Fatal("the link of the first node has no invite")
	}
	second := launch(t, Config{Link: link, Data: text, Pace: slowPace})
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
	again := launch(t, Config{Dir: second.cfg.Dir, Link: bare, Data: text, Pace: slowPace})
	again.until("it contributes again", contributes)
	members, err := inspect.Members(t.Context(), first.cfg.Dir)
	if err != nil || len(members) != 2 {
		t.Errorf("%d members, %v", len(members), err)
	}
	for _, m := range []*launched{first, again} {
		must(t, m.handle().Pace(0))
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
	if info, err := os.Stat(filepath.Join(first.cfg.Dir, InviteFile)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the invite: %v, %v", info.Mode(), err)
	}
	if _, err := os.Stat(filepath.Join(again.cfg.Dir, InviteFile)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a node that was invited keeps the invite: %v", err)
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

// guestsLink is a link like another, with an invite for guests.
func guestsLink(owner ed25519.PrivateKey, link joinlink.Link) joinlink.Link {
	pass := member.Issue(owner, link.Run, member.Invite{Guests: true}, ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), 7)))
	link.Invite = &pass
	return link
}

// memberLink is one with an invite for one node alone.
func memberLink(t *testing.T, owner ed25519.PrivateKey, link joinlink.Link, node string) joinlink.Link {
	t.Helper()
	var v member.Invite
	must(t, v.Key.UnmarshalText([]byte(node)))
	pass := member.Issue(owner, link.Run, v, nil)
	link.Invite = &pass
	return link
}

// The invite that makes most of a node admits it, whether it comes by the link or lies in the folder. What admits
// it is kept, and its headers name it.
func TestGuestsInviteGivesWay(t *testing.T) {
	g, owner := ownedGenesis(1000)
	run := joinlink.Link{Run: g.RunID()}
	other := joinlink.Link{Run: wire.RunID{9}}
	guests, members := guestsLink(owner, run), run
	pass := member.Issue(owner, g.RunID(), member.Invite{}, ed25519.NewKeyFromSeed(append(make([]byte, ed25519.SeedSize-1), 8)))
	members.Invite = &pass
	strange := member.Issue(owner, other.Run, member.Invite{}, pass.Secret)
	late := member.Issue(owner, g.RunID(), member.Invite{Guests: true, ExpiresMs: 1}, pass.Secret)
	expired := member.Issue(owner, g.RunID(), member.Invite{ExpiresMs: 1}, pass.Secret)
	for _, c := range []struct {
		name  string
		kept  *member.Pass
		link  joinlink.Link
		owner ed25519.PrivateKey
		want  *member.Pass // nil: one for it alone, that the owner's key makes
		new   bool         // the folder has no genesis: nobody has let it in
	}{
		{"a guest comes", nil, guests, nil, guests.Invite, false},
		{"a guest comes back", guests.Invite, run, nil, guests.Invite, false},
		{"a guest becomes a member", guests.Invite, members, nil, members.Invite, false},
		{"a member finds a link for guests", members.Invite, guests, nil, members.Invite, false},
		{"a member of another run", &strange, guests, nil, guests.Invite, false},
		{"a guest owns the run", guests.Invite, run, owner, nil, false},
		{"a member that came too late finds a link for guests", &expired, guests, nil, guests.Invite, true},
		{"a member that is in time does", members.Invite, guests, nil, members.Invite, true},
		{"a member that was let in in time does", &expired, guests, nil, &expired, false},
		{"a member that came too late finds none", &expired, run, nil, &expired, true},
		{"a guest that came too late finds a link for guests", &late, guests, nil, guests.Invite, true},
		{"a guest whose invite expired does", &late, guests, nil, guests.Invite, false},
		{"an owner that came too late finds a link for guests", &expired, guests, owner, nil, true},
		{"an owner whose invite expired does", &expired, guests, owner, nil, false},
		{"an owner whose invite expired finds none", &expired, run, owner, nil, false},
		{"an owner comes back", members.Invite, run, owner, members.Invite, false},
	} {
		cfg, err := Config{Dir: t.TempDir(), Genesis: g.Encode(), Link: c.link, Owner: c.owner}.withDefaults()
		must(t, err)
		if c.new {
			cfg.Genesis = nil
		}
		var log bytes.Buffer
		cfg.Log = slog.New(slog.NewTextHandler(&log, nil))
		n := newNode(cfg)
		must(t, n.identify())
		if c.kept != nil {
			of, err := c.kept.Admit(g.RunID(), n.key)
			must(t, err)
			must(t, n.keep(certificateFile, base64.RawURLEncoding.EncodeToString(of.Encode())))
		}
		must(t, n.beAdmitted())
		kept, err := keptCertificate(n.cfg.Dir, wire.PeerIDOf(n.key))
		must(t, err)
		if self := wire.PeerIDOf(n.key); c.want != nil && kept.Invite != c.want.Invite || c.want == nil && kept.Invite != (member.Invite{Key: self, Alone: true}) {
			t.Errorf("%s: kept is by an invite %+v", c.name, kept.Invite)
		}
		if got, known := n.members.Find(n.id); !known || got.Invite != kept.Invite {
			t.Errorf("%s: headers name a certificate with the invite %+v, kept is one with %+v", c.name, got.Invite, kept.Invite)
		}
		if carried := n.linkInvite(); (carried != nil) != (c.owner != nil) || carried != nil && (carried.Invite.Uses != InviteUses || carried.Invite.ExpiresMs == 0) {
			t.Errorf("%s: the link carries %+v", c.name, carried)
		}
		if warns := c.kept == &expired && c.link.Invite != nil && c.owner == nil && !c.new; strings.Contains(log.String(), "goes on as a member") != warns {
			t.Errorf("%s: logs %q", c.name, log.String())
		}
		n.work.stop()
	}
}

// A node that comes by a link for guests is a guest in all eyes, and gives the invite on. With a link of the owner's
// for it alone it is a member in the same folder, and its deltas say so from then on.
func TestGuestBecomesMember(t *testing.T) {
	t.Parallel()
	g, owner := ownedGenesis(1 << 40)
	text := toyText(t)
	first := launch(t, Config{Genesis: g.Encode(), Owner: owner, Data: text, Pace: slowPace})
	link := first.link()
	guests := guestsLink(owner, link)
	second := launch(t, Config{Link: guests, Data: text, Pace: slowPace})
	s := second.until("it contributes", contributes)
	isGuest := func(want bool) func(status.Snapshot) bool {
		return func(of status.Snapshot) bool {
			i := slices.IndexFunc(of.Peers, func(p status.Peer) bool { return p.ID == s.Self })
			return i >= 0 && of.Peers[i].Guest == want && (of.Self == s.Self || !of.Peers[0].Guest)
		}
	}
	if own, err := joinlink.Parse(s.Link); err != nil || !isGuest(true)(s) || own.Invite != nil {
		t.Errorf("its link has the invite %+v, %v; peers %+v", own.Invite, err, s.Peers)
	}
	// What the other folds of it here may come too late there.
	there := func(guest bool, folded func(p status.Peer) bool) func(status.Snapshot) bool {
		return func(of status.Snapshot) bool {
			return isGuest(guest)(of) && slices.ContainsFunc(of.Peers, func(p status.Peer) bool { return p.ID == s.Self && folded(p) })
		}
	}
	first.until("it is a guest there, of which something is folded", there(true, func(p status.Peer) bool { return p.Weight > 0 }))
	asGuest := second.leave()
	checkOwnAccount(t, asGuest, true)

	again := launch(t, Config{Dir: second.cfg.Dir, Link: memberLink(t, owner, link, s.Self), Data: text, Pace: slowPace})
	again.until("it contributes as a member", func(s status.Snapshot) bool { return contributes(s) && isGuest(false)(s) })
	first.until("it is a member there, of which something counts", there(false, func(p status.Peer) bool { return p.TokensFolded > 0 }))
	asMember := again.leave()
	checkOwnAccount(t, asMember, false, asGuest)
	last := launch(t, Config{Dir: second.cfg.Dir, Data: text, Pace: slowPace})
	last.until("it stays one", isGuest(false))
	checkOwnAccount(t, last.leave(), false, asGuest, asMember)
	first.leave()

	for _, dir := range []string{first.cfg.Dir, second.cfg.Dir} {
		members, err := inspect.Members(t.Context(), dir)
		if err != nil || len(members) != 3 || slices.ContainsFunc(members, func(m status.Member) bool { return m.Guest }) {
			t.Errorf("%s: members %+v, %v", dir, members, err)
		}
		if n := len(certificatesOf(t, dir, s.Self)); n != 2 {
			t.Errorf("%s: headers of the node name %d certificates, want the guest's and the member's", dir, n)
		}
	}
}

// checkOwnAccount: what a node trained is in its account, whether or not it counts for the budget. What it finds lost its
// processes before said that they lost, or had not published at their end.
func checkOwnAccount(t *testing.T, s status.Snapshot, guest bool, before ...status.Snapshot) {
	t.Helper()
	a, folded := s.Account, uint64(0)
	for p := range s.Fragments {
		folded += a.OwnFolded[p]
		sum := a.OwnFolded[p] + a.OwnInFlight[p] + a.OwnUnpublished[p] + a.OwnDiscarded[p] + a.OwnLostHere[p] + a.OwnLostBefore[p]
		if sum != s.TokensTrained {
			t.Errorf("fragment %d: %d tokens trained, the account has %d of them: %+v", p, s.TokensTrained, sum, a)
		}
		said := uint64(0)
		for _, b := range before {
			said += b.Account.OwnUnpublished[p] + b.Account.OwnDiscarded[p] + b.Account.OwnLostHere[p]
		}
		if a.OwnLostBefore[p] > said {
			t.Errorf("fragment %d: %d tokens are lost, of which processes before said %d: %+v", p, a.OwnLostBefore[p], said, a)
		}
	}
	if folded == 0 {
		t.Errorf("nothing of it is folded: %+v", a)
	}
	if counts := s.Peers[0].TokensFolded; !s.Peers[0].Self || counts > 0 == guest {
		t.Errorf("%v of its tokens count, guest %v", counts, guest)
	}
}

// certificatesOf are the certificates that the headers of an author name.
func certificatesOf(t *testing.T, dir, author string) map[wire.Digest]bool {
	t.Helper()
	s, err := store.OpenReadOnly(dir)
	must(t, err)
	defer s.Close()
	named := map[wire.Digest]bool{}
	for fragment := range toyGenesis(1).Plan() {
		must(t, s.Headers(fragment, 0, store.MaxRound, func(_ wire.Digest, h wire.SignedHeader) error {
			if id, err := h.Header.Author.MarshalText(); err == nil && string(id) == author {
				named[h.Header.Certificate] = true
			}
			return nil
		}))
	}
	return named
}

// A certificate and an invite that cannot be read are named, with what to do.
func TestDamagedAdmission(t *testing.T) {
	n := newNode(Config{Dir: t.TempDir()})
	must(t, n.identify())
	for name, read := range map[string]func() error{
		certificateFile: func() error { _, err := keptCertificate(n.cfg.Dir, wire.PeerIDOf(n.key)); return err },
		InviteFile:      n.findInvite,
	} {
		path := filepath.Join(n.cfg.Dir, name)
		must(t, os.WriteFile(path, []byte("junk"), 0o600))
		if err := read(); err == nil || !strings.Contains(err.Error(), path+" is damaged") || !strings.Contains(err.Error(), "delete it") {
			t.Errorf("error %v", err)
		}
	}
}

// The link of the first node leaks. Its owner revokes the invite in it: the node stays, and so does who came by another one, the link
// carries none any more, and who comes with the old one is refused.
func TestRevokedLink(t *testing.T) {
	t.Parallel()
	g, owner := ownedGenesis(1 << 40)
	text := toyText(t)
	first := launch(t, Config{Genesis: g.Encode(), Owner: owner, Data: text, Pace: slowPace})
	leaked := first.link()
	friend, err := NewInvite(owner, g.RunID(), 1, 0)
	must(t, err)
	other := leaked
	other.Invite = &friend
	second := launch(t, Config{Link: other, Data: text, Pace: slowPace})
	second.until("it contributes", contributes)
	first.leave()
	first = launch(t, Config{Dir: first.cfg.Dir, Link: leaked, Data: text, Pace: slowPace}) // its own link makes nothing else of it
	first.until("it is back", contributes)
	leaked = first.link()
	thief := launch(t, Config{Link: leaked, Data: text, Pace: slowPace})
	thief.until("it contributes", contributes)

	first.until("both are known", func(s status.Snapshot) bool { return len(s.Peers) == 3 })
	client, err := status.Dial(first.cfg.Dir)
	must(t, err)
	must(t, client.Revoke(t.Context(), revocationOf(g, owner, nowOf(t, first), hex.EncodeToString(leaked.Invite.Invite.Key[:]))))
	if <-thief.ended; thief.err == nil || !strings.Contains(thief.err.Error(), "revoked") {
		t.Errorf("the thief ends with %v", thief.err)
	}
	first.until("its link carries no invite", func(s status.Snapshot) bool {
		link, err := joinlink.Parse(s.Link)
		return err == nil && link.Invite == nil
	})
	if err := fails(t, Config{Link: leaked, Data: text}); err == nil || !strings.Contains(err.Error(), "revoked") {
		t.Errorf("who comes with the revoked invite: %v", err)
	}
	second.until("it goes on", contributes)
	second.leave()
	first.leave()
}

// Each screen says whom a link lets in, or what it lacks.
func TestWhomALinkLetsIn(t *testing.T) {
	g, owner := ownedGenesis(1000)
	few, err := NewInvite(owner, g.RunID(), 3, time.Hour)
	must(t, err)
	many, err := NewInvite(owner, g.RunID(), 0, 0)
	must(t, err)
	old := member.Issue(owner, g.RunID(), member.Invite{ExpiresMs: 1}, few.Secret)
	home, public := []string{"/ip4/10.0.0.1/tcp/1"}, []string{"/ip4/1.2.3.4/tcp/1"}
	for _, c := range []struct {
		invite *member.Pass
		addrs  []string
		wants  []string
		not    string
	}{
		{&few, public, []string{"it is for 3 machines as members, until "}, "relay"},
		{&few, home, []string{"it is for 3 machines as members, until ", "run `atoll relay LINK` on a machine"}, "no invite"},
		{&many, public, []string{"any number of machines"}, "until"},
		{&old, public, []string{"has expired: `atoll invite`"}, "revoked"},
		{nil, public, []string{"has no invite", "`atoll join OWNERS_LINK THIS_LINK`"}, "expired"},
	} {
		n := newNode(Config{Dir: t.TempDir(), Profile: "wan"})
		n.members, n.invite = member.NewTable(g.RunID(), g.Owners), c.invite
		got := n.letsIn(joinlink.Link{Run: g.RunID(), Peers: c.addrs, Invite: n.linkInvite()})
		for _, want := range c.wants {
			if !strings.Contains(got, want) || strings.Contains(got, c.not) {
				t.Errorf("says %q, want %q and not %q", got, want, c.not)
			}
		}
	}
}
