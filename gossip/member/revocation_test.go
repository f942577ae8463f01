package member

import (
	"bytes"
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/gossip/wire/spectest"

	"pgregory.net/rapid"
)

// statementOf is the revocation of the text, and its reason.
func statementOf(t *testing.T, s *spectest.Spec) (wire.SignedHeader, []byte) {
	t.Helper()
	m, err := wire.Open(wire.RunID(s.Hex(t, "run")), s.Hex(t, "message revocation"))
	if err != nil {
		t.Fatal(err)
	}
	return *m.Header, m.Inline
}

// revoke has the owner of the text's example revoke a name.
func revoke(t *testing.T, m *Table, run wire.RunID, name wire.PeerID) {
	t.Helper()
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32))
	fresh, err := m.AddRevocation(wire.SignHeader(key, run, wire.NewRevocation(0, 1, wire.Digest(name), []byte("gone"))))
	if err != nil || fresh && !m.Knows(name) {
		t.Fatal(fresh, err)
	}
}

func specRevocation(t *testing.T, s *spectest.Spec) {
	statement, reason := statementOf(t, s)
	h := wire.NewRevocation(3, 17, wire.Digest(s.Hex(t, "author")), []byte("left the lab"))
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32))
	if signed := wire.SignHeader(key, wire.RunID(s.Hex(t, "run")), h); signed != statement || string(reason) != "left the lab" {
		t.Errorf("the text has %+v %q, we sign %+v", statement, reason, signed)
	}
	if !h.Revocation() || h.Codec != 255 || h.Certificate != wire.Digest(s.Hex(t, "author")) {
		t.Errorf("%+v", h)
	}
}

func specOwnersRevoke(t *testing.T, s *spectest.Spec) {
	statement, _ := statementOf(t, s)
	run := wire.RunID(s.Hex(t, "run"))
	if err := NewTable(run, []wire.PeerID{statement.Header.Author}).CheckHeader(statement.Header); err != nil {
		t.Error(err)
	}
	other := NewTable(run, []wire.PeerID{{7}})
	if err := other.CheckHeader(statement.Header); !errors.Is(err, wire.ErrInvalid) {
		t.Errorf("of no owner: %v", err)
	}
	if _, stranger := other.Stranger(wire.Message{Header: &statement}); !stranger {
		t.Error("the message of no owner is passed on")
	}
	if _, err := other.AddRevocation(statement); err == nil {
		t.Error("the statement of no owner counts")
	}
	var open *Table
	if open.CheckHeader(statement.Header) == nil {
		t.Error("in an open run: taken")
	}
}

func specRevokedGossip(t *testing.T, s *spectest.Spec) {
	c, run := example(t, s)
	for _, name := range []wire.PeerID{c.Author, c.Invite.Key} {
		m := NewTable(run, owners)
		if _, err := m.Add(c); err != nil {
			t.Fatal(err)
		}
		heartbeat := wire.Message{Heartbeat: &wire.Heartbeat{Author: c.Author}}
		header := wire.Message{Header: &wire.SignedHeader{Header: wire.Header{Author: c.Author, Certificate: c.ID(run)}}}
		for _, revoked := range []bool{false, true} {
			for _, message := range []wire.Message{heartbeat, header} {
				if _, stranger := m.Stranger(message); stranger != revoked {
					t.Errorf("revoked %v: a stranger's is %v", revoked, stranger)
				}
			}
			revoke(t, m, run, name)
		}
		if err := m.CheckHeader(header.Header.Header); err != nil {
			t.Errorf("what it made before: %v", err)
		}
	}
}

func specRevokedSession(t *testing.T, s *spectest.Spec) {
	c, run := example(t, s)
	for _, name := range []wire.PeerID{c.Author, c.Invite.Key} {
		m := NewTable(run, owners)
		r := hello.Record{Author: c.Author, Certificate: c.Encode()}
		if err := m.Admit(r, 0); err != nil {
			t.Error(err)
		}
		revoke(t, m, run, name)
		if err := m.Admit(r, 0); !errors.As(err, new(*RevokedError)) {
			t.Errorf("a session: %v", err)
		}
	}
}

// Whom the owner keeps stays by the invite that is revoked, at whatever moment a node looks, and others are out.
func specKeeps(t *testing.T, s *spectest.Spec) {
	c, run := example(t, s)
	thief := c
	thief.Author[0]++
	owner := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{2}, 32))
	end := wire.NewEnd(0, 5, c.Invite.Key, []wire.PeerID{c.Author}, []byte("it leaked"))
	name := wire.Sum(slices.Concat([]byte("atoll kept 1"), c.Invite.Key[:], c.Author[:]))
	if len(end) != 2 || end[0].Certificate != name || end[0].Steps != 2 || end[0].Tokens != binary.BigEndian.Uint64(c.Invite.Key[:8]) || end[1].Tokens != 1 || end[1].Certificate != wire.Digest(c.Invite.Key) {
		t.Fatalf("%+v", end)
	}
	for _, order := range [][]int{{0, 1}, {1, 0}} {
		m := NewTable(run, owners)
		for _, i := range order {
			statement := wire.SignHeader(owner, run, end[i])
			if fresh, err := m.AddRevocation(statement); !fresh || err != nil || m.Revoked(c) != nil {
				t.Errorf("order %v, statement %d: %v, kept: %v", order, i, err, m.Revoked(c))
			}
		}
		if m.Revoked(thief) == nil {
			t.Error("one that is not kept is not revoked")
		}
		if _, ok := m.Proof(c, m.Revoked(thief).Error()); ok {
			t.Error("who is kept takes the invite's end for its own")
		}
	}
}

// Of two invites that end, in whatever order the words come, whom each keeps is never out, and all others of an invite are once the
// invite's end and all its keeps are known, whatever is known of the other.
func TestKeepsOfTwoInvites(t *testing.T) {
	type came struct {
		Certificate
		kept bool
	}
	var invites [2]struct {
		all []came
		end []wire.SignedHeader
	}
	for i := range invites {
		v := &invites[i]
		var kept []wire.PeerID
		for n := range byte(3) {
			c, err := Issue(owner, run, Invite{}, key(byte(60+i))).Admit(run, key(byte(70+10*i)+n))
			if err != nil {
				t.Fatal(err)
			}
			v.all = append(v.all, came{c, int(n) <= i})
			if int(n) <= i {
				kept = append(kept, c.Author)
			}
		}
		for _, h := range wire.NewEnd(0, 1, v.all[0].Invite.Key, kept, []byte("it leaked")) {
			v.end = append(v.end, wire.SignHeader(owner, run, h))
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		m := table()
		left := [2]int{len(invites[0].end), len(invites[1].end)}
		words := [2][]wire.SignedHeader{rapid.Permutation(invites[0].end).Draw(t, "first"), rapid.Permutation(invites[1].end).Draw(t, "second")}
		for _, i := range rapid.Permutation([]int{0, 0, 1, 1, 1}).Draw(t, "order") {
			if _, err := m.AddRevocation(words[i][left[i]-1]); err != nil {
				t.Fatal(err)
			}
			left[i]--
			for i, v := range invites {
				for _, c := range v.all {
					if out := m.Revoked(c.Certificate) != nil; out != (!c.kept && left[i] == 0) {
						t.Fatalf("invite %d lacks %d words; one that is kept: %v; out: %v", i, left[i], c.kept, out)
					}
				}
			}
		}
	})
}

func specProof(t *testing.T, s *spectest.Spec) {
	statement, _ := statementOf(t, s)
	c, run := example(t, s)
	m := NewTable(run, owners)
	if fresh, err := m.AddRevocation(statement); err != nil || !fresh {
		t.Fatal(fresh, err)
	}
	err := m.Admit(hello.Record{Author: c.Author, Certificate: c.Encode()}, 0)
	if err == nil || !strings.Contains(err.Error(), "proof "+base64.RawURLEncoding.EncodeToString(statement.Append(nil))) {
		t.Fatalf("the reason is %v", err)
	}
	away := NewTable(run, owners)
	if got, ok := away.Proof(c, "peer refuses us: "+err.Error()); !ok || got.Statement != statement {
		t.Error("who was away does not see it")
	}
}

// A reason proves nothing to others than whom an owner revoked.
func TestNoProof(t *testing.T) {
	c, other := admitted(t, Invite{}, first), admitted(t, Invite{}, second)
	h := wire.NewRevocation(0, 3, wire.Digest(c.Author), []byte("gone"))
	good := (&RevokedError{Word{Statement: wire.SignHeader(owner, run, h)}}).Error()
	forged := (&RevokedError{Word{Statement: wire.SignHeader(second, run, h)}}).Error()
	delta := wire.SignHeader(owner, run, header(first, wire.Digest(c.Author), 3))
	for name, test := range map[string]struct {
		c    Certificate
		text string
		want bool
	}{
		"good":               {c, good, true},
		"about another":      {other, good, false},
		"by no owner":        {c, forged, false},
		"a delta":            {c, (&RevokedError{Word{Statement: delta}}).Error(), false},
		"an empty statement": {c, (&RevokedError{}).Error(), false},
		"cut off":            {c, good[:len(good)-1], false},
		"nothing":            {c, "", false},
		"nothing like it":    {c, "proof that", false},
	} {
		if _, ok := table().Proof(test.c, test.text); ok != test.want {
			t.Errorf("%s: proves it: %v", name, ok)
		}
	}
	var open *Table
	if _, ok := open.Proof(c, good); ok {
		t.Error("in an open run")
	}
}

func FuzzProof(f *testing.F) {
	c := admitted(f, Invite{}, first)
	h := wire.NewRevocation(0, 3, wire.Digest(c.Author), []byte("gone"))
	f.Add((&RevokedError{Word{Statement: wire.SignHeader(owner, run, h)}}).Error())
	f.Add("proof ")
	f.Fuzz(func(t *testing.T, text string) {
		if w, ok := table().Proof(c, text); ok && w.Statement.Header.Author != id(owner) {
			t.Errorf("%q proves that %v revoked it", text, w.Statement.Header.Author)
		}
	})
}

// Who asks by an author's name knows nothing of it, and asks once: the answer makes as much of the author as is true.
func TestAnswerForAnAuthor(t *testing.T) {
	issue := func(v Invite, secret ed25519.PrivateKey) Certificate {
		c, err := Issue(owner, run, v, secret).Admit(run, first)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	guest, member, again := issue(Invite{Guests: true}, key(5)), issue(Invite{}, key(6)), issue(Invite{Key: id(first)}, nil)
	m := table()
	answers := func(want Certificate) {
		t.Helper()
		list, err := wire.DecodeCertificates(m.Answer(wire.Request{Kind: wire.GetCertificates, Authors: []wire.PeerID{id(first), id(second)}}))
		if err != nil || len(list) != 1 || !bytes.Equal(list[0], want.Encode()) {
			t.Errorf("%x, %v; want the one of %v", list, err, want.Invite)
		}
	}
	for _, c := range []Certificate{guest, member} {
		if _, err := m.Add(c); err != nil {
			t.Fatal(err)
		}
		answers(c)
	}
	if _, err := m.AddRevocation(wire.SignHeader(owner, run, wire.NewRevocation(0, 1, wire.Digest(member.Invite.Key), []byte("gone")))); err != nil {
		t.Fatal(err)
	}
	answers(guest)
	if _, err := m.Add(again); err != nil {
		t.Fatal(err)
	}
	answers(again)
}

// People read of a refusal that a peer may have made up neither its proof nor what that says; who revoked it, from when on and why they
// read of a word that Proof took, and nothing in it moves a cursor.
func TestShownIsWithoutProof(t *testing.T) {
	c, reason := admitted(t, Invite{}, first), "left\x1b the lab"
	statement := wire.SignHeader(owner, run, wire.NewRevocation(0, 17, wire.Digest(c.Author), []byte(reason)))
	forged := statement
	forged.Sig[0]++
	for _, s := range []wire.SignedHeader{statement, forged} {
		refusal := "not admitted: " + (&RevokedError{Word{s, reason}}).Error() + "; ask the owner"
		if got, want := Shown(refusal), "not admitted: an owner of the run has revoked it; ask the owner"; got != want {
			t.Errorf("%q, want %q", got, want)
		}
		w, ok := table().Proof(c, refusal)
		if want := fmt.Sprintf("by owner %v, from round 17 on: left\uFFFD the lab", id(owner)); ok != (s == statement) || ok && w.Text() != want {
			t.Errorf("%v: %q, want %q", ok, w.Text(), want)
		}
	}
	if got := Shown("its invite has expired"); got != "its invite has expired" {
		t.Errorf("%q", got)
	}
}

// The reason comes with the owner's word alone, to the disk and back.
func TestWordKeepsItsReason(t *testing.T) {
	c := admitted(t, Invite{}, first)
	statement := wire.SignHeader(owner, run, wire.NewRevocation(0, 17, wire.Digest(c.Author), []byte("left the lab")))
	m := table()
	if _, err := m.AddHeld(c); err != nil {
		t.Fatal(err)
	}
	m.explain(Word{statement, "left the lab"})
	if _, known := m.WordAgainst(c.Author); known {
		t.Error("a reason revokes nobody")
	}
	want := Word{statement, "left the lab"}
	for _, come := range []struct{ word, known Word }{{Word{statement, "of another"}, Word{statement, ""}}, {want, want}, {Word{statement, ""}, want}} {
		if _, err := m.AddWords(come.word); err != nil {
			t.Fatal(err)
		}
		if w, known := m.WordAgainst(c.Author); !known || w != come.known {
			t.Errorf("%+v, %v", w, known)
		}
	}
	if w, ok := table().Proof(c, m.Revoked(c).Error()+"; ask"); !ok || w != want {
		t.Errorf("whom it is about hears %+v, %v", w, ok)
	}
	for _, w := range []Word{want, {statement, ""}} {
		b := w.Kept()
		if got, err := ParseKept(b); err != nil || got != w || len(b) == Size {
			t.Errorf("%+v, %v", got, err)
		}
	}
	if got, err := ParseKept(Word{statement, strings.Repeat("long", 65)}.Kept()); err != nil || got != (Word{statement, ""}) {
		t.Errorf("a reason that is too long: %+v, %v", got, err)
	}
	if _, err := ParseKept(Word{statement, "of another"}.Kept()); err == nil {
		t.Error("a reason that was not signed is kept")
	}
}

func specWord(t *testing.T, s *spectest.Spec) {
	statement, reason := statementOf(t, s)
	raw := s.Hex(t, "message revocation")[2:]
	for w, b := range map[Word][]byte{{statement, string(reason)}: raw, {statement, ""}: raw[:wire.SignedHeaderSize]} {
		if got, err := ParseWord(b); err != nil || got != w || !bytes.Equal(w.Encode(), b) {
			t.Errorf("%x: %+v, %v, encoded %x", b, got, err, w.Encode())
		}
	}
	for name, b := range map[string][]byte{"nothing": nil, "a byte less": raw[:wire.SignedHeaderSize-1], "another reason": append(bytes.Clone(raw), '!')} {
		if _, err := ParseWord(b); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}

func FuzzWord(f *testing.F) {
	h := wire.NewRevocation(0, 3, wire.Digest{1}, []byte("gone"))
	f.Add(Word{wire.SignHeader(owner, run, h), "gone"}.Encode())
	f.Fuzz(func(t *testing.T, b []byte) {
		if w, err := ParseWord(b); err == nil && !bytes.Equal(w.Encode(), b) {
			t.Errorf("%x came back as %x", b, w.Encode())
		}
	})
}

// Words count in whatever order they come, and all that count are passed on. Of two ends of an invite the one counts that keeps fewer:
// whom the other keeps may never come.
func TestAddWords(t *testing.T) {
	signed := func(h wire.Header, reason string) Word { return Word{wire.SignHeader(owner, run, h), reason} }
	c, kept := admitted(t, Invite{}, first), admitted(t, Invite{}, second)
	var ends [2][]Word
	for i, keeps := range [][]wire.PeerID{{kept.Author, {9}}, {kept.Author}} {
		for _, h := range wire.NewEnd(0, uint32(5-i), c.Invite.Key, keeps, []byte("it leaked")) {
			ends[i] = append(ends[i], signed(h, "it leaked"))
		}
	}
	m := known(t, c, kept)
	news := func(want int, words ...Word) {
		t.Helper()
		if fresh, err := m.AddWords(words...); err != nil || len(fresh) != want {
			t.Errorf("%d are new, want %d; %v", len(fresh), want, err)
		}
	}
	if news(1, ends[0][2]); m.Knows(c.Invite.Key) || m.Out(c.Author) {
		t.Error("an invite ends before anybody is known whom it keeps")
	}
	fresh, err := m.AddWords(ends[1][1], ends[1][0])
	if err != nil || len(fresh) != 2 || !fresh[0].Statement.Header.Keeps() {
		t.Errorf("%+v, %v", fresh, err)
	}
	if !m.Knows(c.Invite.Key) || !m.Out(c.Author) || m.Out(kept.Author) {
		t.Error("who is out")
	}
	news(0, ends[0][2], ends[1][0], ends[1][1])
	if words := m.Words(); len(words) != 2 || words[0].Statement.Header.Round != 4 || words[1].Reason != "it leaked" {
		t.Errorf("tells %+v", words)
	}
	other := Word{Statement: wire.SignHeader(second, run, wire.NewRevocation(0, 1, wire.Digest{7}, []byte("x")))}
	for _, m := range []*Table{m, nil} {
		if fresh, err := m.AddWords(other); err == nil || len(fresh) != 0 || len(m.Words()) > 2 {
			t.Errorf("the word of no owner: %+v, %v", fresh, err)
		}
	}
	for i := range wire.MaxWords {
		m.revoked[wire.PeerID{1, byte(i), byte(i >> 8)}] = ends[0][2].Statement
	}
	if words := m.Words(); len(words) != wire.MaxWords || words[1].Statement.Header.Round != 4 || words[2].Statement.Header.Round != 5 {
		t.Errorf("%d words, of rounds %d and %d", len(words), words[1].Statement.Header.Round, words[2].Statement.Header.Round)
	}
}
