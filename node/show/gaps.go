package show

import (
	"atoll/gossip/wire"
	"atoll/node/core"
)

// maxGaps bounds for how many authors of heartbeats gaps are measured: more than a testnet has nodes, and
// keys cost nothing.
const maxGaps = 1024

// heartbeatGaps measures how far apart the heartbeats of a peer come.
type heartbeatGaps map[wire.PeerID]heartbeatGap

// heartbeatGap is what is known of the heartbeats of a peer.
type heartbeatGap struct {
	incarnation int64
	at          core.Time // of the newest
	longest     int64     // ms between two that came one after the other, of one process
}

// heard records a heartbeat that comes now.
func (g heartbeatGaps) heard(now core.Time, b *wire.Heartbeat) {
	was, known := g[b.Author]
	if !known && len(g) >= maxGaps {
		return
	}
	gap := heartbeatGap{incarnation: b.Incarnation, at: now, longest: was.longest}
	if known && was.incarnation == b.Incarnation {
		gap.longest = max(gap.longest, now-was.at)
	}
	g[b.Author] = gap
}

// longestS is the longest gap between two heartbeats of a peer in seconds; 0 = none was seen.
func (g heartbeatGaps) longestS(peer wire.PeerID) float64 { return float64(g[peer].longest) / 1000 }
