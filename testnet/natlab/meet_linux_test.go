package natlab

import (
	"strings"
	"testing"
	"time"

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
	for ctx := within(t, patience); !strings.Contains(n.Log(), text); time.Sleep(lookEvery) {
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
	a := runOf(t, l, "6e4", "a")[0]
	b := join(t, l, "b", l.run)
	took(t, "found by the run's digits", says(t, b, gotIn), 5*time.Second)
	c := join(t, l, "c", "atoll:"+l.run+",/ip4/192.168.1.99/tcp/27182/p2p/12D3KooWK99VoVxNE7XzyBwXEzW7xhK7Gpv85r9F3V3fyKSUKPH5")
	took(t, "found beside a link whose address is dead", says(t, c, gotIn), 5*time.Second)
	d, err := l.Join("d", l.run, append(quick, "--no-mdns")...)
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
