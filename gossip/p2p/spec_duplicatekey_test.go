package p2p

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"atoll/gossip/hello"
	"atoll/gossip/wire/spectest"
)

// oldConn is a connection to a process that may have hung.
type oldConn struct {
	network.Conn
	peer   peer.ID
	lives  bool
	wrote  bytes.Buffer
	closed bool
}

func (c *oldConn) RemotePeer() peer.ID { return c.peer }
func (c *oldConn) Close() error        { c.closed = true; return nil }

func (c *oldConn) NewStream(context.Context) (network.Stream, error) {
	return &oldStream{conn: c}, nil
}

type oldStream struct {
	network.Stream
	conn     *oldConn
	deadline time.Time
}

func (s *oldStream) SetDeadline(at time.Time) error { s.deadline = at; return nil }
func (s *oldStream) Write(b []byte) (int, error)    { return s.conn.wrote.Write(b) }
func (s *oldStream) Reset() error                   { return nil }
func (s *oldStream) Read(b []byte) (int, error) {
	if s.conn.lives {
		time.Sleep(time.Until(s.deadline) - time.Millisecond)
		return 1, nil
	}
	time.Sleep(time.Until(s.deadline))
	return 0, io.ErrNoProgress
}

// shakesAgain has a host judge the handshake of a process, where another one with
// its key had one on old.
func shakesAgain(t *testing.T, old *oldConn, startedMs int64) (took time.Duration, err error) {
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		a := w.host(newPerson(1).config())
		pid := pidOf(newPersonID(2))
		old.peer = pid
		c := &oldConn{peer: pid}
		a.peers.add(old)
		a.peers.add(c)
		a.peers.links[pid].conns[old] = 1000
		began := time.Now()
		err = a.duplicateKey(c, hello.Record{StartedMs: startedMs})
		took = time.Since(began)
		a.peers.remove(old, func(*link) {})
		a.peers.remove(c, func(*link) {})
	})
	return took, err
}

func specDuplicateKeyAsked(t *testing.T, s *spectest.Spec) {
	old := &oldConn{}
	if took, _ := shakesAgain(t, old, 2000); took != ms(t, s, "duplicate key") {
		t.Errorf("waits %v", took)
	}
	if old.wrote.String() != "\x13/multistream/1.0.0\n" {
		t.Errorf("says %q", old.wrote.String())
	}
	old = &oldConn{}
	if took, err := shakesAgain(t, old, 1000); err != nil || took != 0 || old.wrote.Len() > 0 {
		t.Errorf("asks the process that it is: %v, %q", err, old.wrote.String())
	}
	inPair(t, rate, func(t *testing.T, a, _ *Host) {
		if err := a.answers(a.host.Network().Conns()[0]); err != nil {
			t.Errorf("a node at work does not answer: %v", err)
		}
	})
}

func specDuplicateKeyRefused(t *testing.T, _ *spectest.Spec) {
	old := &oldConn{lives: true}
	if _, err := shakesAgain(t, old, 2000); err == nil || !strings.HasPrefix(string(verdict(err)), "duplicate key:") || old.closed {
		t.Errorf("%v, closed %v", err, old.closed)
	}
	inWorld(t, rate, delay, func(t *testing.T, w *world) {
		a, first, second := w.host(newPerson(1).config()), w.host(newPerson(2).config()), w.host(later(2))
		join(t, first, a)
		if _, err := second.Dial(t.Context(), a.Addrs()[0]); !errors.Is(err, ErrDuplicateKey) {
			t.Errorf("the later process: %v", err)
		}
		time.Sleep(5 * time.Second)
		if len(second.host.Network().Conns()) != 0 || len(first.Connected()) != 1 || count[PeerDown](drain(a)) != 0 {
			t.Error("the later process stays, or the older one does not")
		}
	})
}

func TestOlderConnectionThatDoesNotAnswerIsClosed(t *testing.T) {
	old := &oldConn{}
	if _, err := shakesAgain(t, old, 2000); err != nil || !old.closed {
		t.Errorf("%v, closed %v", err, old.closed)
	}
}

func TestProbeClosesWhatDoesNotAnswer(t *testing.T) {
	for name, mute := range map[string]bool{"takes part": false, "does not": true} {
		inPair(t, rate, func(t *testing.T, a, b *Host) {
			began := time.Now()
			if mute {
				b.host.SetStreamHandler(helloProtocol, func(st network.Stream) { _, _ = io.Copy(io.Discard, st) })
			}
			a.Probe()
			for len(a.Connected()) > 0 && time.Since(began) < 2*probeTimeout {
				time.Sleep(50 * time.Millisecond)
			}
			took := time.Since(began)
			if gone := len(a.Connected()) == 0; gone != mute || mute && (took < probeTimeout || took > probeTimeout+time.Second) {
				t.Errorf("a peer that %s: gone %v after %v", name, gone, took)
			}
		})
	}
}
