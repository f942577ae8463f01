package p2p

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"net"

	ma "github.com/multiformats/go-multiaddr"

	"atoll/gossip/hello"
	"atoll/gossip/wire"
)

// Profiles: what kind of network the node lives in.
const (
	// Local is this machine only: loopback, TCP, no attempt to be reachable.
	Local = "local"
	// LAN is a network whose nodes reach each other directly.
	LAN = "lan"
	// WAN is the internet: port mapping, hole punching, and relays (any peer
	// that is publicly reachable) to arrange it.
	WAN = "wan"
)

// Config is what a Host is made from. Key, Run, Record and Check are required.
type Config struct {
	// Key is the node's identity; its public half is its wire.PeerID.
	Key ed25519.PrivateKey
	// Run names the run; peers of another one are refused by the handshake, and
	// the gossip topic is its own.
	Run wire.RunID
	// Listen has the multiaddrs to listen on, like /ip4/0.0.0.0/tcp/4001 or
	// /ip4/0.0.0.0/udp/4001/quic-v1; port 0 takes any free one. Empty takes the
	// profile's: a free TCP port, and except in Local a UDP port for QUIC. In WAN
	// both are DefaultPort where that is free, for IPv4 and IPv6.
	Listen []string
	// Port is what DefaultPort is instead where Listen is empty; 0 leaves it. WAN only.
	Port int
	// Web listens on port 443 as well, for TCP and WebSocket: some networks let nothing else
	// out. The system must let the process have that port. WAN only.
	Web bool
	// Profile is Local, LAN or WAN; empty is LAN.
	Profile string
	// Record returns this node's signed capability record, the newest. It is
	// called on goroutines of the host.
	Record func() hello.Signed
	// Near returns the record for peers on this node's own network, which has the addresses
	// there; nil if Record is for all.
	Near func() hello.Signed
	// Check decodes a gossip message that a peer brings, or this node makes, and
	// verifies its limits and signatures. It does no I/O and returns soon: it runs in gossip's own workers, several at
	// once. A message that it refuses is not passed on, and counts against the
	// peer that sent it, unless the error is a *member.Stranger or limit.ErrHeldBack.
	Check func(from wire.PeerID, raw []byte) error
	// Spares returns limit.ErrHeldBack for a message that Check would hold back whatever its signature is. It is
	// asked about the messages of a peer that brings many of them, in gossip's one loop. nil is no such message.
	Spares func(from wire.PeerID, raw []byte) error
	// Inbox is the number of events that may wait; 0 takes the default. When it
	// is full, gossip messages are dropped and counted, and news of who else has one
	// already when it is half full.
	Inbox int
	// UploadBytesPerSecond and DownloadBytesPerSecond limit what this node sends and
	// receives, over all peers. 0 is no limit. Only requests and their answers wait.
	// Gossip and handshakes do not, and count: answers get what these leave.
	UploadBytesPerSecond, DownloadBytesPerSecond int64
	// Public says that others reach this node by themselves, as its owner knows. Otherwise
	// it finds out, and relays for nobody before. WAN only.
	Public bool
	// Trial makes a host that finds out how others reach it and takes part in nothing: it
	// relays for nobody, is in no DHT, and can ask for a DialBack. WAN only.
	Trial bool
	// SegmentBytes bounds the segments of TCP in place of the constant of this name, to find out what a path passes; 0 leaves it.
	SegmentBytes int
	// NoMDNS keeps this node from announcing itself by multicast on its own network, and from
	// listening to others there. Local never does.
	NoMDNS bool
	// Records is what the host keeps for the DHT; nil gives it some of its own. WAN only.
	Records *Records
	// RelayBytesPerSecond limits what this node passes on between other nodes that cannot
	// reach each other, over all of them; 0 takes the default. WAN only.
	RelayBytesPerSecond int64
	// OnConn puts something between the socket of every TCP connection and what secures it;
	// nil is nothing. What it needs done beside is run, until the connection is closed. QUIC,
	// which Local does not listen on, has none.
	OnConn func(net.Conn) (on net.Conn, run func())
	// Admit says why a peer may not take part in the run, by its capability record; nil admits
	// everybody. Both sides show the error. It is called by several goroutines.
	Admit func(hello.Record) error
	// Agent is the program and version that peers see; empty is "atoll/dev".
	Agent string
	// Log receives what an operator may want to see; nil discards it.
	Log *slog.Logger
}

// withDefaults fills in what may be left empty.
func (c Config) withDefaults() Config {
	if c.Profile == "" {
		c.Profile = LAN
	}
	if len(c.Listen) == 0 {
		c.Listen = defaultListen(c.Profile)
	}
	if c.Inbox == 0 {
		c.Inbox = defaultInbox
	}
	if c.RelayBytesPerSecond == 0 {
		c.RelayBytesPerSecond = defaultRelayRate
	}
	if c.Port == 0 {
		c.Port = DefaultPort
	}
	if c.Agent == "" {
		c.Agent = "atoll/dev"
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

func defaultListen(profile string) []string {
	switch profile {
	case WAN:
		return nil // see listenAnywhere
	case Local:
		return []string{"/ip4/127.0.0.1/tcp/0"}
	}
	return []string{"/ip4/0.0.0.0/tcp/0", "/ip4/0.0.0.0/udp/0/quic-v1"}
}

// validate names the first field that cannot work, and returns the parsed
// listen addresses.
func (c Config) validate() ([]ma.Multiaddr, error) {
	switch {
	case len(c.Key) != ed25519.PrivateKeySize:
		return nil, fmt.Errorf("config Key: %d bytes, want an ed25519 private key of %d", len(c.Key), ed25519.PrivateKeySize)
	case c.Record == nil:
		return nil, errors.New("config Record: nil, want a function that returns the signed capability record")
	case c.Check == nil:
		return nil, errors.New("config Check: nil, want a function that verifies a gossip message")
	case c.Profile != Local && c.Profile != LAN && c.Profile != WAN:
		return nil, fmt.Errorf("config Profile: %q, want %s, %s or %s", c.Profile, Local, LAN, WAN)
	case c.Port < 0 || c.Port > maxPort:
		return nil, fmt.Errorf("config Port: %d, want 1 to %d, or 0 for %d", c.Port, maxPort, DefaultPort)
	case c.Inbox < 0:
		return nil, fmt.Errorf("config Inbox: %d, want a number of events, or 0 for %d", c.Inbox, defaultInbox)
	case c.RelayBytesPerSecond < 0:
		return nil, fmt.Errorf("config RelayBytesPerSecond: %d, want a rate, or 0 for %d", c.RelayBytesPerSecond, defaultRelayRate)
	case c.UploadBytesPerSecond < 0:
		return nil, fmt.Errorf("config UploadBytesPerSecond: %d, want a rate, or 0 for no limit", c.UploadBytesPerSecond)
	case c.DownloadBytesPerSecond < 0:
		return nil, fmt.Errorf("config DownloadBytesPerSecond: %d, want a rate, or 0 for no limit", c.DownloadBytesPerSecond)
	}
	return parseListen(c.Listen)
}
