package member

import (
	"crypto/ed25519"
	"errors"
	"strings"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"

	"pgregory.net/rapid"
)

var run = wire.RunID{7}

// key is the key of that number.
func key(number byte) ed25519.PrivateKey {
	seed := make([]byte, ed25519.SeedSize)
	seed[0] = number
	return ed25519.NewKeyFromSeed(seed)
}

// Keys of the tests: the owner's, an invite's, and two nodes'.
var owner, invite, first, second = key(1), key(2), key(3), key(4)

func id(k ed25519.PrivateKey) wire.PeerID { return wire.PeerIDOf(k) }

// admitted is a certificate for a node, with an invite of the owner's.
func admitted(t testing.TB, v Invite, node ed25519.PrivateKey) Certificate {
	t.Helper()
	c, err := Issue(owner, run, v, invite).Admit(run, node)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func table() *Table { return NewTable(run, []wire.PeerID{id(owner)}) }

// known is a table that has those certificates.
func known(t testing.TB, certificates ...Certificate) *Table {
	t.Helper()
	m := table()
	for _, c := range certificates {
		if fresh, err := m.Add(c); err != nil || !fresh {
			t.Fatal(fresh, err)
		}
	}
	return m
}

// What is changed of a certificate makes it nobody's.
func TestForgedCertificates(t *testing.T) {
	good := admitted(t, Invite{Uses: 5, ExpiresMs: 1000}, first)
	rapid.Check(t, func(t *rapid.T) {
		b := good.Encode()
		at := rapid.IntRange(0, len(b)-1).Draw(t, "at")
		b[at] ^= byte(1 << rapid.IntRange(0, 7).Draw(t, "bit"))
		c, err := Parse(b)
		if err != nil {
			return
		}
		if _, err := table().Add(c); err == nil {
			t.Fatalf("byte %d changed: taken", at)
		}
	})
	if _, err := table().Add(good); err != nil {
		t.Error(err)
	}
	if err := good.Verify(wire.RunID{8}, []wire.PeerID{id(owner)}); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("of another run: %v", err)
	}
	other, err := Issue(second, run, Invite{}, invite).Admit(run, first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table().Add(other); err == nil || !strings.Contains(err.Error(), "no owner") {
		t.Errorf("of who is no owner: %v", err)
	}
}

// An invite's holder admits nobody beyond what the owner signed.
func TestInvitesCannotBeWidened(t *testing.T) {
	pass := Issue(owner, run, Invite{Uses: 5}, invite)
	pass.Invite.Uses = 50
	c, err := pass.Admit(run, first)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := table().Add(c); !errors.Is(err, wire.ErrSignature) {
		t.Errorf("error %v, want %v", err, wire.ErrSignature)
	}
}

// A pass goes through a link and comes out the same. One for a single key has no secret, and is of
// no use to another.
func TestPassText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := Invite{
			Uses: rapid.Uint32().Draw(t, "uses"), ExpiresMs: rapid.Int64Min(0).Draw(t, "expires"), Guests: rapid.Bool().Draw(t, "guests"),
		}
		secret := invite
		if rapid.Bool().Draw(t, "for one key") {
			v.Key, secret = id(first), nil
		}
		p := Issue(owner, run, v, secret)
		got, err := ParsePass(p.String())
		if err != nil {
			t.Fatal(err)
		}
		if got.String() != p.String() || got.Invite != p.Invite || got.Sig != p.Sig || !got.Secret.Equal(p.Secret) && secret != nil {
			t.Fatalf("%+v came out as %+v", p, got)
		}
		if err := got.Check(run, []wire.PeerID{id(owner)}); err != nil {
			t.Fatal(err)
		}
		if strings.ContainsAny(p.String(), "#, \t\"'$&;|") {
			t.Fatalf("%q is not one word", p.String())
		}
	})
	p := Issue(owner, run, Invite{Key: id(first)}, nil)
	if c, err := p.Admit(run, first); err != nil || c.Verify(run, []wire.PeerID{id(owner)}) != nil {
		t.Error(err, c.Verify(run, []wire.PeerID{id(owner)}))
	}
	if _, err := p.Admit(run, second); err == nil || !strings.Contains(err.Error(), "atoll invite --for") {
		t.Errorf("used by another: %v", err)
	}
	if err := p.Check(wire.RunID{8}, []wire.PeerID{id(owner)}); err == nil {
		t.Error("of another run: taken")
	}
	// Nor does the node that it is for let in another.
	c := Certificate{Invite: p.Invite, InviteSig: p.Sig, Author: id(second)}
	c.Sig = wire.Sign(first, domainCertificate, run, c.stated())
	if err := c.Verify(run, []wire.PeerID{id(owner)}); !errors.Is(err, wire.ErrInvalid) {
		t.Errorf("given on: %v", err)
	}
}

func FuzzParsePass(f *testing.F) {
	f.Add(Issue(owner, run, Invite{Uses: 5}, invite).String())
	f.Add(Issue(owner, run, Invite{Key: id(first)}, nil).String())
	f.Add("AQ")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePass(text)
		if err != nil {
			return
		}
		if again, err := ParsePass(p.String()); err != nil || again.String() != p.String() {
			t.Errorf("%q: %v, then %v, %v", text, p, again, err)
		}
	})
}

func FuzzParse(f *testing.F) {
	f.Add(admitted(f, Invite{Uses: 5, ExpiresMs: 1000}, first).Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		c, err := Parse(b)
		if err == nil && string(c.Encode()) != string(b) {
			t.Errorf("%x came out as %x", b, c.Encode())
		}
	})
}

// header is one of a node.
func header(node ed25519.PrivateKey, certificate wire.Digest, round uint32) wire.Header {
	return wire.Header{Author: id(node), Round: round, Steps: 2, Tokens: 200, Certificate: certificate}
}

func TestCheckHeader(t *testing.T) {
	free := admitted(t, Invite{}, first)
	m := known(t, free)
	for name, test := range map[string]struct {
		h    wire.Header
		want string // part of the error; "" is none
	}{
		"admitted":       {header(first, free.ID(run), 100), ""},
		"no certificate": {header(first, wire.Digest{}, 1), "admits by invitation"},
		"of another":     {header(second, free.ID(run), 1), "not of the author"},
		"not known":      {header(first, wire.Digest{1}, 1), ErrUnknown.Error()},
	} {
		if err := m.CheckHeader(test.h); (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
	if err := m.CheckHeader(header(first, wire.Digest{1}, 1)); !errors.Is(err, ErrUnknown) {
		t.Errorf("error %v, want %v", err, ErrUnknown)
	}
	var open *Table
	if err := open.CheckHeader(header(first, wire.Digest{}, 1)); err != nil {
		t.Errorf("in an open run: %v", err)
	}
	if err := open.CheckHeader(header(first, free.ID(run), 1)); err == nil {
		t.Error("in an open run a certificate is taken")
	}
}

func TestAdmit(t *testing.T) {
	c, old := admitted(t, Invite{}, first), admitted(t, Invite{ExpiresMs: 1000}, second)
	m := known(t)
	record := func(node ed25519.PrivateKey, c []byte) hello.Record {
		return hello.Record{Author: id(node), Certificate: c}
	}
	for name, test := range map[string]struct {
		r    hello.Record
		now  int64
		want string
	}{
		"admitted":       {record(first, c.Encode()), 2000, ""},
		"in time":        {record(second, old.Encode()), 1000, ""},
		"late":           {record(second, old.Encode()), 1001, "has expired"},
		"none":           {record(first, nil), 0, "has no certificate"},
		"half of one":    {record(first, c.Encode()[:100]), 0, "100 bytes"},
		"another's":      {record(second, c.Encode()), 0, "record of another node"},
		"not the owners": {record(first, forged(t)), 0, "no owner"},
	} {
		err := m.Admit(test.r, test.now)
		if (err == nil) != (test.want == "") || err != nil && (!strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "atoll invite")) {
			t.Errorf("%s: error %v, want one with %q", name, err, test.want)
		}
	}
	if len(m.All()) != 0 {
		t.Error("who was judged is known")
	}
	// Whom it knows already it lets in again, however old the invite is.
	if err := known(t, old).Admit(record(second, old.Encode()), 5000); err != nil {
		t.Error(err)
	}
	var open *Table
	if err := open.Admit(hello.Record{}, 0); err != nil {
		t.Error(err)
	}
}

// Keys that come at once by one invite are no more than it is for, though none is known before its handshake is over. One that comes again, one
// that only looks and one that did not get through take no use.
func TestUsesBoundWhoEntersAtOnce(t *testing.T) {
	pass := Issue(owner, run, Invite{Uses: 3}, invite)
	m := table()
	enters := func(number byte, visits bool, nowMs int64) bool {
		author := id(key(number))
		return m.Admit(hello.Record{Author: author, Certificate: pass.AdmitOther(run, author).Encode(), Visits: visits}, nowMs) == nil
	}
	came := 0
	for range 2 {
		for number := byte(10); number < 20; number++ {
			if !enters(30, true, 1) && came < 3 {
				t.Error("who only looks is refused")
			}
			if enters(number, false, 1) {
				came++
			}
		}
	}
	if came != 6 {
		t.Errorf("%d let in, want 3, each twice", came)
	}
	if enters(15, false, enterMs) || !enters(15, false, enterMs+2) {
		t.Error("who did not get through took a use for good, or none at once")
	}
	if !enters(16, false, 0) {
		t.Error("a node refuses before it knows whom it knew")
	}
}

func forged(t *testing.T) []byte {
	c, err := Issue(second, run, Invite{}, invite).Admit(run, first)
	if err != nil {
		t.Fatal(err)
	}
	return c.Encode()
}

// A message of nobody who was admitted is a stranger's, whatever its kind.
func TestStranger(t *testing.T) {
	third := key(33)
	c, g := admitted(t, Invite{}, first), admitted(t, Invite{Guests: true}, third)
	m := known(t, c, g)
	signed := func(h wire.Header) *wire.SignedHeader { return &wire.SignedHeader{Header: h} }
	proof := func(a, b wire.Header) wire.Message {
		return wire.Message{Equivocation: &wire.Equivocation{A: *signed(a), B: *signed(b)}}
	}
	for name, test := range map[string]struct {
		m    wire.Message
		want bool
	}{
		"header":                                {wire.Message{Header: signed(header(first, c.ID(run), 1))}, false},
		"header without certificate":            {wire.Message{Header: signed(header(first, wire.Digest{}, 1))}, true},
		"header with another's":                 {wire.Message{Header: signed(header(second, c.ID(run), 1))}, true},
		"heartbeat":                             {wire.Message{Heartbeat: &wire.Heartbeat{Author: id(first)}}, false},
		"heartbeat of a stranger":               {wire.Message{Heartbeat: &wire.Heartbeat{Author: id(second)}}, true},
		"equivocation proof":                    {proof(header(first, c.ID(run), 1), header(first, c.ID(run), 2)), false},
		"equivocation proof without":            {proof(header(first, c.ID(run), 1), header(first, wire.Digest{}, 1)), true},
		"equivocation proof against a stranger": {proof(header(second, wire.Digest{5}, 1), header(second, wire.Digest{5}, 2)), true},
		"equivocation proof against a guest":    {proof(header(third, g.ID(run), 1), header(third, g.ID(run), 2)), true},
	} {
		if _, stranger := m.Stranger(test.m); stranger != test.want {
			t.Errorf("%s: a stranger's is %v", name, stranger)
		}
	}
}

// A leaked invite fills its own room and nobody else's. Whose deltas others hold is known all the same.
func TestTableIsBounded(t *testing.T) {
	if testing.Short() {
		t.Skip("thousands of signatures")
	}
	m := table()
	leaked := Issue(owner, run, Invite{}, invite)
	sign := func(i int) Certificate {
		c := Certificate{Invite: leaked.Invite, InviteSig: leaked.Sig, Author: wire.PeerID{byte(i), byte(i >> 8), 1}}
		c.Sig = wire.Sign(invite, domainCertificate, run, c.stated())
		return c
	}
	for i := range maxOfInvite {
		if _, err := m.Add(sign(i)); err != nil {
			t.Fatal(i, err)
		}
	}
	late := sign(maxOfInvite)
	if _, err := m.Add(late); !errors.Is(err, ErrFull) {
		t.Errorf("one more: %v", err)
	}
	other, err := Issue(owner, run, Invite{}, second).Admit(run, first)
	if err == nil {
		_, err = m.Add(other)
	}
	if err != nil {
		t.Errorf("by another invite: %v", err)
	}
	if fresh, err := m.AddHeld(late); !fresh || err != nil || !m.Member(late.Author) {
		t.Errorf("one whose delta is held: %v, %v", fresh, err)
	}
}

// Owners become known after the first certificate; whom none of them invited is forgotten then.
func TestSetOwners(t *testing.T) {
	m, c := NewTable(run, nil), admitted(t, Invite{Guests: true}, first)
	if _, err := m.Add(c); err != nil {
		t.Fatalf("before genesis is known: %v", err)
	}
	m.Verify = func(c Certificate, owners []wire.PeerID) error {
		if m.mu.TryRLock() {
			m.mu.RUnlock()
			t.Error("the table can be read while it is half empty")
		}
		return c.Verify(run, owners)
	}
	if m.SetOwners([]wire.PeerID{id(second), id(owner)}); !m.Guest(id(first)) || m.Came(id(invite)) != 1 {
		t.Error("whom an owner invited is forgotten")
	}
	if m.SetOwners([]wire.PeerID{id(second)}); m.Guest(id(first)) || m.Member(id(first)) || m.Came(id(invite)) != 0 {
		t.Error("whom no owner invited is known")
	}
	m.Verify = nil
	c, err := Issue(second, run, Invite{}, invite).Admit(run, second)
	if err == nil {
		_, err = m.Add(c)
	}
	if err != nil {
		t.Error(err)
	}
}

// The invite for most nodes bounds what a node may say, and none does where one is without a bound.
func TestBound(t *testing.T) {
	by := func(invite byte, v Invite) Certificate {
		return Issue(owner, run, v, key(invite)).AdmitOther(run, id(first))
	}
	two, five, many, guests := by(20, Invite{Uses: 2}), by(21, Invite{Uses: 5}), by(22, Invite{}), by(23, Invite{Guests: true, Uses: 9})
	for i, c := range []struct {
		of     []Certificate
		invite wire.PeerID
		uses   uint32
	}{
		{nil, wire.PeerID{}, 0},
		{[]Certificate{guests}, wire.PeerID{}, 0},
		{[]Certificate{two, guests}, two.Invite.Key, 2},
		{[]Certificate{two, five}, five.Invite.Key, 5},
		{[]Certificate{five, two}, five.Invite.Key, 5},
		{[]Certificate{five, many, two}, wire.PeerID{}, 0},
	} {
		if invite, uses := known(t, c.of...).Bound(id(first)); invite != c.invite || uses != c.uses {
			t.Errorf("case %d: %v for %d, want %v for %d", i, invite, uses, c.invite, c.uses)
		}
	}
	if _, uses := (*Table)(nil).Bound(id(first)); uses != 0 {
		t.Errorf("for %d in a run that is open", uses)
	}
	// An invite that is revoked bounds nothing, as nobody speaks by it.
	members := known(t, two, five)
	if _, err := members.AddRevocation(wire.SignHeader(owner, run, wire.NewRevocation(0, 1, wire.Digest(five.Invite.Key), []byte("gone")))); err != nil {
		t.Fatal(err)
	}
	if invite, _ := members.Bound(id(first)); invite != two.Invite.Key {
		t.Errorf("%v after its other invite was revoked", invite)
	}
}

// A member that is revoked and comes back by a link for guests is a guest. One that comes back as a member is none.
func TestRevokedMemberIsGuest(t *testing.T) {
	m := known(t, admitted(t, Invite{}, first))
	revokes := func(name wire.PeerID) {
		t.Helper()
		if _, err := m.AddRevocation(wire.SignHeader(owner, run, wire.NewRevocation(0, 1, wire.Digest(name), []byte("gone")))); err != nil {
			t.Fatal(err)
		}
	}
	comes := func(v Invite, by byte) {
		t.Helper()
		c, err := Issue(owner, run, v, key(by)).Admit(run, first)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := m.Add(c); err != nil {
			t.Fatal(err)
		}
	}
	for _, step := range []struct {
		name          string
		does          func()
		member, guest bool
	}{
		{"a member", func() {}, true, false},
		{"revoked", func() { revokes(id(invite)) }, false, false},
		{"back as a guest", func() { comes(Invite{Guests: true}, 7) }, true, true},
		{"back as a member", func() { comes(Invite{}, 8) }, true, false},
		{"revoked twice", func() { revokes(id(key(8))) }, true, true},
		{"revoked as a guest too", func() { revokes(id(key(7))) }, false, false},
	} {
		if step.does(); m.Member(id(first)) != step.member || m.Guest(id(first)) != step.guest {
			t.Errorf("%s: a member %v, a guest %v", step.name, m.Member(id(first)), m.Guest(id(first)))
		}
	}
	g := known(t, admitted(t, Invite{Guests: true}, second))
	if _, err := g.AddRevocation(wire.SignHeader(owner, run, wire.NewRevocation(0, 1, wire.Digest(id(second)), []byte("gone")))); err != nil || !g.Guest(id(second)) {
		t.Errorf("a guest that is revoked is none: %v", err)
	}
}
