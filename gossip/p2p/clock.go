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
// milliseconds, and then with as much as it reads.
const clockProtocol = protocol.ID("/atoll/clock/1")

func serveClock(s network.Stream) {
	defer s.Close()
	if s.SetDeadline(time.Now().Add(echoTimeout)) == nil {
		_, _ = s.Write(binary.BigEndian.AppendUint64(nil, uint64(time.Now().UnixMilli())))
		_, _ = io.Copy(s, io.LimitReader(s, echoBytes))
	}
}

// echoBytes are some packets as large as they become, and a second of a thin uplink; echoTimeout is for both ways.
const (
	echoBytes   = 16 << 10
	echoTimeout = 10 * time.Second
)

// Echo has a connected peer send back what fills several large packets. An error says that they do not get through, where
// ClockAhead does.
func (h *Host) Echo(ctx context.Context, id wire.PeerID) error {
	ctx, cancel := context.WithTimeout(network.WithNoDial(ctx, "echo"), echoTimeout)
	defer cancel()
	s, err := h.host.NewStream(ctx, pidOf(id), clockProtocol)
	if err != nil {
		return fmt.Errorf("ask %v for an echo: %w", id, oneLine{err})
	}
	defer s.Reset()
	if err := s.SetDeadline(time.Now().Add(echoTimeout)); err != nil {
		return err
	}
	if _, err = s.Write(make([]byte, echoBytes)); err == nil {
		_, err = io.ReadFull(s, make([]byte, 8+echoBytes))
	}
	if err != nil {
		return fmt.Errorf("ask %v for an echo: %w", id, err)
	}
	return nil
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
