package show

import (
	"encoding/binary"
	"testing"

	"atoll/gossip/wire"
)

// A gap lies between two heartbeats of one process; the time between two processes is none.
func TestHeartbeatGaps(t *testing.T) {
	g, a, b := heartbeatGaps{}, wire.PeerID{1}, wire.PeerID{2}
	g.heard(1000, &wire.Heartbeat{Author: a, Incarnation: 1})
	if got := g.longestS(a); got != 0 {
		t.Errorf("one heartbeat has a gap of %v s", got)
	}
	g.heard(3500, &wire.Heartbeat{Author: a, Incarnation: 1})
	g.heard(3600, &wire.Heartbeat{Author: b, Incarnation: 1})
	g.heard(4000, &wire.Heartbeat{Author: a, Incarnation: 1})
	g.heard(90_000, &wire.Heartbeat{Author: a, Incarnation: 2})
	g.heard(90_100, &wire.Heartbeat{Author: a, Incarnation: 2})
	if got := g.longestS(a); got != 2.5 {
		t.Errorf("the longest gap is %v s, want 2.5", got)
	}
	if got := g.longestS(b); got != 0 {
		t.Errorf("another peer has a gap of %v s", got)
	}
}

func TestHeartbeatGapsAreBounded(t *testing.T) {
	g := heartbeatGaps{}
	for i := range 2 * maxGaps {
		var id wire.PeerID
		binary.LittleEndian.PutUint32(id[:], uint32(i))
		g.heard(1, &wire.Heartbeat{Author: id})
	}
	if len(g) != maxGaps {
		t.Errorf("%d authors are known, want %d", len(g), maxGaps)
	}
}
