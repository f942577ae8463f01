package p2p

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"time"

	pb "github.com/libp2p/go-libp2p-kad-dht/pb"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-msgio/pbio"
	ma "github.com/multiformats/go-multiaddr"
	"github.com/multiformats/go-multistream"
)

// messenger asks peers of the DHT. Most of them are of other runs: a connection for the time of
// one question, beside the swarm, needs no handshake and takes nobody's slot. A peer that is
// connected anyway is asked over that connection.
type messenger struct{ h *Host }

// SendRequest implements pb.MessageSender.
func (m messenger) SendRequest(ctx context.Context, p peer.ID, request *pb.Message) (answer *pb.Message, err error) {
	err = m.talk(ctx, p, func(s network.MuxedStream) error {
		if err := pbio.NewDelimitedWriter(s).WriteMsg(request); err != nil {
			return err
		}
		answer = new(pb.Message)
		return pbio.NewDelimitedReader(s, maxDiscoveryMessage).ReadMsg(answer)
	})
	return answer, err
}

// SendMessage implements pb.MessageSender. It returns once the peer has read the message.
func (m messenger) SendMessage(ctx context.Context, p peer.ID, message *pb.Message) error {
	return m.talk(ctx, p, func(s network.MuxedStream) error {
		if err := pbio.NewDelimitedWriter(s).WriteMsg(message); err != nil {
			return err
		}
		if err := s.CloseWrite(); err != nil {
			return err
		}
		_, err := io.CopyN(io.Discard, s, 1)
		if err == io.EOF {
			return nil
		}
		return err
	})
}

// OnDisconnect implements pb.MessageSenderWithDisconnect: nothing is kept of a connection.
func (messenger) OnDisconnect(context.Context, peer.ID) {}

// talk opens a stream to p for one exchange.
func (m messenger) talk(ctx context.Context, p peer.ID, exchange func(network.MuxedStream) error) error {
	ctx, cancel := context.WithTimeout(ctx, discoveryTimeout)
	defer cancel()
	s, end, err := m.open(ctx, p)
	if err != nil {
		return err
	}
	defer end()
	if deadline, ok := ctx.Deadline(); ok {
		if err := s.SetDeadline(deadline); err != nil {
			return err
		}
	}
	return exchange(s)
}

// open opens a stream; end frees what it takes.
func (m messenger) open(ctx context.Context, p peer.ID) (s network.MuxedStream, end func(), err error) {
	if _, direct := m.h.conns(p); direct != nil {
		s, err := m.h.host.NewStream(network.WithNoDial(ctx, "DHT"), p, dhtProtocol)
		if err != nil {
			return nil, nil, err
		}
		return s, func() { s.Close() }, nil
	}
	c, err := m.h.connectBeside(ctx, p)
	if err != nil {
		return nil, nil, err
	}
	if s, err = openBeside(ctx, c, dhtProtocol); err != nil {
		c.Close()
		return nil, nil, err
	}
	book := m.h.host.Peerstore()
	book.UpdateAddrs(p, peerstore.TempAddrTTL, peerstore.RecentlyConnectedAddrTTL) // the DHT keeps them from there on
	if err := book.AddProtocols(p, dhtProtocol); err != nil {
		m.h.log.Debug("record a peer of the DHT", "peer", p, "err", err)
	}
	return s, func() { s.Close(); c.Close() }, nil
}

// connectBeside connects to p beside the swarm, at the first of its addresses that answers, in the order
// and with the pauses of other dials.
func (h *Host) connectBeside(ctx context.Context, p peer.ID) (transport.CapableConn, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ranked := tcpFirst(dialable(h.host.Peerstore().Addrs(p)))
	type outcome struct {
		c   transport.CapableConn
		err error
	}
	came := make(chan outcome)
	for _, a := range ranked {
		h.tasks.start(func() {
			select {
			case <-time.After(a.Delay):
			case <-ctx.Done():
			}
			c, err := h.dialBeside(ctx, p, a.Addr)
			select {
			case came <- outcome{c, err}:
			case <-ctx.Done():
				if c != nil {
					c.Close() // another one was first
				}
			}
		})
	}
	err := fmt.Errorf("ask %s: %w", p, errNoWay)
	for range ranked {
		select {
		case o := <-came:
			if o.err == nil {
				return o.c, nil
			}
			err = fmt.Errorf("ask %s: %w", p, oneLine{o.err})
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-h.ctx.Done():
			return nil, ErrClosed
		}
	}
	return nil, err
}

// dialable are at most maxMemberAddrs addresses that lead to a machine.
func dialable(addrs []ma.Multiaddr) (out []ma.Multiaddr) {
	for _, a := range addrs {
		if listenable(a) && len(out) < maxMemberAddrs {
			out = append(out, a)
		}
	}
	return out
}

// dialBeside connects to p at an address beside the swarm, which keeps one connection to a peer and
// hands it to whoever asks.
func (h *Host) dialBeside(ctx context.Context, p peer.ID, a ma.Multiaddr) (transport.CapableConn, error) {
	nw, ok := h.host.Network().(interface {
		TransportForDialing(ma.Multiaddr) transport.Transport
	})
	if !ok {
		return nil, fmt.Errorf("dial %s: the network has no transports", a)
	}
	t := nw.TransportForDialing(a)
	if t == nil || h.blocked.Has(p) {
		return nil, fmt.Errorf("dial %s: %w", a, errNoWay)
	}
	return t.Dial(ctx, a, p)
}

// openBeside opens a stream of a protocol on a connection beside the swarm.
func openBeside(ctx context.Context, c transport.CapableConn, id protocol.ID) (network.MuxedStream, error) {
	s, err := c.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	if deadline, ok := ctx.Deadline(); ok {
		err = s.SetDeadline(deadline)
	}
	if err == nil {
		err = multistream.SelectProtoOrFail(id, s)
	}
	if err != nil {
		s.Reset()
		return nil, err
	}
	return s, nil
}

// bounded hands on the messages of a stream whole, and none that is longer than
// maxDiscoveryMessage: the library would make room for 4 MiB because a stranger says so.
type bounded struct {
	network.Stream
	in   *bufio.Reader
	rest bytes.Reader
}

func (b *bounded) Read(p []byte) (int, error) {
	if b.rest.Len() == 0 {
		if err := b.fill(); err != nil {
			return 0, err
		}
	}
	return b.rest.Read(p)
}

// fill reads the next message with its length.
func (b *bounded) fill() error {
	if b.in == nil {
		b.in = bufio.NewReader(b.Stream)
	}
	size, err := binary.ReadUvarint(b.in)
	if err != nil {
		return err
	}
	if size > maxDiscoveryMessage {
		return fmt.Errorf("a message of %d bytes, at most %d", size, maxDiscoveryMessage)
	}
	message := binary.AppendUvarint(nil, size)
	n := len(message)
	message = append(message, make([]byte, size)...)
	if _, err := io.ReadFull(b.in, message[n:]); err == io.EOF {
		return io.ErrUnexpectedEOF // there was a length, so this is no end between messages
	} else if err != nil {
		return err
	}
	b.rest.Reset(message)
	return nil
}
