package joinlink

import (
	"slices"

	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
)

// Short is a link that leads to a node by the best of its own addresses of each family, as some machines have one alone, and, so that
// it stays good when that node is gone, by one more: of another peer that others reach by themselves, or else
// another way to the node. A newcomer learns the rest from whom it reaches.
func Short(run wire.RunID, own, others []string) Link {
	l := Link{Run: run}
	own = address.Best(own)
	if len(own) > 0 {
		l.Peers = own[:1:1]
		alike := func(a string) bool {
			return address.FromAnywhere(a) == address.FromAnywhere(own[0]) && address.IPv6(a) != address.IPv6(own[0]) && !address.Local(a)
		}
		if i := slices.IndexFunc(own, alike); i >= 0 {
			l.Peers = append(l.Peers, own[i])
		}
	}
	if second := second(l.Peers, own, others); second != "" {
		l.Peers = append(l.Peers, second)
	}
	return l
}

// second is the address to name beside the first, empty if there is none. Port 443 goes first
// where there is a choice: from some networks there is no other way.
func second(first, own, others []string) string {
	if len(first) > 0 && !address.FromAnywhere(first[0]) {
		others = nil // who is on the same network is not helped by the address of one that is not
	}
	others = slices.DeleteFunc(address.Best(others), func(a string) bool { return !address.FromAnywhere(a) })
	for _, choice := range []struct {
		among []string
		good  func(string) bool
	}{
		{others, address.OnWeb},
		{own, address.OnWeb},
		{others, func(string) bool { return true }},
		{own, func(a string) bool {
			return len(first) < 2 && address.Machine(a) != address.Machine(first[0]) && address.FromAnywhere(a) == address.FromAnywhere(first[0])
		}},
	} {
		if i := slices.IndexFunc(choice.among, func(a string) bool { return choice.good(a) && !slices.Contains(first, a) }); i >= 0 {
			return choice.among[i]
		}
	}
	return ""
}

// WithRelays are the addresses of a link, and those of the relays that they lead through: a relay
// knows the run as well, and may be there when the peer behind it is gone.
func WithRelays(addrs []string) []string {
	all := slices.Clone(addrs)
	for _, a := range addrs {
		if relay, ok := address.RelayOf(a); ok && !slices.Contains(all, relay) {
			all = append(all, relay)
		}
	}
	return all
}
