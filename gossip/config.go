package gossip

import (
	"crypto/ed25519"
	"fmt"

	"atoll/gossip/effect"
	"atoll/gossip/hello"
	"atoll/gossip/limit"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Time is milliseconds since any origin. It never goes back.
type Time = effect.Time

// Config is what a Core is made from. Zero fields marked with a default get it.
type Config struct {
	Self        wire.PeerID
	Key         ed25519.PrivateKey // signs heartbeats
	Run         wire.RunID
	Incarnation int64         // process start, unix ms: a later one replaces an earlier
	Trusted     []wire.PeerID // peers named in the join link
	Members     *member.Table // who is admitted to the run; nil where everybody is

	HeartbeatMinMs int64  // shortest heartbeat period; default 500, test profiles use less
	WayMs          int64  // first guess of the way to a peer; 0 for none
	WindowAccept   uint32 // W_a: rounds behind closed that gossip still brings; default 16
	WindowUnion    uint32 // W_u, the union window: rounds behind closed that repair reconciles; default 256
	MaxPayload     uint32 // bytes of the largest payload of the run; default wire.MaxPayload
	MaxTip         uint64 // bytes of the largest tip of the run, as manifests count; default what the wire allows
	SnapshotBytes  uint64 // bytes of a snapshot of the run, which its source hashes for a manifest; 0 for next to none
	SweepMs        int64  // what links take for the deltas of all fragments of all other learners, as the run was made; 0 if that is short
	TargetPeers    int    // connections that the peer list dials for; default 12

	// Limiter is told what the run is like: the network side asks it which messages are passed
	// on. nil where all are.
	Limiter limit.Told

	// DownMs is what this node may receive, in bytes per ms; 0 is no limit. The network
	// side keeps it. The core asks for no more than that carries soon.
	DownMs float64

	// Common is what Chains.Common said in an earlier process; nil for nothing.
	Common []uint32

	// HasChunk reports whether a chunk of a snapshot is stored from an
	// earlier attempt; nil means that none is.
	HasChunk func(wire.Digest) bool
	// Unpack returns the chunk of so many bytes that was packed, or why those are no packed chunk: what
	// is in a chunk is not this package's business. Only a core that takes a snapshot needs it.
	Unpack func(packed []byte, size int) ([]byte, error)
	// Resume are the rounds of the snapshot that such chunks belong to, as Fetching
	// named them; nil if there are none.
	Resume []uint32

	// VerifyHeader checks the signature of a header, OpenRecord the signature of a
	// capability record; nil means SignedHeader.Verify and Signed.Open. In a simulator
	// thousands of nodes check the same bytes, so it keeps the results.
	VerifyHeader func(wire.SignedHeader) error
	OpenRecord   func(hello.Signed) (*hello.Record, error)
}

// Validate reports the first field that makes no sense, by name.
func (c Config) Validate() error {
	switch {
	case len(c.Key) != ed25519.PrivateKeySize:
		return fmt.Errorf("gossip config: Key has %d bytes, want an ed25519 private key of %d", len(c.Key), ed25519.PrivateKeySize)
	case wire.PeerIDOf(c.Key) != c.Self:
		return fmt.Errorf("gossip config: Self is %v, but Key belongs to %v", c.Self, wire.PeerIDOf(c.Key))
	case c.HeartbeatMinMs < 0:
		return fmt.Errorf("gossip config: HeartbeatMinMs is %d, want at least 0 (0 means %d)", c.HeartbeatMinMs, defaultHeartbeatMinMs)
	case !(c.DownMs >= 0): // or NaN
		return fmt.Errorf("gossip config: DownMs is %v, want a rate in bytes per ms, or 0 for no limit", c.DownMs)
	case c.TargetPeers < 0:
		return fmt.Errorf("gossip config: TargetPeers is %d, want at least 0 (0 means %d)", c.TargetPeers, peers.DefaultTarget)
	}
	return nil
}

func (c Config) withDefaults() Config {
	if c.HeartbeatMinMs == 0 {
		c.HeartbeatMinMs = defaultHeartbeatMinMs
	}
	if c.WindowAccept == 0 {
		c.WindowAccept = 16
	}
	if c.WindowUnion == 0 {
		c.WindowUnion = 256
	}
	if c.MaxPayload == 0 {
		c.MaxPayload = wire.MaxPayload
	}
	if c.MaxTip == 0 {
		c.MaxTip = wire.MaxChunks * wire.ChunkSize
	}
	if c.TargetPeers == 0 {
		c.TargetPeers = peers.DefaultTarget
	}
	if c.HasChunk == nil {
		c.HasChunk = func(wire.Digest) bool { return false }
	}
	if c.VerifyHeader == nil {
		c.VerifyHeader = func(h wire.SignedHeader) error { return h.Verify(c.Run) }
	}
	if c.OpenRecord == nil {
		c.OpenRecord = openRecord
	}
	return c
}

// openRecord is Signed.Open.
func openRecord(s hello.Signed) (*hello.Record, error) {
	record, err := s.Open()
	return &record, err
}

// Limits are what the limiter of the same node goes by, for Config.Limiter.
func (c Config) Limits() limit.Config {
	c = c.withDefaults()
	return limit.Config{Self: c.Self, Trusted: c.Trusted, Members: c.Members, HeartbeatMinMs: c.HeartbeatMinMs, WindowAccept: c.WindowAccept}
}

// SelfState is what the next heartbeat says about this node.
type SelfState = peers.SelfState

// Chain is what the core may ask about the rounds that this node holds. It is
// answered at once, without I/O, and does not change during a call into the
// core.
type Chain interface {
	Fragments() int
	// Closed is the last closed round of fragment f, 0 for genesis.
	Closed(f int) uint32
	// Base is the oldest round of f whose tip this node could refold from.
	Base(f int) uint32
	// Bases are the rounds of f whose tips this node keeps, ascending.
	Bases(f int) []uint32
	// ChainDigest and StateDigest are known for the closed rounds of this
	// node's history, round 0 included; a node that took a snapshot knows
	// nothing older.
	ChainDigest(f int, r uint32) (wire.Digest, bool)
	StateDigest(f int, r uint32) (wire.Digest, bool)
	// SetDigest is wire.SetDigest of the deltas held for the round (header and
	// payload); an equivocation proof must change it.
	SetDigest(f int, r uint32) (wire.Digest, bool)
	// Signed returns the headers held for the round, both of a pair that is
	// an equivocation proof, in any fixed order.
	Signed(f int, r uint32) []wire.SignedHeader
	// SignedBy is Signed for one author.
	SignedBy(f int, r uint32, author wire.PeerID) []wire.SignedHeader
	// Newest returns the header of an author's highest round, one for each fragment in
	// which it knows any.
	Newest(author wire.PeerID) []wire.SignedHeader
	// Contributed reports whether a delta of an author was folded on the chain of
	// this node.
	Contributed(author wire.PeerID) bool
	// Has reports whether the payload of a delta is verified and held.
	Has(id wire.Digest) bool
	// FoldedTokens counts the tokens folded by this node's tips.
	FoldedTokens() uint64
	// TokensAt counts the tokens of its chain up to the given rounds, one for each
	// fragment, folded or about to be. It knows nothing of rounds that it has not
	// closed, or that are older than its history.
	TokensAt(rounds []uint32) (tokens uint64, known bool)
}
