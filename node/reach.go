package node

import (
	"strings"

	"atoll/gossip"
	"atoll/gossip/p2p"
	"atoll/node/core"
	"atoll/node/status"
)

// readdress tells everybody where this node is dialled from now on.
func (n *node) readdress(now core.Time, a p2p.Addresses) {
	if err := n.record.reached(a); err != nil {
		n.log.Error("sign the record with new addresses", "err", err)
		return
	}
	n.machine.Step(now, n.record.own())
	n.machine.Step(now, gossip.Reached{Public: a.Public})
	if a.Moved {
		n.host.Probe()
	} else {
		n.host.Renew()
	}
	if kind, text := reachText(a); kind != n.reachSaid || a.Moved { // one address more is nothing to look at
		n.reachSaid = kind
		n.screen.Event("addresses", "", kind+text)
	}
}

// reachText says how others reach this node, and at which addresses.
func reachText(a p2p.Addresses) (kind, at string) {
	switch {
	case a.Public:
		return "others reach this node", " at " + strings.Join(a.Outside, " ")
	case len(a.Outside) > 0:
		return "others reach this node through relays, or at addresses that are not confirmed yet", ": " + strings.Join(a.Outside, " ")
	case len(a.Near) > 0:
		return "only this network reaches this node as yet", ", at " + strings.Join(a.Near, " ")
	}
	return "nobody reaches this node: it has no address", ""
}

func (n *node) reserved(now core.Time, e p2p.Reserved) {
	if e.Err == nil {
		n.screen.Event("relay", e.ID.String(), "relays to this node from now on")
	} else {
		n.log.Info("a relay has no slot", "peer", e.ID, "err", e.Err)
	}
	n.machine.Step(now, gossip.Reserved{Peer: e.ID, OK: e.Err == nil})
}

// reach is how others reach this node.
func (n *node) reach(carried p2p.Stats) status.Reach {
	a := n.host.Reach()
	return status.Reach{Public: a.Public, Outside: a.Outside, Near: a.Near, RelayedBytes: carried.Relayed}
}
