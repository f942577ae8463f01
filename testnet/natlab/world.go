package natlab

import (
	"fmt"
	"regexp"
)

// NAT is how a router translates the ports of what leaves its network.
type NAT int

// The ways of routers with ports. None lets in what was not asked for.
const (
	// KeepPorts gives a flow the port that its machine has, where that is free. Two
	// machines behind two such routers can punch holes for each other.
	KeepPorts NAT = iota
	// ScramblePorts gives each flow another port. What a third party saw of a flow
	// says nothing of the next: no hole can be punched.
	ScramblePorts
)

// Net is a network: the internet, whose Router is empty, or what is behind a router.
type Net struct {
	Router   string // name of the router in front of it
	NAT      NAT
	Carrier  bool     // the router is a provider's: its network has shared addresses (RFC 6598)
	Only443  bool     // the router lets out TCP to port 443 and nothing else
	UPnP     bool     // the router forwards ports to machines that ask it to
	Machines []string // names
	Nets     []Net    // whose routers are on this network
}

// maxName keeps the names of interfaces, which get a prefix, within the system's 15 bytes.
const maxName = 8

var nameForm = regexp.MustCompile(`^[a-z][a-z0-9]*$`)

// Validate names the first part of a world that cannot be made.
func (n Net) Validate() error {
	if n.Router != "" {
		return fmt.Errorf("natlab: the outermost network has a router %q: the internet has none", n.Router)
	}
	return n.validate(map[string]bool{})
}

func (n Net) validate(used map[string]bool) error {
	names := n.Machines
	for _, inner := range n.Nets {
		names = append(names[:len(names):len(names)], inner.Router)
	}
	for _, name := range names {
		switch {
		case len(name) > maxName || !nameForm.MatchString(name):
			return fmt.Errorf("natlab: name %q: want a letter, then letters and digits, at most %d", name, maxName)
		case used[name]:
			return fmt.Errorf("natlab: two places are named %q", name)
		}
		used[name] = true
	}
	if len(names) > maxPlaces {
		return fmt.Errorf("natlab: %d places on one network, at most %d", len(names), maxPlaces)
	}
	for _, inner := range n.Nets {
		if err := inner.validate(used); err != nil {
			return err
		}
	}
	return nil
}

// maxPlaces leaves room for new addresses of places that move.
const maxPlaces = 64

// subnet is the addresses of a network.
type subnet struct {
	prefix string // the first three numbers
	bits   int
}

// addressesOf says which addresses a network has. The internet's count as public for
// libp2p, which takes the ranges for documentation as private; nobody leaves the
// laboratory, so it does not matter whose they are.
func (n Net) addressesOf() subnet {
	switch {
	case n.Router == "":
		return subnet{"5.0.0", 24}
	case n.Carrier:
		return subnet{"100.64.0", 24}
	}
	return subnet{"192.168.1", 24}
}

// router is the address of a network's router, within it.
func (s subnet) router() string { return s.prefix + ".1" }

// place is the i-th address for a machine or an inner router.
func (s subnet) place(i int) string { return fmt.Sprintf("%s.%d", s.prefix, 10+i) }

// rules are the router's, in nft's language. Its wide side is named wan.
func (n Net) rules() string {
	masquerade := "masquerade"
	if n.NAT == ScramblePorts {
		masquerade = "masquerade fully-random"
	}
	out := "accept"
	if n.Only443 {
		out = "tcp dport 443 accept"
	}
	// A router that answers what is for nobody with a reset ends each attempt to punch a
	// hole: so input drops.
	return `table ip atoll {
	chain out { type nat hook postrouting priority srcnat; oifname "wan" ` + masquerade + `; }
	chain through {
		type filter hook forward priority filter; policy drop;
		ct state established,related accept
		iifname "lan" oifname "lan" accept
		ct status dnat accept
		iifname "lan" oifname "wan" ` + out + `
	}
	chain in {
		type filter hook input priority filter; policy drop;
		ct state established,related accept
		iifname "lan" accept
	}
}
`
}

// forwarding is where miniupnpd writes what machines ask for, in nft's language. The names are
// its own.
const forwarding = `table inet filter {
	chain miniupnpd { }
	chain prerouting_miniupnpd { }
	chain postrouting_miniupnpd { }
	chain prerouting { type nat hook prerouting priority dstnat; jump prerouting_miniupnpd; }
}
`

// upnpConfig is miniupnpd's, on a router of this network.
func (n Net) upnpConfig() string {
	s := n.addressesOf()
	return "ext_ifname=wan\nlistening_ip=lan\nenable_upnp=yes\nenable_natpmp=yes\nsecure_mode=yes\n" +
		fmt.Sprintf("allow 1024-65535 %s.0/%d 1024-65535\ndeny 0-65535 0.0.0.0/0 0-65535\n", s.prefix, s.bits)
}
