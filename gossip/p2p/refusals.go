package p2p

import (
	"errors"
	"fmt"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// Why a peer is refused, beside a *hello.Refusal.
var (
	// ErrHandshake: the peer sent something else than its signed record.
	ErrHandshake = errors.New("broken handshake")
	// ErrRefusedByPeer: the peer refuses us; its reason follows.
	ErrRefusedByPeer = errors.New("peer refuses us")
	// ErrNotAdmitted: the run is not open to the peer; the reason follows.
	ErrNotAdmitted = errors.New("not admitted")
	// ErrDropped: this node dropped the peer a while ago; its reason follows.
	ErrDropped = errors.New("dropped by this node")
)

// ErrNoHandshake: a peer was connected, and nothing came of it. Packets of its size, which are the first large ones, may be lost on the way.
var ErrNoHandshake = errors.New("connected, and the handshake does not end")

// ErrNoWay: a dial failed before it began, as this machine has no way to any of the addresses, or nothing came of the name in one.
var ErrNoWay = swarm.ErrNoGoodAddresses

// isRefusal tells a decision, which repeats, from a failure of the link.
func isRefusal(err error) bool {
	var r *hello.Refusal
	return errors.As(err, &r) || errors.Is(err, ErrHandshake) || errors.Is(err, ErrRefusedByPeer) || errors.Is(err, ErrDropped) || errors.Is(err, ErrNotAdmitted)
}

// dropped is why p is refused if this node dropped it: such a peer is refused when it comes
// back, others may have been corrected.
func (h *Host) dropped(p peer.ID) error {
	if err := h.refusals.Get(p); errors.Is(err, ErrDropped) {
		return err
	}
	return nil
}

// Drop closes the connections to a peer and refuses it for a while, with the
// reason. It is for peers that broke the protocol.
func (h *Host) Drop(id wire.PeerID, reason string) {
	pid := pidOf(id)
	h.refusals.Put(pid, fmt.Errorf("%w: %s", ErrDropped, reason), droppedMemory)
	h.disconnect(pid)
}
