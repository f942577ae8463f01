package genesis

import (
	"strings"
	"testing"

	"atoll/gossip/wire/spectest"
)

// specPace reads the last keys of Outer, which have no other form.
func specPace(t *testing.T, s *spectest.Spec) {
	doc := s.Text(t, "genesis")
	if !strings.Contains(doc, last) {
		t.Fatalf("no %s in %s", last, doc)
	}
	for text, ok := range map[string]bool{
		last: true, `"MaxPace":1,"TokensPerStep":1,"OwnText":false}`: true, `"MaxPace":1024,"TokensPerStep":65536,"OwnText":false}`: true,
		`"MaxPace":0,"TokensPerStep":512,"OwnText":false}`: false, `"MaxPace":1025,"TokensPerStep":512,"OwnText":false}`: false,
		`"MaxPace":6,"TokensPerStep":0,"OwnText":false}`: false, `"MaxPace":6,"TokensPerStep":65537,"OwnText":false}`: false,
		`"MaxPace":6,"OwnText":false}`: false, `"TokensPerStep":512,"OwnText":false}`: false, `"MaxPace":6,"TokensPerStep":512}`: false,
		`"TokensPerStep":512,"MaxPace":6,"OwnText":false}`: false,
	} {
		if _, err := Decode([]byte(strings.Replace(doc, last, text, 1))); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// last are the last keys of Outer of the golden document.
const last = `"MaxPace":6,"TokensPerStep":512,"OwnText":false}`

func specOwnText(t *testing.T, s *spectest.Spec) {
	g, err := Decode([]byte(strings.Replace(s.Text(t, "genesis"), last, `"MaxPace":6,"TokensPerStep":512,"OwnText":true}`, 1)))
	if err != nil || !g.Outer.OwnText {
		t.Errorf("%+v, %v", g.Outer, err)
	}
	for _, tip := range g.Tips() {
		if tip.Records != nil {
			t.Error("a run that judges nobody has records")
		}
	}
}
