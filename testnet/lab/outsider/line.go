package outsider

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"time"

	pubsub "github.com/libp2p/go-libp2p-pubsub/pb"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	"github.com/libp2p/go-libp2p/core/sec"
	"github.com/libp2p/go-libp2p/core/transport"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	upgrade "github.com/libp2p/go-libp2p/p2p/net/upgrader"
	identify "github.com/libp2p/go-libp2p/p2p/protocol/identify/pb"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-msgio/pbio"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/multiformats/go-multistream"

	"atoll/gossip/wire"
)

// outsiderIP is where the outsider dials from. Nodes bound what one address may do, and theirs is another one.
const outsiderIP = "127.0.0.66"

// Protocols that the outsider speaks itself. It learns the others from what nodes announce.
const (
	helloProtocol    = protocol.ID("/atoll/hello/1")
	gossipProtocol   = protocol.ID("/meshsub/1.2.0")
	identifyProtocol = protocol.ID("/ipfs/id/1.0.0")
	pushProtocol     = protocol.ID("/ipfs/id/push/1.0.0")
)

// Times and sizes of a conversation.
const (
	dialWithin   = 5 * time.Second
	talkWithin   = 5 * time.Second  // an answer on a stream: nodes are near
	lineHeld     = 12 * time.Second // longer than a node waits for a handshake
	maxAnswer    = 64 << 10
	maxProtocol  = 1 << 10
	maxProtocols = 64
)

// target is a node, as the outsider dials it.
type target struct {
	id      peer.ID
	address string // host:port
}

// targetOf reads a node's address, which ends in its id.
func targetOf(addr string) (t target, err error) {
	a, err := ma.NewMultiaddr(addr)
	if err != nil {
		return t, fmt.Errorf("address %q: %w", addr, err)
	}
	info, err := peer.AddrInfoFromP2pAddr(a)
	if err != nil || len(info.Addrs) != 1 {
		return t, fmt.Errorf("address %q: want one that ends in /p2p/ID: %v", addr, err)
	}
	_, t.address, err = manet.DialArgs(info.Addrs[0])
	t.id = info.ID
	return t, err
}

// socket connects to a node and says nothing.
func socket(ctx context.Context, t target) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(outsiderIP)}}
	return d.DialContext(ctx, "tcp", t.address)
}

// line is an encrypted connection to a node. Nothing has been said on it yet.
type line struct {
	transport.CapableConn
	key   ed25519.PrivateKey
	addrs []string // where the node is told that the outsider listens
	ended chan struct{}
}

// call connects to a node under a key. The line ends with ctx, or when the node ends it.
func call(ctx context.Context, t target, key ed25519.PrivateKey, addrs ...string) (*line, error) {
	raw, err := socket(ctx, t)
	if err != nil {
		return nil, err
	}
	c, err := encrypt(ctx, raw, t, key)
	if err != nil {
		raw.Close()
		return nil, err
	}
	l := &line{CapableConn: c, key: key, addrs: addrs, ended: make(chan struct{})}
	context.AfterFunc(ctx, func() { c.Close() })
	go l.serve()
	return l, nil
}

// encrypt makes a connection of a socket as libp2p does.
func encrypt(ctx context.Context, raw net.Conn, t target, key ed25519.PrivateKey) (transport.CapableConn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialWithin)
	defer cancel()
	k, err := crypto.UnmarshalEd25519PrivateKey(key)
	if err != nil {
		return nil, err
	}
	muxers := []upgrade.StreamMuxer{{ID: yamux.ID, Muxer: yamux.DefaultTransport}}
	secure, err := noise.New(noise.ID, k, muxers)
	if err != nil {
		return nil, err
	}
	up, err := upgrade.New([]sec.SecureTransport{secure}, muxers, nil, nil, nil)
	if err != nil {
		return nil, err
	}
	conn, err := manet.WrapNetConn(raw)
	if err != nil {
		return nil, err
	}
	return up.Upgrade(ctx, nil, conn, network.DirOutbound, t.id, &network.NullScope{})
}

// serve takes the streams that the node opens, and says where the outsider claims to listen.
func (l *line) serve() {
	defer close(l.ended)
	for {
		s, err := l.AcceptStream()
		if err != nil {
			return
		}
		go func() {
			if err := l.answer(s); err != nil {
				s.Reset()
			}
		}()
	}
}

// answer answers identify and refuses all else.
func (l *line) answer(s network.MuxedStream) error {
	if err := s.SetDeadline(time.Now().Add(talkWithin)); err != nil {
		return err
	}
	m := multistream.NewMultistreamMuxer[protocol.ID]()
	m.AddHandler(identifyProtocol, nil)
	if _, _, err := m.Negotiate(s); err != nil {
		return err
	}
	if _, err := s.Write(l.identity()); err != nil {
		return err
	}
	return s.Close()
}

// identity is what libp2p tells peers of itself, with a length before it.
func (l *line) identity() []byte {
	version, agent := "atoll/1", "atoll/outsider"
	m := identify.Identify{ProtocolVersion: &version, AgentVersion: &agent, Protocols: []string{string(helloProtocol), string(gossipProtocol)}}
	for _, addr := range l.addrs {
		if a, err := ma.NewMultiaddr(addr); err == nil {
			m.ListenAddrs = append(m.ListenAddrs, a.Bytes())
		}
	}
	return delimited(func(w pbio.Writer) error { return w.WriteMsg(&m) })
}

// open opens a stream of a protocol, and waits until the node has agreed to it.
func (l *line) open(ctx context.Context, id protocol.ID) (network.MuxedStream, error) {
	s, err := l.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	err = s.SetDeadline(time.Now().Add(talkWithin))
	if err == nil {
		err = multistream.SelectProtoOrFail(id, s)
	}
	if err != nil {
		s.Reset()
		return nil, err
	}
	return s, nil
}

// halfOpen opens a stream and does not wait: the node reads the name of a protocol, none for "", and what follows.
func (l *line) halfOpen(ctx context.Context, id protocol.ID, then []byte) (network.MuxedStream, error) {
	s, err := l.OpenStream(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.SetDeadline(time.Now().Add(lineHeld)); err != nil {
		return nil, err
	}
	said := named("/multistream/1.0.0")
	if id != "" {
		said = append(append(said, named(string(id))...), then...)
	}
	if _, err := s.Write(said); err != nil {
		s.Reset()
		return nil, err
	}
	return s, nil
}

// named is a name as protocols are negotiated: its length, itself and a newline.
func named(name string) []byte {
	return append(binary.AppendUvarint(nil, uint64(len(name)+1)), name+"\n"...)
}

// protocols are those that the node announces.
func (l *line) protocols(ctx context.Context) (ids []protocol.ID, err error) {
	s, err := l.open(ctx, identifyProtocol)
	if err != nil {
		return nil, err
	}
	defer s.Reset()
	// Identify comes as several messages.
	for r := pbio.NewDelimitedReader(s, maxAnswer); ; {
		var m identify.Identify
		if err := r.ReadMsg(&m); errors.Is(err, io.EOF) {
			return ids, nil
		} else if err != nil {
			return nil, err
		}
		for _, name := range m.Protocols {
			if len(ids) < maxProtocols && len(name) <= maxProtocol {
				ids = append(ids, protocol.ID(name))
			}
		}
	}
}

// hello shows a record, and returns why the node refuses it; "" if it accepts it.
func (l *line) hello(ctx context.Context, record []byte) (verdict string, err error) {
	s, err := l.open(ctx, helloProtocol)
	if err != nil {
		return "", err
	}
	defer s.Close()
	if err := wire.WriteFrame(s, record, maxAnswer); err != nil {
		return "", err
	}
	if _, err := wire.ReadFrame(s, maxAnswer); err != nil { // the node's record
		return "", err
	}
	if err := wire.WriteFrame(s, nil, maxAnswer); err != nil { // it is accepted here
		return "", err
	}
	b, err := wire.ReadFrame(s, maxAnswer)
	return string(b), err
}

// wait waits until the line has ended, or for so long.
func (l *line) wait(ctx context.Context, most time.Duration) {
	select {
	case <-l.ended:
	case <-time.After(most):
	case <-ctx.Done():
	}
}

// publication is what a gossip stream carries: a subscription to the topic, and messages.
func publication(topic string, messages ...[]byte) []byte {
	subscribed := true
	rpc := pubsub.RPC{Subscriptions: []*pubsub.RPC_SubOpts{{Subscribe: &subscribed, Topicid: &topic}}}
	for _, data := range messages {
		rpc.Publish = append(rpc.Publish, &pubsub.Message{Data: data, Topic: &topic})
	}
	return delimited(func(w pbio.Writer) error { return w.WriteMsg(&rpc) })
}

// delimited is a message with its length before it.
func delimited(write func(pbio.Writer) error) []byte {
	var b bytes.Buffer
	if err := write(pbio.NewDelimitedWriter(&b)); err != nil {
		panic("outsider: " + err.Error()) // a mistake of who made the message
	}
	return b.Bytes()
}
