package p2p

import (
	"errors"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/wire"
)

func block(t *testing.T, h *Host, others ...*Host) {
	t.Helper()
	var ids []wire.PeerID
	for _, o := range others {
		ids = append(ids, o.ID())
	}
	h.Block(ids)
}

func TestBlockCutsAndRefusesBothWays(t *testing.T) {
	inPair(t, rate, func(t *testing.T, a, b *Host) {
		block(t, a, b)
		if down := next[PeerDown](t, a); down.ID != b.ID() {
			t.Errorf("a lost %v", down.ID)
		}
		next[PeerDown](t, b)
		if _, err := a.Dial(t.Context(), b.Addrs()[0]); !errors.Is(err, ErrBlocked) {
			t.Errorf("dial of a blocked peer: %v", err)
		}
		if _, err := b.Dial(t.Context(), a.Addrs()[0]); err == nil {
			t.Error("a blocked peer got in")
		}
		if up := append(a.Connected(), b.Connected()...); len(up) != 0 {
			t.Errorf("connected in spite of the block: %v", up)
		}
	})
}

// What failed while the block stood must not delay what follows it.
func TestBlockedPeersTalkAtOnceAfterwards(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(2)
		a, b := hosts[0], hosts[1]
		block(t, a, b)
		for range 3 {
			if _, err := b.Dial(t.Context(), a.Addrs()[0]); err == nil {
				t.Fatal("a blocked peer got in")
			}
		}
		block(t, a)
		join(t, b, a)
	})
}

func TestBlockReplacesTheSetBefore(t *testing.T) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		hosts := w.hosts(3)
		a, b, c := hosts[0], hosts[1], hosts[2]
		block(t, a, b)
		block(t, a, c)
		join(t, a, b)
		if _, err := a.Dial(t.Context(), c.Addrs()[0]); !errors.Is(err, ErrBlocked) {
			t.Errorf("dial of a blocked peer: %v", err)
		}
	})
}

// The network hands up a connection that was secured before the block and is
// added after it.
func TestBlockCatchesConnectionsOnTheirWay(t *testing.T) {
	inPair(t, rate, func(t *testing.T, b, a *Host) {
		c := a.host.Network().ConnsToPeer(b.pid)[0]
		a.peers.remove(c, func(*link) {})
		a.blocked.Replace([]peer.ID{b.pid})
		a.connected(a.host.Network(), c)
		next[PeerDown](t, b)
		if len(a.Connected()) != 0 {
			t.Error("a blocked peer is up")
		}
	})
}
