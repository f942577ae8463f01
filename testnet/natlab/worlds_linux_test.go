package natlab

import (
	"cmp"
	"context"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"atoll/gossip/p2p/address"
	"atoll/node/joinlink"
	"atoll/node/status"
)

// resultsVariable names a file to which the times that worlds took are added.
const resultsVariable = "ATOLL_HOME_RESULTS"

// took notes how long something took in a world, and fails the test if that was too long.
func took(t *testing.T, what string, d, most time.Duration) {
	t.Helper()
	t.Logf("%s: %.1f s", what, d.Seconds())
	if d > most {
		t.Errorf("%s took %.1f s, at most %v", what, d.Seconds(), most)
	}
	if path := os.Getenv(resultsVariable); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if _, err := f.WriteString(t.Name() + "\t" + what + "\t" + d.Round(100*time.Millisecond).String() + "\n"); err != nil {
			t.Fatal(err)
		}
	}
}

// within is a context for one step of a test.
func within(t *testing.T, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), d)
	t.Cleanup(cancel)
	return ctx
}

// stepTimeout is how long a step may take before a test gives up: far more than any bound, so
// that what is too slow is told with its time.
const stepTimeout = 2 * time.Minute

// quick are the flags of nodes that share a machine: it has to have time to spare, or what is
// measured is the machine.
var quick = []string{"--threads", "1", "--batch", "1", "--pace", "500ms", "--log-level", logLevel()}

// logLevel is what nodes log. ATOLL_HOME_LOG=debug says more where a test fails.
func logLevel() string { return cmp.Or(os.Getenv("ATOLL_HOME_LOG"), "info") }

// runOf starts a run of so many tokens on machines: the first one begins it, the others
// join it by its link.
func runOf(t *testing.T, l *Lab, tokens string, machines ...string) (nodes []*Node) {
	t.Helper()
	if err := l.Run("--tokens", tokens); err != nil {
		t.Fatal(err)
	}
	first, err := l.First(machines[0], quick...)
	if err != nil {
		t.Fatal(err)
	}
	link := linkOf(t, first)
	nodes = []*Node{first}
	for _, m := range machines[1:] {
		nodes = append(nodes, join(t, l, m, link))
	}
	return nodes
}

func join(t *testing.T, l *Lab, machine, link string) *Node {
	t.Helper()
	n, err := l.Join(machine, link, quick...)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// linkOf waits for the join link of a node.
func linkOf(t *testing.T, n *Node) (link string) {
	t.Helper()
	await(t, n, "a join link", func(s status.Snapshot) bool { link = s.Link; return link != "" })
	return link
}

func await(t *testing.T, n *Node, what string, holds func(status.Snapshot) bool) time.Duration {
	t.Helper()
	d, err := n.Await(within(t, stepTimeout), what, holds)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// meets waits until a node reaches another one by one of these links, and returns how long
// that took.
func meets(t *testing.T, n, other *Node, links ...string) time.Duration {
	t.Helper()
	id := idOf(t, other)
	return await(t, n, "a link to "+other.Name, func(s status.Snapshot) bool {
		return slices.Contains(links, peerOf(s, id).Link)
	})
}

// through waits until a node reaches another one through a relay.
func through(t *testing.T, n, other, relay *Node) time.Duration {
	t.Helper()
	id, name := idOf(t, other), peerIn(t, linkOf(t, relay))
	return await(t, n, "a link to "+other.Name+" through "+relay.Name, func(s status.Snapshot) bool { return peerOf(s, id).Relay == name })
}

// peerIn is the peer that a join link leads to: the first address is its own.
func peerIn(t *testing.T, link string) string {
	t.Helper()
	id, err := address.PeerIDOf(addressesIn(t, link)[0])
	if err != nil {
		t.Fatal(err)
	}
	return hex.EncodeToString(id[:])
}

// addressesIn are the addresses of a join link, of which there is one at least.
func addressesIn(t *testing.T, link string) []string {
	t.Helper()
	l, err := joinlink.Parse(link)
	if err != nil || len(l.Peers) == 0 {
		t.Fatalf("no peer in %s: %v", link, err)
	}
	return l.Peers
}

// both is a link with the addresses of another, which may be one of another run.
func both(t *testing.T, link, other string) string {
	t.Helper()
	l, err := joinlink.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	l.Peers = append(l.Peers, addressesIn(t, other)...)
	return l.String()
}

// leadsTo says that a link has an address with these words in it.
func leadsTo(link, words string) bool {
	l, err := joinlink.Parse(link)
	return err == nil && slices.ContainsFunc(l.Peers, func(p string) bool { return strings.Contains(p, words) })
}

func idOf(t *testing.T, n *Node) (id string) {
	t.Helper()
	await(t, n, "its id", func(s status.Snapshot) bool { id = s.Self; return id != "" })
	return id
}

func peerOf(s status.Snapshot, id string) status.Peer {
	for _, p := range s.Peers {
		if p.ID == id {
			return p
		}
	}
	return status.Peer{}
}

// kill ends a node without warning.
func kill(t *testing.T, n *Node) {
	t.Helper()
	if err := n.Kill(); err != nil {
		t.Fatal(err)
	}
}

// endsAsOne waits for the end of the run and compares what the nodes hold.
func endsAsOne(t *testing.T, nodes ...*Node) {
	t.Helper()
	var digests []string
	for _, n := range nodes {
		select {
		case <-n.Ended():
		case <-time.After(10 * time.Minute):
			t.Fatalf("the run does not end on %s:\n%s", n.Name, tail(n.Log()))
		}
		s, err := n.Final()
		if err != nil {
			t.Fatal(err)
		}
		if !s.Finished {
			t.Errorf("%s left before the end", n.Name)
		}
		digests = append(digests, s.StateDigest)
	}
	if slices.ContainsFunc(digests, func(d string) bool { return d != digests[0] }) {
		t.Errorf("the run ends with %q", digests)
	}
}

// homes is the world of most learners: one has a public address, and two are behind routers.
func homes(nat NAT, public ...string) Net {
	return Net{Machines: public, Nets: []Net{
		{Router: "rb", NAT: nat, Machines: []string{"b"}},
		{Router: "rc", NAT: nat, Machines: []string{"c"}},
	}}
}

// Two behind routers that keep ports punch a hole, and go on when the one is gone that
// introduced them.
func TestPortKeepingRouters(t *testing.T) {
	l := world(t, homes(KeepPorts, "a"))
	nodes := runOf(t, l, "25e3", "a", "b", "c")
	a, b, c := nodes[0], nodes[1], nodes[2]
	took(t, "direct connection after the join", max(meets(t, b, c, status.LinkDirect), meets(t, c, b, status.LinkDirect)), time.Minute)
	kill(t, a)
	if !connected(t, b, c) || !connected(t, c, b) {
		t.Error("no direct connection after the death of a")
	}
	endsAsOne(t, b, c)
}

// Two behind routers that scramble ports work through a relay, and through another when
// that dies.
func TestPortScramblingRouters(t *testing.T) {
	l := world(t, homes(ScramblePorts, "a", "d"))
	nodes := runOf(t, l, "25e3", "a", "b", "c")
	a, b, c := nodes[0], nodes[1], nodes[2]
	relayed := []string{status.LinkRelayed, status.LinkPunching}
	took(t, "relayed after the join", max(meets(t, b, c, relayed...), meets(t, c, b, relayed...)), 30*time.Second)
	d := join(t, l, "d", linkOf(t, b))
	for _, n := range []*Node{b, c} {
		meets(t, n, d, status.LinkDirect)
		await(t, n, "places at two relays", func(s status.Snapshot) bool { return len(s.Net.Reach.Outside) >= 3 })
	}
	kill(t, a)
	// Peers that they reached through it are lost, or reached through d already.
	took(t, "relayed again after the death of the relay", max(through(t, b, c, d), through(t, c, b, d)), 10*time.Second)
	endsAsOne(t, b, c, d)
}

// longVariable turns on what takes too long for every change.
const longVariable = "ATOLL_LONG"

// deaths are when the node is killed that introduced two others: so long after the later one
// was started.
var deaths = []time.Duration{0, 1, 2, 3, 4, 6, 9, 15, 25, 45, 80, 120}

// The node that introduced two to each other dies at any moment. If they are connected already
// they go on; if not, it comes back after a while, so that a way exists. They end as one.
func TestIntroducerDiesAtAnyTime(t *testing.T) {
	if os.Getenv(longVariable) == "" {
		t.Skipf("twelve deaths take twenty minutes: run with %s=1", longVariable)
	}
	for _, seconds := range deaths {
		after := seconds * time.Second
		t.Run(after.String(), func(t *testing.T) {
			l := world(t, homes(KeepPorts, "a"))
			if err := l.Run("--tokens", fmt.Sprint(int(3*tokensPerSecond*(after+time.Minute).Seconds()))); err != nil {
				t.Fatal(err)
			}
			a, err := l.First("a", quick...)
			if err != nil {
				t.Fatal(err)
			}
			link := linkOf(t, a)
			b := join(t, l, "b", link)
			meets(t, a, b, status.LinkDirect)
			c := join(t, l, "c", link)
			time.Sleep(after)
			kill(t, a)
			nodes := []*Node{b, c}
			if !connected(t, b, c) {
				time.Sleep(10 * time.Second)
				if a, err = l.First("a", quick...); err != nil {
					t.Fatal(err)
				}
				nodes = append(nodes, a)
				took(t, "direct after it came back", max(meets(t, b, c, status.LinkDirect), meets(t, c, b, status.LinkDirect)), time.Minute)
			}
			endsAsOne(t, nodes...)
		})
	}
}

// tokensPerSecond is what one quick node trains: a row of the usual model's context twice
// a second.
const tokensPerSecond = 2 * 128

// connected reports whether two reach each other directly a moment after something broke.
func connected(t *testing.T, n, other *Node) bool {
	t.Helper()
	time.Sleep(2 * time.Second)
	s, err := n.Status(t.Context())
	if err != nil {
		return false // it is not in yet
	}
	return slices.ContainsFunc(s.Peers, func(p status.Peer) bool {
		return p.Link == status.LinkDirect && p.Addr != "" && strings.Contains(p.Addr, "/ip4/"+other.lab.outside(other.Name)+"/")
	})
}

// hears waits until a node hears another one, and returns how long that took.
func hears(t *testing.T, n, other *Node) time.Duration {
	t.Helper()
	id := idOf(t, other)
	return await(t, n, "a sign of life of "+other.Name, func(s status.Snapshot) bool {
		p := peerOf(s, id)
		return p.Link != "" && p.LagS < 2
	})
}

// A cable is pulled for so long that connections end, and put back. Once the node is gone that
// introduced the two, they find each other all the same.
func TestCablePulled(t *testing.T) {
	for _, alone := range []bool{false, true} {
		t.Run(map[bool]string{false: "three", true: "the introducer is gone"}[alone], func(t *testing.T) {
			l := world(t, homes(KeepPorts, "a"))
			nodes := runOf(t, l, "4e4", "a", "b", "c")
			b := nodes[1]
			meets(t, b, nodes[2], status.LinkDirect)
			meets(t, nodes[2], b, status.LinkDirect)
			if alone {
				kill(t, nodes[0])
				nodes = nodes[1:]
			}
			if err := l.Unplug("b"); err != nil {
				t.Fatal(err)
			}
			time.Sleep(40 * time.Second)
			if err := l.Plug("b"); err != nil {
				t.Fatal(err)
			}
			began := time.Now()
			for _, n := range nodes {
				if n != b {
					hears(t, n, b)
					hears(t, b, n)
				}
			}
			took(t, "back once the cable is", time.Since(began), 20*time.Second)
			endsAsOne(t, nodes...)
		})
	}
}

// A router that forwards ports lets newcomers in without a relay: the node has it do so, tells
// the address, and is dialled there, also when it is the first and nobody else was met yet.
func TestForwardingRouter(t *testing.T) {
	if _, err := exec.LookPath(upnpProgram); err != nil {
		t.Skipf("%v: install miniupnpd-nftables", err)
	}
	l := world(t, Net{Nets: []Net{
		{Router: "rb", UPnP: true, Machines: []string{"b"}},
		{Router: "rc", Machines: []string{"c"}},
	}})
	if err := l.Run("--tokens", "2e4"); err != nil {
		t.Fatal(err)
	}
	b, err := l.First("b", quick...)
	if err != nil {
		t.Fatal(err)
	}
	outside := "/ip4/" + l.Address("rb") + "/"
	took(t, "mapped and in the link", await(t, b, "a forwarded port", func(s status.Snapshot) bool {
		return leadsTo(s.Link, outside)
	}), time.Minute)
	c := join(t, l, "c", linkOf(t, b))
	took(t, "dialled without a relay", meets(t, c, b, status.LinkDirect), 30*time.Second)
	endsAsOne(t, b, c)
}

// A provider's router in front of the home's changes nothing where both keep ports.
func TestCarrierGradeNAT(t *testing.T) {
	l := world(t, Net{Machines: []string{"a"}, Nets: []Net{
		{Router: "isp", Carrier: true, Nets: []Net{{Router: "rb", Machines: []string{"b"}}}},
		{Router: "rc", Machines: []string{"c"}},
	}})
	nodes := runOf(t, l, "25e3", "a", "b", "c")
	took(t, "direct connection after the join", max(meets(t, nodes[1], nodes[2], status.LinkDirect), meets(t, nodes[2], nodes[1], status.LinkDirect)), time.Minute)
	endsAsOne(t, nodes...)
}

// A node whose router gets another address, or which is carried to another place of its
// network, is back soon.
func TestAddressChanges(t *testing.T) {
	for _, moved := range []string{"rb", "b"} {
		t.Run(moved, func(t *testing.T) {
			l := world(t, homes(KeepPorts, "a"))
			nodes := runOf(t, l, "25e3", "a", "b", "c")
			a, b, c := nodes[0], nodes[1], nodes[2]
			meets(t, b, c, status.LinkDirect)
			meets(t, c, b, status.LinkDirect)
			id := idOf(t, b)
			anew := func(n *Node) func(status.Snapshot) bool {
				s, err := n.Status(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				old := peerOf(s, id).Addr
				return func(s status.Snapshot) bool { p := peerOf(s, id); return p.Link != "" && p.Addr != old }
			}
			atA, atC := anew(a), anew(c)
			began := time.Now()
			if err := l.Move(moved); err != nil {
				t.Fatal(err)
			}
			await(t, a, "b", atA)
			took(t, "back at a", time.Since(began), 15*time.Second)
			await(t, c, "b", atC)
			took(t, "back at c", time.Since(began), 15*time.Second)
			endsAsOne(t, a, b, c)
		})
	}
}

// All are at home, and a relay that holds no model introduces them. It may die once they are
// connected.
func TestAllAtHome(t *testing.T) {
	for name, nat := range map[string]NAT{"ports kept": KeepPorts, "ports scrambled": ScramblePorts} {
		t.Run(name, func(t *testing.T) {
			l := world(t, homes(nat, "vps"))
			if err := l.Run("--tokens", "2e4"); err != nil {
				t.Fatal(err)
			}
			relay, link, err := l.Relay(within(t, stepTimeout), "vps")
			if err != nil {
				t.Fatal(err)
			}
			at := addressesIn(t, link)[0]
			b, err := l.First("b", append(quick, "--peer", at)...)
			if err != nil {
				t.Fatal(err)
			}
			await(t, b, "a place at the relay", func(s status.Snapshot) bool { return leadsTo(s.Link, "/p2p-circuit/") })
			c := join(t, l, "c", link)
			if nat == ScramblePorts {
				took(t, "relayed after the join", max(meets(t, b, c, status.LinkRelayed, status.LinkPunching), meets(t, c, b, status.LinkRelayed, status.LinkPunching)), 30*time.Second)
			} else {
				took(t, "direct connection after the join", max(meets(t, b, c, status.LinkDirect), meets(t, c, b, status.LinkDirect)), time.Minute)
			}
			bytes, err := relay.Memory()
			t.Logf("the relay takes %d MiB", bytes>>20)
			if err != nil || bytes > 100<<20 {
				t.Errorf("the relay takes %d bytes, %v", bytes, err)
			}
			if nat == KeepPorts {
				kill(t, relay)
			}
			endsAsOne(t, b, c)
		})
	}
}
