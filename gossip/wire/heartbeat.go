package wire

import (
	"crypto/ed25519"
	"fmt"
	"math"
)

// State is what a node is doing.
type State uint8

// States in the order in which a learner passes through them.
const (
	Joining   State = iota + 1 // fetching genesis and a snapshot
	Training                   // stepping
	Stopped                    // takes no steps: the budget is reached, or what is missing is made
	Observing                  // holds and serves state, never trains
	Leaving                    // going away in order; its last heartbeat
)

var stateNames = [...]string{"", "joining", "training", "stopped", "observing", "leaving"}

// String returns the state as the screen shows it.
func (s State) String() string {
	if s < Joining || s > Leaving {
		return fmt.Sprintf("state %d", uint8(s))
	}
	return stateNames[s]
}

// Heartbeat is what a node tells everyone every few seconds. Unpublished and Closed
// have an entry for each fragment. It travels as a map whose unknown keys are skipped, so
// that a later version can say more.
type Heartbeat struct {
	Author          PeerID   `cbor:"1,keyasint"`
	Incarnation     int64    `cbor:"2,keyasint"` // process start, unix ms: a later one replaces an earlier
	Seq             uint64   `cbor:"3,keyasint"` // counts the heartbeats of an incarnation
	State           State    `cbor:"4,keyasint"`
	Steps           uint64   `cbor:"5,keyasint"`  // inner steps since the learner's first start
	Tokens          uint64   `cbor:"6,keyasint"`  // tokens in those steps
	Unpublished     []uint64 `cbor:"7,keyasint"`  // tokens per fragment that are in no delta yet
	Closed          []uint32 `cbor:"8,keyasint"`  // last closed round per fragment
	Lag             uint8    `cbor:"9,keyasint"`  // Chain and StateDigest are at max(Closed-Lag, 0)
	Chain           Digest   `cbor:"10,keyasint"` // over the chain digests of all fragments
	StateDigest     Digest   `cbor:"11,keyasint"` // over the state digests of all fragments
	Capability      uint64   `cbor:"12,keyasint"` // sequence number of the newest capability record
	TokensPerSecond float64  `cbor:"13,keyasint"` // measured recently; 0 if it does not train
	Folded          uint64   `cbor:"14,keyasint"` // tokens folded, up to Closed
	Bits            float32  `cbor:"15,keyasint"` // last live bits per byte, or per token where tokens are no bytes; 0 if there is none
	PeriodMs        uint32   `cbor:"16,keyasint"` // its next heartbeat comes within this time
	Paused          bool     `cbor:"17,keyasint"` // takes no steps for now, by its owner's wish
	Upload          float64  `cbor:"18,keyasint"` // the most bytes per second that its uplink was seen to carry recently; 0 if unknown
	Plan            uint32   `cbor:"19,keyasint"` // inner steps that it plans for each delta; 0 for the run's H
	Full            bool     `cbor:"20,keyasint"` // its uplink carries no more than Upload: it was full
}

// Validate checks what holds in every run. Its error names the field.
func (b Heartbeat) Validate() error {
	switch {
	case b.Incarnation < 0:
		return invalid("incarnation", b.Incarnation, "unix milliseconds")
	case b.State < Joining || b.State > Leaving:
		return invalid("state", uint8(b.State), "in %d..%d", Joining, Leaving)
	case len(b.Closed) > MaxFragments:
		return invalid("closed", len(b.Closed), "at most %d fragments", MaxFragments)
	case len(b.Unpublished) != len(b.Closed):
		return invalid("unpublished", len(b.Unpublished), "as many entries as closed, %d", len(b.Closed))
	case b.Lag > MaxLag:
		return invalid("lag", b.Lag, "at most %d", MaxLag)
	case !amount(b.TokensPerSecond):
		return invalid("tokens per second", b.TokensPerSecond, "finite and not negative")
	case !amount(float64(b.Bits)):
		return invalid("bits", b.Bits, "finite and not negative")
	case b.PeriodMs < MinPeriodMs || b.PeriodMs > MaxPeriodMs:
		return invalid("period", b.PeriodMs, "in %d..%d ms", MinPeriodMs, MaxPeriodMs)
	case !amount(b.Upload) || b.Upload > MaxUpload:
		return invalid("upload", b.Upload, "in 0..%g bytes per second", float64(MaxUpload))
	case b.Plan > MaxPlan:
		return invalid("plan", b.Plan, "at most %d steps", MaxPlan)
	}
	return nil
}

// amount reports whether x is finite and not negative (nor minus zero, which
// would be a second encoding of nothing).
func amount(x float64) bool {
	return !math.IsNaN(x) && !math.IsInf(x, 0) && !math.Signbit(x)
}

// EncodeHeartbeat signs b, whose Author it sets to the name of key, and returns the
// gossip message. Receivers refuse a heartbeat that fails Validate.
func EncodeHeartbeat(key ed25519.PrivateKey, run RunID, b Heartbeat) []byte {
	b.Author = PeerIDOf(key)
	return seal([]byte{Version, byte(KindHeartbeat)}, key, domainHeartbeat, run, b)
}

// decodeHeartbeat decodes the body of a heartbeat: CBOR, then the signature over it.
func decodeHeartbeat(body []byte) (Heartbeat, error) {
	var b Heartbeat
	signed, _, err := cut(body)
	if err != nil {
		return Heartbeat{}, err
	}
	if err := UnmarshalOpen(signed, &b); err != nil {
		return Heartbeat{}, err
	}
	return b, b.Validate()
}
