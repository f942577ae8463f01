package p2p

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/libp2p/go-libp2p/core/network"

	"atoll/gossip/hello"
)

// ErrDuplicateKey: a peer is connected to another process that runs with this node's
// key. Two of them would be one node to everybody: messages for one go to the
// other, and both sign for the same rounds.
var ErrDuplicateKey = errors.New("another process runs with this node's key")

// duplicateKeyVerdict begins the verdict for a process whose key is at work already.
// Peers of every version read it, so it stays as it is.
const duplicateKeyVerdict = "duplicate key: "

// duplicateKeyTimeout is what the older process gets to show that it lives: two round
// trips over a bad link, and well within the newcomer's helloTimeout.
const duplicateKeyTimeout = 3 * time.Second

// duplicateKeyError refuses one connection, not the peer.
type duplicateKeyError struct{ started time.Time }

func (e *duplicateKeyError) Error() string {
	return duplicateKeyVerdict + "its key is at work since " + e.started.UTC().Format(time.DateTime) + " UTC"
}

// refusedAs is the error that a verdict of the peer stands for.
func refusedAs(verdict []byte) error {
	text := printable(verdict)
	if strings.HasPrefix(text, duplicateKeyVerdict) {
		return fmt.Errorf("%w: %w: %s", ErrRefusedByPeer, ErrDuplicateKey, text)
	}
	if why, is := strings.CutPrefix(text, ErrNotAdmitted.Error()+": "); is {
		return fmt.Errorf("%w: %w: %s", ErrRefusedByPeer, ErrNotAdmitted, why)
	}
	return fmt.Errorf("%w: %s", ErrRefusedByPeer, text)
}

// older are the connections to the peer of c whose handshake came from a
// process with another start.
func (ps *peers) older(c network.Conn, startedMs int64) map[network.Conn]int64 {
	ps.mu.Lock()
	defer ps.mu.Unlock()
	older := map[network.Conn]int64{}
	if l := ps.links[c.RemotePeer()]; l != nil {
		for other, started := range l.conns {
			if other != c && started != 0 && started != startedMs {
				older[other] = started
			}
		}
	}
	return older
}

// duplicateKey refuses the process at the other end of c while another process
// with its key answers. A connection that does not answer is what a crash left
// behind: it is closed.
func (h *Host) duplicateKey(c network.Conn, r hello.Record) error {
	for old, started := range h.peers.older(c, r.StartedMs) {
		if err := h.answers(old); err == nil {
			return &duplicateKeyError{time.UnixMilli(started)}
		}
		old.Close()
	}
	return nil
}

// negotiation is how every libp2p stream begins, in both directions.
const negotiation = "\x13/multistream/1.0.0\n"

// answers makes sure that a process lives at the other end of a connection.
func (h *Host) answers(c network.Conn) error {
	ctx, cancel := context.WithTimeout(h.ctx, duplicateKeyTimeout)
	defer cancel()
	s, err := c.NewStream(ctx)
	if err != nil {
		return err
	}
	defer s.Reset()
	if err := s.SetDeadline(time.Now().Add(duplicateKeyTimeout)); err != nil {
		return err
	}
	if _, err := s.Write([]byte(negotiation)); err != nil {
		return err
	}
	_, err = s.Read(make([]byte, 1))
	return err
}
