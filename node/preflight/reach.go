package preflight

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"atoll/gossip/p2p/address"
	"atoll/node/inspect"
)

// shared are the addresses that providers give to customers who share one public address
// (RFC 6598).
var shared = netip.MustParsePrefix("100.64.0.0/10")

// router says what the router answered to UPnP.
func (f Facts) router() (inspect.Finding, bool) {
	switch {
	case f.Router == nil || f.hasPublic():
		return nothing()
	case !*f.Router:
		return good("router", "no router answers UPnP or NAT-PMP", "")
	case len(f.Mapped) == 0:
		return good("router", "the router answers UPnP, and forwards no port", "look whether its settings allow devices to open ports")
	case f.providerShares():
		return good("router", fmt.Sprintf("the router forwards %s by UPnP, but that is no address of the internet: the provider has another router in front of it", shown(f.Mapped[0])), "")
	}
	return good("router", fmt.Sprintf("the router forwards %s to this machine by UPnP", shown(f.Mapped[0])), "")
}

// hasPublic reports whether this machine itself has an address of the internet.
func (f Facts) hasPublic() bool { return slices.ContainsFunc(f.Networks, public) }

func public(a netip.Addr) bool {
	return a.IsGlobalUnicast() && !a.IsPrivate() && !shared.Contains(a)
}

// providerShares reports whether a router of the provider's is in front of the home's: what the
// latter has for its outer address is not what the internet sees, or this machine has a shared
// address itself.
func (f Facts) providerShares() bool {
	if slices.ContainsFunc(f.Networks, shared.Contains) {
		return true
	}
	outer, ok := machineOf(f.Mapped)
	if !ok {
		return false
	}
	seen, known := f.outside()
	return !public(outer) || known && outer.Is4() == seen.Is4() && outer != seen
}

// machineOf is the machine that the first of some addresses names.
func machineOf(addrs []string) (a netip.Addr, ok bool) {
	if len(addrs) == 0 {
		return a, false
	}
	parts := strings.Split(address.Machine(addrs[0]), "/")
	a, err := netip.ParseAddr(parts[len(parts)-1])
	return a, err == nil
}

// outside is the address by which the internet sees this machine.
func (f Facts) outside() (a netip.Addr, known bool) {
	for _, s := range f.Seen {
		if s.Outside {
			return s.At.Addr(), true
		}
	}
	return a, false
}

// udp are the ports that peers outside see this machine's UDP come from.
func (f Facts) udp() (ports []int) {
	for _, s := range f.Seen {
		if s.Outside && s.UDP {
			ports = append(ports, int(s.At.Port()))
		}
	}
	return ports
}

// reach says how others will reach this machine.
func (f Facts) reach() (inspect.Finding, bool) {
	if i := slices.IndexFunc(f.Back, func(b Back) bool { return b.Through }); i >= 0 {
		return good("reach", fmt.Sprintf("others reach this machine: a peer dialled it at %s", shown(f.Back[i].Addr)), "")
	}
	outside, known := f.outside()
	switch {
	case f.Reached == "":
		return nothing()
	case !known:
		return good("reach", "whether others reach this machine from outside is not known: the peer is on the same network or behind a relay, and nobody else could be asked", "")
	case f.hasPublic():
		return good("reach", "this machine has an address of the internet, and a firewall keeps others out: most connections come about by hole punching, else they are relayed",
			fmt.Sprintf("let TCP and UDP port %d through the firewall", f.Port))
	case len(f.udp()) == 0 && address.OnWeb(f.Reached):
		return good("reach", "this network lets out the web only: this machine will be relayed, by a relay that listens on port 443", "let TCP and UDP out as well, or ask for that; until then it works, and more slowly")
	case len(f.udp()) == 0:
		return good("reach", "this network lets no UDP out: most connections will be relayed", "let UDP out as well, or ask for that; until then it works, and more slowly")
	case f.scrambles():
		return good("reach", fmt.Sprintf("behind a symmetric or carrier-grade NAT, which gives each connection another port of %s: this machine will be relayed", outside), f.forward(outside))
	}
	return good("reach", fmt.Sprintf("behind a router that will work: peers see this machine at %s, and direct connections come about by hole punching", outside), f.forward(outside))
}

// Reach is how others reach this machine, as inspect.Checkup has it.
func (f Facts) Reach() string {
	_, known := f.outside()
	switch {
	case slices.ContainsFunc(f.Back, func(b Back) bool { return b.Through }):
		return inspect.ReachOpen
	case f.Reached == "" || !known:
		return inspect.ReachUnknown
	}
	return inspect.ReachHelped
}

// scrambles reports whether the router gives each flow another port. Two peers that see two
// ports prove it. If only one could be asked, a port that is not this machine's makes it likely.
func (f Facts) scrambles() bool {
	ports := f.udp()
	if slices.ContainsFunc(ports, func(p int) bool { return p != ports[0] }) {
		return true
	}
	return len(ports) == 1 && ports[0] != f.Port
}

// forward is what to do so that others reach this machine without help.
func (f Facts) forward(outside netip.Addr) string {
	if f.providerShares() {
		return "it works like this; forwarding a port does not help, as the provider has a router of its own: ask it for a public address or for IPv6"
	}
	at := "this machine"
	if i := slices.IndexFunc(f.Networks, func(a netip.Addr) bool { return a.Is4() && a.IsPrivate() }); i >= 0 {
		at = f.Networks[i].String()
	}
	return fmt.Sprintf("it works like this; to be reached without help, forward TCP and UDP port %d on the router to %s (that does not help if the router's outer address is not %s)", f.Port, at, outside)
}
