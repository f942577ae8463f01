package genesis

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"atoll/gossip/wire/spectest"
	"atoll/optimizer/outer"
)

func specPace(t *testing.T, s *spectest.Spec) {
	doc := s.Text(t, "genesis")
	for more, ok := range map[string]bool{
		``: true, `,"MaxPace":1`: true, `,"MaxPace":1024`: true, `,"MaxPace":0`: false, `,"MaxPace":-1`: false, `,"MaxPace":1025`: false, `,"MaxPace":1.5`: false,
	} {
		g, err := Decode([]byte(strings.Replace(doc, `"Overwrite":false`, `"Overwrite":false`+more, 1)))
		if (err == nil) != ok {
			t.Errorf("%s: error %v", more, err)
		}
		if ok && (g.Outer.MaxPace != 0) != (more != "") {
			t.Errorf("%s is read as %d", more, g.Outer.MaxPace)
		}
	}
}

func specPaceOfFormer(t *testing.T, s *spectest.Spec) {
	doc := s.Text(t, "former document")
	if _, err := Decode([]byte(strings.Replace(doc, `"Overwrite":false`, `"Overwrite":false,"MaxPace":1`, 1))); err == nil {
		t.Error("a document of format 1 has a MaxPace")
	}
	g := formerGenesis()
	g.Outer.MaxPace = 1
	if err := g.Validate(); err == nil || !strings.Contains(err.Error(), "MaxPace") {
		t.Errorf("a genesis of format 1 with a MaxPace: %v", err)
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
	doc := strings.Replace(s.Text(t, "genesis"), `"Overwrite":false`, `"Overwrite":false,"Revocations":true`, 1)
	if _, err := Decode([]byte(doc)); err == nil || !strings.Contains(err.Error(), "nobody can revoke") {
		t.Errorf("in an open run: %v", err)
	}
}

func specNoRevocation(t *testing.T, _ *spectest.Spec) {
	d := outer.Delta{Round: 1, Steps: 1, Size: 1, Revokes: [32]byte{1}}
	p := outer.Defaults(1, 1000, 0)
	if err := p.Check(d); err == nil {
		t.Error("taken")
	}
	p.Revocations = true
	if err := p.Check(d); err != nil {
		t.Error(err)
	}
}

// specUsualTokens: what a usual step has comes last, and is no more than a step may have.
func specUsualTokens(t *testing.T, s *spectest.Spec) {
	g, err := Decode([]byte(s.Text(t, "genesis")))
	if err != nil || bytes.Contains(g.Encode(), []byte("TokensPerStep\":0")) {
		t.Fatal(err, "or 0 is not left out")
	}
	g.Outer.MaxPace, g.Outer.Agreement, g.Outer.TokensPerStep = 2, true, g.Outer.MaxTokensPerStep
	b := g.Encode()
	if !bytes.Contains(b, fmt.Appendf(nil, `"Agreement":true,"TokensPerStep":%d}`, g.Outer.TokensPerStep)) {
		t.Errorf("it stands elsewhere in %s", b)
	}
	if again, err := Decode(b); err != nil || again.Outer.TokensPerStep != g.Outer.TokensPerStep {
		t.Errorf("%+v, %v", again.Outer, err)
	}
	if g.Outer.TokensPerStep++; g.Validate() == nil {
		t.Error("more than a step may have are taken")
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

func specAgreementOfFormer(t *testing.T, s *spectest.Spec) {
	doc := strings.Replace(s.Text(t, "former document"), `"Overwrite":false`, `"Overwrite":false,"Agreement":true`, 1)
	if _, err := Decode([]byte(doc)); err == nil {
		t.Error("a document of format 1 has it")
	}
	g := formerGenesis()
	g.Outer.Agreement = true
	if err := g.Validate(); err == nil || !strings.Contains(err.Error(), "Agreement") {
		t.Errorf("a genesis of format 1 with it: %v", err)
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
	doc := strings.Replace(s.Text(t, "genesis"), `"Overwrite":false`, `"Overwrite":false,"Alike":true`, 1)
	if _, err := Decode([]byte(doc)); err == nil || !strings.Contains(err.Error(), "Agreement") {
		t.Errorf("without agreement: %v", err)
	}
}

func specFinality(t *testing.T, s *spectest.Spec) {
	g, err := Decode([]byte(s.Text(t, "genesis")))
	if err != nil || bytes.Contains(g.Encode(), []byte("Finality")) {
		t.Fatal(err, "or false is not left out")
	}
	g.Admission, g.Owners, g.Finality = Invite, owners{{1}}, true
	b := g.Encode()
	if !bytes.HasSuffix(b, []byte(`,"Finality":true}`)) {
		t.Errorf("it stands elsewhere in %s", b)
	}
	if again, err := Decode(b); err != nil || !again.Finality {
		t.Errorf("%v, %v", again.Finality, err)
	}
}

func specNoOpenFinality(t *testing.T, s *spectest.Spec) {
	doc := strings.TrimSuffix(strings.TrimSpace(s.Text(t, "genesis")), "}") + `,"Finality":true}`
	if _, err := Decode([]byte(doc)); err == nil || !strings.Contains(err.Error(), "Finality") {
		t.Errorf("in an open run: %v", err)
	}
}

func specGuests(t *testing.T, s *spectest.Spec) {
	g, err := Decode([]byte(s.Text(t, "genesis")))
	if err != nil || bytes.Contains(g.Encode(), []byte("Guests")) {
		t.Fatal(err, "or false is not left out")
	}
	g.Admission, g.Owners, g.Finality, g.Guests = Invite, owners{{1}}, true, true
	b := g.Encode()
	if !bytes.HasSuffix(b, []byte(`,"Finality":true,"Guests":true}`)) {
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
