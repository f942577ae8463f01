package node

import (
	"maps"
	"slices"

	"atoll/gossip"
	"atoll/gossip/p2p"
	"atoll/gossip/p2p/address"
	"atoll/gossip/wire"
	"atoll/node/joinlink"
	"atoll/node/preflight"
)

// ownAddrs are where this node is dialled, those of the network first through which it reaches
// others: a machine may have networks of its own that nobody else is on.
func (n *node) ownAddrs() []string {
	outward := p2p.Outward()
	addrs := n.host.Addrs()
	slices.SortStableFunc(addrs, func(a, b string) int {
		return rankBool(address.Machine(a) != outward) - rankBool(address.Machine(b) != outward)
	})
	return addrs
}

func rankBool(b bool) int {
	if b {
		return 1
	}
	return 0
}

// remain has the addresses of a peer that was found stay among those that this node dials.
func (n *node) remain(addrs []string) {
	for _, addr := range addrs {
		if !slices.Contains(n.dials, addr) {
			n.dials = append(n.dials, addr)
		}
	}
}

// publicPeers are addresses of connected peers that others reach by themselves.
func (n *node) publicPeers() (addrs []string) {
	if n.machine == nil {
		return nil
	}
	for _, p := range n.machine.Gossip().Peers().All() {
		if p.Connected && p.Record.Relays && p.Refused == "" {
			addrs = append(addrs, p.Record.Addrs...)
		}
	}
	return addrs
}

// discoveryPoints are nodes where members of any run may say who is in this one: all that this node
// knows. The host asks a few of them.
func (n *node) discoveryPoints() []string {
	addrs := joinlink.WithRelays(slices.Concat(n.dials, n.met))
	if n.machine != nil {
		addrs = append(addrs, n.publicPeers()...)
	}
	return addrs
}

// dialEarlierPeers has gossip try the peers of an earlier start, where this one was given others.
func (n *node) dialEarlierPeers() {
	for _, p := range byPeer(n.met) {
		n.machine.Step(n.clock.Now(), gossip.Hinted{Peer: p.ID, Addrs: p.Addrs})
	}
}

// byPeer puts the addresses of each peer together, in the order of the first of each. What
// is no address of a peer is left out.
func byPeer(addrs []string) (peers []p2p.Hint) {
	at := map[wire.PeerID]int{}
	for _, addr := range addrs {
		id, err := address.PeerIDOf(addr)
		if err != nil {
			continue
		}
		i, known := at[id]
		if !known {
			i, at[id] = len(peers), len(peers)
			peers = append(peers, p2p.Hint{ID: id})
		}
		peers[i].Addrs = append(peers[i].Addrs, addr)
	}
	return peers
}

// maxEarly bounds what is kept of the network until there is a loop: what a host keeps. Gossip
// beyond it is lost, and repaired later.
const maxEarly = 8192

// keepEarly keeps an event for the loop.
func (n *node) keepEarly(e p2p.Event) {
	_, message := e.(p2p.Message)
	_, has := e.(p2p.Has)
	_, stranger := e.(p2p.Stranger)
	if len(n.early) < maxEarly || !message && !has && !stranger {
		n.early = append(n.early, e)
	}
}

// receiveEarly hands the loop what came before it began.
func (n *node) receiveEarly() {
	for _, e := range n.early {
		n.network(e)
		n.replica.Execute()
	}
	n.early = nil
}

// whyAlone says in words why nobody answers, and what to do.
func (n *node) whyAlone(failures map[string]error) string {
	f := preflight.Facts{Networks: preflight.Networks()}
	for _, addr := range slices.Sorted(maps.Keys(failures)) {
		f.Tried = append(f.Tried, preflight.Tried{Addr: addr, Err: failures[addr]})
	}
	if n.cfg.Profile == p2p.WAN {
		mapped, answers := n.host.Mapped()
		f.Mapped, f.Router = mapped, &answers
	}
	return f.Alone()
}
