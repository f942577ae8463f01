package member

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"
)

// One test for each clause of gossip/wire/SPEC.md that is about members.
func TestSpec(t *testing.T) {
	spectest.Run(t, "M", map[string]spectest.Clause{
		"M-1": specInvite, "M-1.2": specAdmits, "M-2": specCertificate, "M-3": specSignatures, "M-3.2": specDigest, "M-4": specRefused,
		"M-5": specLetsIn, "M-6": specSession, "M-6.2": specExpired, "M-6.3": specUsedUp, "M-7": specStrangers, "M-8": specPass,
		"M-9": specRevocation, "M-9.2": specOwnersRevoke, "M-9.3": specKeeps, "M-9.4": specWord, "M-10": specRevokedGossip, "M-10.2": specRevokedSession, "M-10.3": specProof,
	})
}

// owners are those of the examples.
var owners = []wire.PeerID{wire.PeerIDOf(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32)))}

// field cuts a field out of bytes by a table of the text.
func field(t *testing.T, s *spectest.Spec, table, name string, b []byte) []byte {
	t.Helper()
	for _, row := range s.Table(t, table) {
		if row[2] == name {
			at, _ := strconv.Atoi(row[0])
			size, _ := strconv.Atoi(row[1])
			return b[at : at+size]
		}
	}
	t.Fatalf("the table %s has no %s", table, name)
	return nil
}

func example(t *testing.T, s *spectest.Spec) (Certificate, wire.RunID) {
	t.Helper()
	c, err := Parse(s.Hex(t, "member certificate"))
	if err != nil {
		t.Fatal(err)
	}
	return c, wire.RunID(s.Hex(t, "run"))
}

func specInvite(t *testing.T, s *spectest.Spec) {
	c, _ := example(t, s)
	raw := field(t, s, "certificate", "invite", s.Hex(t, "member certificate"))
	of := func(name string) []byte { return field(t, s, "invite", name, raw) }
	v := c.Invite
	if !bytes.Equal(v.Key[:], of("key")) || v.Alone != (of("admits")[0] == 1) || v.Guests != (of("admits")[0] == 2) || v.Uses != binary.BigEndian.Uint32(of("uses")) ||
		uint64(v.ExpiresMs) != binary.BigEndian.Uint64(of("expires")) {
		t.Errorf("%+v", v)
	}
	if !bytes.Equal(v.append(nil), raw) {
		t.Errorf("encoded %x", v.append(nil))
	}
	if free := admitted(t, Invite{}, first); table().Admit(hello.Record{Author: id(first), Certificate: free.Encode()}, math.MaxInt64) != nil {
		t.Error("0 sets a limit")
	}
}

func specAdmits(t *testing.T, s *spectest.Spec) {
	raw := field(t, s, "certificate", "invite", s.Hex(t, "member certificate"))
	for admits := range 256 {
		v, err := parseInvite(slices.Concat(raw[:32], []byte{byte(admits)}, raw[33:]))
		if (err == nil) != (admits <= 2) || v.Alone != (admits == 1) || v.Guests != (admits == 2) {
			t.Errorf("%d: %+v, %v", admits, v, err)
		}
	}
	guest, member := admitted(t, Invite{Guests: true}, first), admitted(t, Invite{}, first)
	if m := known(t, guest); !m.Guest(id(first)) || m.Guest(id(second)) || known(t, guest, member).Guest(id(first)) {
		t.Error("who is a guest")
	}
}

func specCertificate(t *testing.T, s *spectest.Spec) {
	c, _ := example(t, s)
	raw := s.Hex(t, "member certificate")
	of := func(name string) []byte { return field(t, s, "certificate", name, raw) }
	if !bytes.Equal(c.InviteSig[:], of("owner's signature")) ||
		!bytes.Equal(c.Author[:], of("author")) || !bytes.Equal(c.Sig[:], of("signature")) {
		t.Errorf("%+v", c)
	}
	if !bytes.Equal(c.Encode(), raw) || len(raw) != Size {
		t.Errorf("encoded %x", c.Encode())
	}
	if _, err := Parse(raw[1:]); err == nil {
		t.Error("one byte less is taken")
	}
}

// statement is W-3.
func statement(domain string, run wire.RunID, parts ...[]byte) []byte {
	return slices.Concat([]byte{byte(len(domain))}, []byte(domain), run[:], slices.Concat(parts...))
}

func specSignatures(t *testing.T, s *spectest.Spec) {
	c, run := example(t, s)
	raw := s.Hex(t, "member certificate")
	invite := field(t, s, "certificate", "invite", raw)
	if !ed25519.Verify(owners[0][:], statement("atoll invite 1", run, invite), c.InviteSig[:]) {
		t.Error("the owner's")
	}
	if !ed25519.Verify(c.Invite.Key[:], statement("atoll certificate 1", run, invite, c.Author[:]), c.Sig[:]) {
		t.Error("the invite's")
	}
	if err := c.Verify(run, owners); err != nil {
		t.Error(err)
	}
}

func specDigest(t *testing.T, s *spectest.Spec) {
	c, run := example(t, s)
	invite := field(t, s, "certificate", "invite", s.Hex(t, "member certificate"))
	want := wire.Sum(statement("atoll certificate id 1", run, invite, c.Author[:]))
	if got := c.ID(run); got != want || !bytes.Equal(got[:], s.Hex(t, "member digest")) {
		t.Errorf("digest %x", got[:])
	}
}

func specRefused(t *testing.T, s *spectest.Spec) {
	c, run := example(t, s)
	if _, err := NewTable(run, []wire.PeerID{c.Author}).Add(c); err == nil {
		t.Error("of no owner: taken")
	}
	m := NewTable(run, append([]wire.PeerID{c.Author}, owners...))
	for name, change := range map[string]func(c *Certificate){
		"the owner's signature": func(c *Certificate) { c.InviteSig[0]++ },
		"the other signature":   func(c *Certificate) { c.Sig[0]++ },
		"another invite":        func(c *Certificate) { c.Invite.Uses++ },
		"another author":        func(c *Certificate) { c.Author[0]++ },
		"another than the one":  func(c *Certificate) { *c = givenOn(run) },
	} {
		bad := c
		change(&bad)
		if _, err := m.Add(bad); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := m.Add(c); err != nil {
		t.Error(err)
	}
}

// givenOn is a certificate by an invite for one node, for another.
func givenOn(run wire.RunID) Certificate {
	p := Issue(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32)), run, Invite{Key: id(first)}, nil)
	c := Certificate{Invite: p.Invite, InviteSig: p.Sig, Author: id(second)}
	c.Sig = wire.Sign(first, domainCertificate, run, c.stated())
	return c
}

func specLetsIn(t *testing.T, s *spectest.Spec) {
	c, run := example(t, s)
	m := NewTable(run, owners)
	h := wire.Header{Author: c.Author, Round: 1, Steps: 2, Tokens: 2, Certificate: c.ID(run)}
	if m.CheckHeader(h) == nil {
		t.Error("a certificate that is not known lets in")
	}
	if _, err := m.Add(c); err != nil {
		t.Fatal(err)
	}
	if err := m.CheckHeader(h); err != nil {
		t.Error(err)
	}
	for name, change := range map[string]func(h *wire.Header){
		"another author": func(h *wire.Header) { h.Author[0]++ },
		"no certificate": func(h *wire.Header) { h.Certificate = wire.Digest{} },
	} {
		bad := h
		change(&bad)
		if m.CheckHeader(bad) == nil {
			t.Errorf("%s: let in", name)
		}
	}
}

func specSession(t *testing.T, s *spectest.Spec) {
	c, run := example(t, s)
	m := NewTable(run, owners)
	r := hello.Record{Author: c.Author, Certificate: c.Encode()}
	if err := m.Admit(r, 0); err != nil {
		t.Error(err)
	}
	other := r
	other.Author[0]++
	bad := r
	bad.Certificate = bytes.Clone(r.Certificate)
	bad.Certificate[Size-1]++
	for name, r := range map[string]hello.Record{"none": {Author: c.Author}, "another's": other, "not verified": bad} {
		if m.Admit(r, 0) == nil {
			t.Errorf("%s: a session", name)
		}
	}
}

func specExpired(t *testing.T, s *spectest.Spec) {
	c, run := example(t, s)
	m := NewTable(run, owners)
	r := hello.Record{Author: c.Author, Certificate: c.Encode()}
	if m.Admit(r, c.Invite.ExpiresMs) != nil || m.Admit(r, c.Invite.ExpiresMs+1) == nil {
		t.Error("not refused after it has expired, or before")
	}
	if _, err := m.Add(c); err != nil || m.Admit(r, c.Invite.ExpiresMs+1) != nil {
		t.Error("one that is known is refused")
	}
}

func specUsedUp(t *testing.T, _ *spectest.Spec) {
	pass := Issue(owner, run, Invite{Uses: 2}, invite)
	record := func(number byte, p Pass) hello.Record {
		author := wire.PeerIDOf(key(number))
		return hello.Record{Author: author, Certificate: p.AdmitOther(run, author).Encode()}
	}
	m := known(t, pass.AdmitOther(run, id(key(10))), pass.AdmitOther(run, id(key(11))))
	third := record(12, pass)
	refused := func(why string) {
		t.Helper()
		if err := m.Admit(third, 1); err == nil || !strings.Contains(err.Error(), "was for 2 machines, and 2 came") || !strings.Contains(err.Error(), "atoll invite") {
			t.Errorf("%s: %v", why, err)
		}
	}
	refused("one more")
	if err := m.Admit(record(10, pass), 1); err != nil {
		t.Errorf("one that is known: %v", err)
	}
	if err := m.Admit(record(13, Issue(owner, run, Invite{Uses: 2}, second)), 1); err != nil {
		t.Errorf("by another invite: %v", err)
	}
	if _, err := m.AddRevocation(wire.SignHeader(owner, run, wire.NewRevocation(0, 1, wire.Digest(id(key(10))), []byte("gone")))); err != nil {
		t.Fatal(err)
	}
	refused("one of them is revoked")
	if _, err := m.AddHeld(pass.AdmitOther(run, third.Author)); err != nil || m.Admit(third, 1) != nil {
		t.Errorf("one whose delta is held: %v, %v", err, m.Admit(third, 1))
	}
}

func specStrangers(t *testing.T, s *spectest.Spec) {
	c, run := example(t, s)
	for _, name := range []string{"message header", "message heartbeat", "message equivocation proof"} {
		message, err := wire.Open(run, s.Hex(t, name))
		if err != nil {
			t.Fatal(err)
		}
		m := NewTable(run, owners)
		if s, stranger := m.Stranger(message); !stranger || s.Author != c.Author {
			t.Errorf("%s of nobody: author %v, a stranger's is %v", name, s.Author, stranger)
		}
		if _, err := m.Add(c); err != nil {
			t.Fatal(err)
		}
		// The headers of the examples have no certificate.
		if _, stranger := m.Stranger(message); stranger != (message.Heartbeat == nil) {
			t.Errorf("%s of a member: a stranger's is %v", name, stranger)
		}
		switch {
		case message.Header != nil:
			message.Header.Header.Certificate = c.ID(run)
		case message.Equivocation != nil:
			message.Equivocation.A.Header.Certificate, message.Equivocation.B.Header.Certificate = c.ID(run), c.ID(run)
		}
		if _, stranger := m.Stranger(message); stranger {
			t.Errorf("%s with its author's certificate is a stranger's", name)
		}
	}
}

func specPass(t *testing.T, s *spectest.Spec) {
	c, run := example(t, s)
	raw, err := base64.RawURLEncoding.DecodeString(s.Text(t, "member pass"))
	if err != nil {
		t.Fatal(err)
	}
	want := slices.Concat([]byte{32}, bytes.Repeat([]byte{3}, 32))
	for _, n := range []uint64{uint64(c.Invite.Uses), uint64(c.Invite.ExpiresMs / 1000)} {
		want = binary.AppendUvarint(want, n)
	}
	if want = append(want, c.InviteSig[:]...); !bytes.Equal(raw, want) {
		t.Errorf("%x, by the text %x", raw, want)
	}
	p, err := ParsePass(s.Text(t, "member pass"))
	if err != nil || p.Check(run, owners) != nil || p.Invite != c.Invite || p.String() != s.Text(t, "member pass") {
		t.Errorf("%+v, %v", p, err)
	}
	guests := Issue(ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32)), run, Invite{Guests: true}, ed25519.NewKeyFromSeed(append(bytes.Repeat([]byte{3}, 16), make([]byte, 16)...)))
	if read, err := ParsePass(s.Text(t, "member pass for guests")); err != nil || read.Check(run, owners) != nil || read.Invite != guests.Invite || read.String() != guests.String() {
		t.Errorf("%+v, %v: want %v", read, err, guests)
	}
	node := ed25519.NewKeyFromSeed(s.Hex(t, "seed"))
	if again, err := p.Admit(run, node); err != nil || again != c {
		t.Errorf("admits %+v, %v", again, err)
	}
	one, err := ParsePass(s.Text(t, "member pass for one"))
	if err != nil || one.Secret != nil || one.Invite != (Invite{Key: wire.PeerIDOf(node), Alone: true}) || one.Check(run, owners) != nil {
		t.Errorf("%+v, %v", one, err)
	}
}
