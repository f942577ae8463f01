package node

import (
	"strings"
	"testing"
	"time"

	"atoll/node/joinlink"
	"atoll/node/status"
)

// A newcomer that has the genesis and reaches nobody whom its link names waits, and says whom it dials and what comes of it. One whose
// link names nobody begins.
func TestWaitsForWhomTheLinkNames(t *testing.T) {
	t.Parallel()
	g, text := toyGenesis(24_000), toyText(t)
	link := joinlink.Link{Run: g.RunID(), Peers: []string{peerAddr(1, "/ip4/127.0.0.1/tcp/1")}}
	n := launch(t, Config{Genesis: g.Encode(), Link: link, Data: text, Pace: slowPace, AloneAfter: time.Millisecond})
	n.until("it says so", func(s status.Snapshot) bool {
		said := strings.Contains(s.Stage, "no node that the link names answers") && strings.Contains(s.Stage, "no node runs at 127.0.0.1:1 any more")
		return said && s.State == "joining" && s.TokensFolded == 0 && happened("alone")(s)
	})
	n.leave()
}
