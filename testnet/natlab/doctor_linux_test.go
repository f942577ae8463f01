package natlab

import (
	"os/exec"
	"strings"
	"testing"
	"time"

	"atoll/node/status"
)

// doctorWithin bounds a check of a link.
const doctorWithin = 2 * time.Minute

// doctor tries a link from a machine and wants words in what it finds: by name of the finding,
// those of its text, then those of its remedy.
func doctor(t *testing.T, l *Lab, machine, link string, want map[string][2]string) {
	t.Helper()
	began := time.Now()
	found, err := l.Doctor(within(t, doctorWithin), machine, link)
	if err != nil {
		t.Fatal(err)
	}
	took(t, "doctor on "+machine, time.Since(began), time.Minute)
	for name, f := range found {
		t.Logf("%s: %s: %v %s; do: %s", machine, name, f.OK, f.Text, f.Remedy)
	}
	for name, words := range want {
		f, ok := found[name]
		if !ok || !strings.Contains(f.Text, words[0]) || !strings.Contains(f.Remedy, words[1]) {
			t.Errorf("on %s the finding %q is %+v, want %q and the remedy %q", machine, name, f, words[0], words[1])
		}
	}
}

// Doctor says what is true in each place, and what to do.
func TestDoctorOfALink(t *testing.T) {
	l := world(t, Net{Machines: []string{"a", "d", "p"}, Nets: []Net{
		{Router: "keeps", Machines: []string{"b"}},
		{Router: "mixes", NAT: ScramblePorts, Machines: []string{"c"}},
		{Router: "office", Only443: true, Machines: []string{"e"}},
		{Router: "isp", Carrier: true, Nets: []Net{{Router: "home", Machines: []string{"f"}}}},
	}})
	if err := l.Run("--tokens", "1e9"); err != nil {
		t.Fatal(err)
	}
	relay, link, err := l.Relay(within(t, stepTimeout), "d", "--port-443")
	if err != nil {
		t.Fatal(err)
	}
	a, err := l.First("a", append(quick, "--peer", addressesIn(t, link)[0])...)
	if err != nil {
		t.Fatal(err)
	}
	await(t, a, "the relay", func(s status.Snapshot) bool {
		return peerOf(s, idOf(t, a)).ID != "" && strings.Contains(relay.Log(), "connected")
	})
	own := linkOf(t, a)
	in := [2]string{"answers", ""}
	doctor(t, l, "p", own, map[string][2]string{"link": in, "reach": {"others reach this machine: a peer dialled it at " + l.Address("p"), ""}, "clock": {"within", ""}, "run": {"tokens", ""}})
	doctor(t, l, "b", own, map[string][2]string{"link": in, "reach": {"behind a router that will work", "forward TCP and UDP port 27182"}, "router": {"no router answers", ""}})
	doctor(t, l, "c", own, map[string][2]string{"link": in, "reach": {"symmetric or carrier-grade NAT", "forward TCP and UDP port 27182"}})
	doctor(t, l, "e", own, map[string][2]string{"link": in, "reach": {"lets out the web only", "let TCP and UDP out"}})
	doctor(t, l, "f", own, map[string][2]string{"link": in, "reach": {"behind a router that will work", "forward"}})
	if _, err := l.places["p"].command("ip", "link", "set", "eth0", "down"); err != nil {
		t.Fatal(err)
	}
	doctor(t, l, "p", own, map[string][2]string{"network": {"on no network", "connect it"}})
	kill(t, a)
	kill(t, relay)
	doctor(t, l, "b", own, map[string][2]string{"link": {"the link leads to nobody", "ask a member for a new link"}})
}

// Behind a router that opens ports, doctor says so, and a newcomer dials the port without a relay.
func TestDoctorBehindUPnP(t *testing.T) {
	if _, err := exec.LookPath(upnpProgram); err != nil {
		t.Skip(err)
	}
	l := world(t, Net{Machines: []string{"a"}, Nets: []Net{
		{Router: "opens", UPnP: true, Machines: []string{"b"}},
	}})
	if err := l.Run("--tokens", "1e9"); err != nil {
		t.Fatal(err)
	}
	a, err := l.First("a", quick...)
	if err != nil {
		t.Fatal(err)
	}
	doctor(t, l, "b", linkOf(t, a), map[string][2]string{
		"router": {"forwards " + l.Address("opens") + ":", ""}, "reach": {"others reach this machine: a peer dialled it at " + l.Address("opens"), ""},
	})
}
