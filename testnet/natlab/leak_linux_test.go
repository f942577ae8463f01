package natlab

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
)

// A link of friends gets into wrong hands: a thief joins by it and trains. One command ends the link. The friends, one of whom is
// away meanwhile, and the first node stay, and the thief is out.
func TestLeakedLink(t *testing.T) {
	l := world(t, Net{Machines: []string{"a", "d", "t", "x"}, Nets: []Net{
		{Router: "rb", Machines: []string{"b"}},
		{Router: "rc", NAT: ScramblePorts, Machines: []string{"c"}},
	}})
	e := &friends{T: t, lab: l, ids: map[string]string{}}
	e.atoll("new", l.path("a"), "--tokens", "12e4")
	a := e.start("a", "join", l.path("a"))
	link := linkOf(t, a)
	b, c, d := e.start("b", "join", link, l.path("b")), e.start("c", "join", link, l.path("c")), e.start("d", "join", link, l.path("d"))
	thief := e.start("t", "join", link, l.path("t"))
	for _, n := range []*Node{b, c, d, thief} {
		id := idOf(t, n)
		e.ids[n.Name] = id
		await(t, a, "a folded delta of "+n.Name, func(s status.Snapshot) bool { return peerOf(s, id).Trained })
	}
	e.refused("a fifth", "was for 4 machines, and 4 came", link)
	kill(t, d)

	if _, err := command(l.binary, "revoke", link, l.path("a")); err == nil || !strings.Contains(err.Error(), " without those that are to go") {
		t.Errorf("revoked without a word who stays: %v", err)
	}
	began := time.Now()
	var out struct {
		Members, Kept []string
		From          []uint32
	}
	if err := json.Unmarshal([]byte(e.atoll("revoke", link, l.path("a"), "--spare", "b,c,d", "--reason", "the link leaked", "--json")), &out); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(out.Members, []string{e.ids["t"]}) || len(out.Kept) != 3 {
		t.Errorf("revoked %v, and %v stay", out.Members, out.Kept)
	}
	<-thief.Ended()
	took(t, "the thief is out", time.Since(began), 10*time.Second)
	if thief.Err() == nil || !strings.Contains(thief.Log(), "an owner of the run has revoked") {
		t.Errorf("the thief ended with %v:\n%s", thief.Err(), tail(thief.Log()))
	}
	e.refused("the thief with another key", "an owner of the run has revoked it", link)
	d = e.start("d", "join", l.path("d"))
	for _, n := range []*Node{a, b, c, d} {
		await(t, n, "friends alone", func(s status.Snapshot) bool {
			return peerOf(s, e.ids["t"]).State == status.Revoked && e.here(s) == 4
		})
		s, err := n.Status(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		folded := peerOf(s, e.ids["d"]).TokensFolded
		await(t, n, "more of d, which was away", func(s status.Snapshot) bool { return peerOf(s, e.ids["d"]).TokensFolded > folded })
	}
	took(t, "all friends train on", time.Since(began), time.Minute)
	endsAsOne(t, a, b, c, d)
	if out := e.atoll("verify", l.path("b")); !strings.Contains(out, "ok") {
		t.Errorf("verify: %s", out)
	}
}

// here counts the machines that are here.
func (e *friends) here(s status.Snapshot) (n int) {
	for _, p := range s.Peers {
		if p.Here() {
			n++
		}
	}
	return n
}

// refused joins from a machine that nobody knows, and wants to read why within 5 seconds.
func (e *friends) refused(who, why string, words ...string) {
	e.Helper()
	n := e.start("x", append(append([]string{"join"}, words...), e.lab.path("x"))...)
	took(e.T, who+" is told", says(e.T, n, why), 5*time.Second)
	select {
	case <-n.Ended():
	case <-time.After(stepTimeout):
		e.Fatalf("%s does not end:\n%s", who, tail(n.Log()))
	}
	if !strings.Contains(n.Err().Error(), "exit status 3") {
		e.Errorf("%s ended with %v:\n%s", who, n.Err(), tail(n.Log()))
	}
}
