package natlab

import (
	"strings"
	"testing"
	"time"

	"atoll/node/joinlink"
	"atoll/node/status"
)

// oneNetwork is a home with several machines, whose way out leads nowhere.
func oneNetwork(machines ...string) Net {
	return Net{Nets: []Net{{Router: "r", Machines: machines}}}
}

// says waits until a node has logged a text, and returns how long that took.
func says(t *testing.T, n *Node, text string) time.Duration {
	t.Helper()
	began := time.Now()
	for ctx := within(t, stepTimeout); !strings.Contains(n.Log(), text); time.Sleep(lookEvery) {
		if ctx.Err() != nil {
			t.Fatalf("%s does not say %q:\n%s", n.Name, text, tail(n.Log()))
		}
	}
	return time.Since(began)
}

// gotIn is what a newcomer logs that somebody of the run has let in.
const gotIn = "has the genesis"

// On one network a run's digits are enough, and a link whose addresses are dead.
func TestOneNetworkWithoutAddresses(t *testing.T) {
	l := world(t, oneNetwork("a", "b", "c", "d"))
	a := runOf(t, l, "3e4", "a")[0]
	b := join(t, l, "b", "atoll:"+l.run)
	took(t, "found by the run's digits", says(t, b, gotIn), 5*time.Second)
	dead, err := joinlink.Parse(l.run)
	if err != nil {
		t.Fatal(err)
	}
	dead.Peers = []string{"/ip4/192.168.1.99/tcp/27182/p2p/12D3KooWK99VoVxNE7XzyBwXEzW7xhK7Gpv85r9F3V3fyKSUKPH5"}
	c := join(t, l, "c", dead.String())
	took(t, "found beside a link whose address is dead", says(t, c, gotIn), 5*time.Second)
	d, err := l.Join("d", "atoll:"+l.run, append(quick, "--no-mdns")...)
	if err != nil {
		t.Fatal(err)
	}
	meets(t, b, c, status.LinkDirect) // neither was told of the other
	endsAsOne(t, a, b, c)
	if strings.Contains(d.Log(), gotIn) {
		t.Errorf("one that may not look found somebody:\n%s", tail(d.Log()))
	}
	kill(t, d)
}

// A node whose network lets only the web out takes part through a relay there.
func TestOnlyTheWeb(t *testing.T) {
	l := world(t, Net{Machines: []string{"vps"}, Nets: []Net{
		{Router: "office", Only443: true, Machines: []string{"e"}},
		{Router: "rb", Machines: []string{"b"}},
	}})
	if err := l.Run("--tokens", "3e4"); err != nil {
		t.Fatal(err)
	}
	_, link, err := l.Relay(within(t, stepTimeout), "vps", "--port-443")
	if err != nil {
		t.Fatal(err)
	}
	if !leadsTo(link, "/tcp/443/ws/") || len(addressesIn(t, link)) != 2 {
		t.Errorf("the relay's link is %s", link)
	}
	b, err := l.First("b", append(quick, "--peer", addressesIn(t, link)[0])...)
	if err != nil {
		t.Fatal(err)
	}
	await(t, b, "a place at the relay", func(s status.Snapshot) bool { return leadsTo(s.Link, "/p2p-circuit/") })
	own := linkOf(t, b)
	if !leadsTo(own, "/tcp/443/ws/") || len(addressesIn(t, own)) != 2 {
		t.Errorf("the link of a node behind the relay is %s", own)
	}
	e := join(t, l, "e", own)
	took(t, "let in", says(t, e, gotIn), 15*time.Second)
	took(t, "relayed after the join", max(meets(t, e, b, status.LinkRelayed, status.LinkPunching), meets(t, b, e, status.LinkRelayed, status.LinkPunching)), 30*time.Second)
	endsAsOne(t, b, e)
}

// A link whose member is gone leads in by the relay that it names, though that one serves another
// run alone: it is where members of all runs meet.
func TestDeadLinkBesideARelayOfAnotherRun(t *testing.T) {
	l := world(t, Net{Machines: []string{"r", "a", "b", "c"}})
	if err := l.Run("--tokens", "3e4"); err != nil {
		t.Fatal(err)
	}
	run := l.run
	l.run = strings.Repeat("ab", 32)
	_, other, err := l.Relay(within(t, stepTimeout), "r")
	if err != nil {
		t.Fatal(err)
	}
	l.run = run
	at := addressesIn(t, other)[0]
	a, err := l.First("a", append(quick, "--peer", at)...)
	if err != nil {
		t.Fatal(err)
	}
	link := both(t, linkOf(t, a), other)
	b := join(t, l, "b", link)
	meets(t, a, b, status.LinkDirect)
	says(t, b, "announced in the DHT")
	kill(t, a)
	c := join(t, l, "c", link)
	took(t, "let in", says(t, c, gotIn), 30*time.Second)
	meets(t, c, b, status.LinkDirect)
	endsAsOne(t, b, c)
}
