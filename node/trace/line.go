package trace

import (
	"atoll/gossip/wire"
)

// Line is the life of one delta at one node. In JSON the fields of its parts are
// its own.
type Line struct {
	Delta wire.Digest `json:"delta"`
	Node  wire.PeerID `json:"node"`
	What
	Times
	How
}

// What a delta is, by its header.
type What struct {
	Author   wire.PeerID `json:"author"`
	Fragment int         `json:"fragment"`
	Round    uint32      `json:"round"`
	Size     int         `json:"size"` // bytes of its payload
	Steps    uint32      `json:"steps"`
	Tokens   uint64      `json:"tokens"`
}

// Times are Unix milliseconds by the clock of the node, 0 for what did not happen
// here. Drafted and announced are known to the author alone, reached and begun to the
// giver; Merge copies them to the lines of others.
type Times struct {
	Drafted   int64 `json:"drafted,omitempty"`    // the author's learner gives a copy of its progress
	Announced int64 `json:"announced,omitempty"`  // it is durable, and its header leaves
	Heard     int64 `json:"heard,omitempty"`      // its header is here
	Asked     int64 `json:"asked,omitempty"`      // the first request for its payload
	Requested int64 `json:"requested,omitempty"`  // the request that brought it
	Reached   int64 `json:"reached,omitempty"`    // that request is at the giver
	Begun     int64 `json:"begun,omitempty"`      // the giver has the payload, and room to give it
	FirstByte int64 `json:"first_byte,omitempty"` // of the payload
	LastByte  int64 `json:"last_byte,omitempty"`
	Verified  int64 `json:"verified,omitempty"` // it decodes and is stored
	Held      int64 `json:"held,omitempty"`     // it is in the set of its round
	Closed    int64 `json:"closed,omitempty"`   // its round closed; before Held where it came late
	Folded    int64 `json:"folded,omitempty"`   // the fold that has it is done
	Adopted   int64 `json:"adopted,omitempty"`  // the learner stands on that fold
}

// How a delta came and ended.
type How struct {
	Brought  wire.PeerID `json:"brought,omitzero"` // who brought the header
	Gave     wire.PeerID `json:"gave,omitzero"`    // who gave the payload
	Inline   bool        `json:"inline,omitempty"` // the payload came with the header
	Requests int         `json:"requests,omitempty"`
	Busy     int         `json:"busy,omitempty"`   // requests that were answered: busy
	Failed   int         `json:"failed,omitempty"` // requests that brought nothing else
	Again    int         `json:"again,omitempty"`  // requests that brought it once more
	Failures []Failure   `json:"failures,omitempty"`
	Late     bool        `json:"late,omitempty"` // held after its round had closed here
	End      End         `json:"end"`
}

// Failure is a request that brought nothing, or busy.
type Failure struct {
	Of    wire.PeerID `json:"of"`
	Asked int64       `json:"asked"`
	Ended int64       `json:"ended"`
	Why   string      `json:"why"`
}

// Served is what a giver knows of a payload that it gave.
type Served struct {
	Delta   wire.Digest `json:"delta"`
	Node    wire.PeerID `json:"node"` // the giver
	To      wire.PeerID `json:"to"`
	Reached int64       `json:"reached"`
	Begun   int64       `json:"begun"`
}

// Close is a round that closed at a node.
type Close struct {
	Node     wire.PeerID `json:"node"`
	Fragment int         `json:"fragment"`
	Round    uint32      `json:"round"`
	At       int64       `json:"at"`
	Why      string      `json:"why"`                // a word of the table closes of gossip/wire/SPEC.md
	For      wire.PeerID `json:"for,omitzero"`       // whose delta it waited for in vain
	WaitedMs int64       `json:"waited_ms,omitzero"` // since it was proposed
}

// End is what became of a delta at a node.
type End string

// The ends.
const (
	Open      End = "open"      // the node ended before anything else
	Adopted   End = "adopted"   // it is in the model here
	Missed    End = "missed"    // its round became final without it
	Refused   End = "refused"   // it breaks the rules of the run
	Installed End = "installed" // a snapshot stands past its round
	Returned  End = "returned"  // an own one: its work is unpublished again
	Discarded End = "discarded" // an own one: its work is lost
)

// Own says that the line is the author's.
func (l Line) Own() bool { return l.Node == l.Author }
