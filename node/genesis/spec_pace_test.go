package genesis

import (
	"strings"
	"testing"

	"atoll/gossip/wire/spectest"
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
