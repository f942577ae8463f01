package node

import (
	"atoll/gossip/wire"
	"atoll/node/core"
)

// maxGaps bounds for how many authors of beats gaps are measured: more than a testnet has nodes, and
// keys cost nothing.
const maxGaps = 1024

// beatGaps measures how far apart the beats of a peer come.
type beatGaps map[wire.PeerID]beatGap

// beatGap is what is known of the beats of a peer.
type beatGap struct {
	incarnation int64
	at          core.Time // of the newest
	longest     int64     // ms between two that came one after the other, of one process
}

// heard notes a beat that comes now.
func (g beatGaps) heard(now core.Time, b *wire.Beat) {
	was, known := g[b.Author]
	if !known && len(g) >= maxGaps {
		return
	}
	gap := beatGap{incarnation: b.Incarnation, at: now, longest: was.longest}
	if known && was.incarnation == b.Incarnation {
		gap.longest = max(gap.longest, now-was.at)
	}
	g[b.Author] = gap
}

// longestS is the longest gap between two beats of a peer in seconds; 0 = none was seen.
func (g beatGaps) longestS(peer wire.PeerID) float64 { return float64(g[peer].longest) / 1000 }
