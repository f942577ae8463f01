package p2p

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/protocol"

	"atoll/gossip/wire"
)

// clockProtocol carries a node's time: it answers a stream with eight bytes, its unix
// milliseconds.
const clockProtocol = protocol.ID("/atoll/clock/1")

func serveClock(s network.Stream) {
	defer s.Close()
	if s.SetDeadline(time.Now().Add(probeTimeout)) == nil {
		_, _ = s.Write(binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli())))
	}
}

// ClockAhead asks a connected peer for its time. It returns by how much the clock of this machine
// is ahead of the peer's, within half of the round trip that took; negative if it is behind.
func (h *Host) ClockAhead(ctx context.Context, id wire.PeerID) (ahead, within time.Duration, err error) {
	p := pidOf(id)
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "clock"), probeTimeout)
	defer cancel()
	began := time.Now()
	s, err := h.host.NewStream(ctx, p, clockProtocol)
	if err != nil {
		return 0, 0, fmt.Errorf("ask %v for its time: %w", id, oneLine{err})
	}
	defer s.Close()
	if err := s.SetDeadline(began.Add(probeTimeout)); err != nil {
		return 0, 0, err
	}
	var answer [8]byte
	if _, err := io.ReadFull(s, answer[:]); err != nil {
		return 0, 0, fmt.Errorf("ask %v for its time: %w", id, err)
	}
	within = time.Since(began) / 2
	theirs := time.UnixMilli(int64(binary.BigEndian.Uint64(answer[:])))
	return began.Add(within).Sub(theirs), within, nil
}
