package metrics

import (
	"cmp"
	"slices"

	"atoll/node/status"
)

// most are the peers with series of their own: the node itself and those who contributed most.
func most(peers []status.Peer) []status.Peer {
	peers = slices.Clone(peers)
	slices.SortStableFunc(peers, func(a, b status.Peer) int {
		if a.Self != b.Self {
			return cmp.Compare(truth(b.Self), truth(a.Self))
		}
		return cmp.Compare(b.TokensFolded, a.TokensFolded)
	})
	peers = slices.DeleteFunc(peers, func(p status.Peer) bool { return p.State == "refused" || p.ID == "" })
	return peers[:min(len(peers), maxPeers)]
}
