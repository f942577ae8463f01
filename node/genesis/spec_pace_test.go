package genesis

import (
	"bytes"
	"strings"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
	"atoll/optimizer/outer/outertest"
)

func specPace(t *testing.T, s *spectest.Spec) {
	doc := s.Text(t, "genesis")
	for more, ok := range map[string]bool{
		``: true, `,"MaxPace":1`: true, `,"MaxPace":1024`: true, `,"MaxPace":0`: false, `,"MaxPace":-1`: false, `,"MaxPace":1025`: false, `,"MaxPace":1.5`: false,
	} {
		g, err := Decode([]byte(strings.Replace(doc, `"GraceMaxMs":30000`, `"GraceMaxMs":30000`+more, 1)))
		if (err == nil) != ok {
			t.Errorf("%s: error %v", more, err)
		}
		if ok && (g.Outer.MaxPace != 0) != (more != "") {
			t.Errorf("%s is read as %d", more, g.Outer.MaxPace)
		}
	}
}

func specRevocations(t *testing.T, s *spectest.Spec) {
	g, err := Decode([]byte(s.Text(t, "genesis")))
	if err != nil {
		t.Fatal(err)
	}
	g.Admission, g.Owners = Invite, owners{{1}}
	if bytes.Contains(g.Encode(), []byte("Revocations")) {
		t.Error("false is not left out")
	}
	g.Outer.MaxPace, g.Outer.Revocations = 2, true
	b := g.Encode()
	if !bytes.Contains(b, []byte(`"MaxPace":2,"Revocations":true}`)) {
		t.Errorf("it stands elsewhere in %s", b)
	}
	if again, err := Decode(b); err != nil || !again.Outer.Revocations {
		t.Errorf("%+v, %v", again.Outer, err)
	}
}

func specNobodyRevokes(t *testing.T, s *spectest.Spec) {
	doc := strings.Replace(s.Text(t, "genesis"), `"GraceMaxMs":30000`, `"GraceMaxMs":30000,"Revocations":true`, 1)
	if _, err := Decode([]byte(doc)); err == nil || !strings.Contains(err.Error(), "nobody can revoke") {
		t.Errorf("in an open run: %v", err)
	}
}

func specNoRevocation(t *testing.T, _ *spectest.Spec) {
	d := outer.Delta{Round: 1, Steps: 1, Size: 1, Revokes: [32]byte{1}}
	p := outertest.Plain(1, 1000, 0)
	p.Revocations = false
	if err := p.Check(d); err == nil {
		t.Error("taken")
	}
	p.Revocations = true
	if err := p.Check(d); err != nil {
		t.Error(err)
	}
}

func specAgreement(t *testing.T, s *spectest.Spec) {
	g, err := Decode([]byte(s.Text(t, "genesis")))
	if err != nil || bytes.Contains(g.Encode(), []byte("Agreement")) {
		t.Fatal(err, "or false is not left out")
	}
	g.Outer.MaxPace, g.Outer.Agreement = 2, true
	b := g.Encode()
	if !bytes.Contains(b, []byte(`"MaxPace":2,"Agreement":true}`)) {
		t.Errorf("it stands elsewhere in %s", b)
	}
	g.Admission, g.Owners, g.Outer.Revocations = Invite, owners{{1}}, true
	if b := g.Encode(); !bytes.Contains(b, []byte(`"Revocations":true,"Agreement":true}`)) {
		t.Errorf("it stands elsewhere in %s", b)
	}
	if again, err := Decode(b); err != nil || !again.Outer.Agreement {
		t.Errorf("%+v, %v", again.Outer, err)
	}
}

func specAlike(t *testing.T, s *spectest.Spec) {
	g, err := Decode([]byte(s.Text(t, "genesis")))
	if err != nil || bytes.Contains(g.Encode(), []byte("Alike")) {
		t.Fatal(err, "or false is not left out")
	}
	g.Outer.Agreement, g.Outer.Alike = true, true
	b := g.Encode()
	if !bytes.Contains(b, []byte(`"Agreement":true,"Alike":true}`)) {
		t.Errorf("it stands elsewhere in %s", b)
	}
	if again, err := Decode(b); err != nil || !again.Outer.Alike {
		t.Errorf("%+v, %v", again.Outer, err)
	}
}

func specAlikeAlone(t *testing.T, s *spectest.Spec) {
	doc := strings.Replace(s.Text(t, "genesis"), `"GraceMaxMs":30000`, `"GraceMaxMs":30000,"Alike":true`, 1)
	if _, err := Decode([]byte(doc)); err == nil || !strings.Contains(err.Error(), "Agreement") {
		t.Errorf("without agreement: %v", err)
	}
}

func specGuests(t *testing.T, s *spectest.Spec) {
	g, err := Decode([]byte(s.Text(t, "genesis")))
	if err != nil || bytes.Contains(g.Encode(), []byte("Guests")) {
		t.Fatal(err, "or false is not left out")
	}
	g.Admission, g.Owners, g.Guests = Invite, owners{{1}}, true
	b := g.Encode()
	if !bytes.HasSuffix(b, []byte(`,"Guests":true}`)) {
		t.Errorf("it stands elsewhere in %s", b)
	}
	if again, err := Decode(b); err != nil || !again.Guests {
		t.Errorf("%v, %v", again.Guests, err)
	}
}

func specNoOpenGuests(t *testing.T, s *spectest.Spec) {
	doc := strings.TrimSuffix(strings.TrimSpace(s.Text(t, "genesis")), "}") + `,"Guests":true}`
	if _, err := Decode([]byte(doc)); err == nil || !strings.Contains(err.Error(), "Guests") {
		t.Errorf("in an open run: %v", err)
	}
}
