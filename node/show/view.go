package show

import (
	"time"

	"atoll/gossip"
	"atoll/gossip/hello"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/genesis"
	"atoll/node/status"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// View is what a snapshot is made from: values, and views of the machine that change nothing.
type View struct {
	At, Started time.Time
	Now         core.Time // the same as At, by the machine's clock

	Version string // of the program
	Self    wire.PeerID
	Record  hello.Record // its own
	Name    string       // of its machine, "" if it has none
	Run     wire.RunID
	Genesis genesis.Genesis
	Layout  outer.Plan
	Link    string // that lets others in
	LetsIn  string // whom, or what it lacks
	Role    string
	Waits   string // what steps wait for
	Disk    string // what is wrong with it
	Members Members

	Machine core.View
	Rounds  Rounds
	Chains  gossip.Chains
	Peers   []Peer
	Screen  *Screen

	Finished, Rejoined bool
	Steps, Trained     uint64 // over all starts
	Learner            *Learner
	Quality            Quality
	Limits             status.Limits
	Data               *status.Data // nil where there are no shards
	Net                status.Net
	Upload             float64 // bytes per second, measured
	UploadFull         bool
	Process            status.Process
}

// Members says who is a guest, and who was revoked.
type Members interface {
	Guest(wire.PeerID) bool
	OutBy(wire.PeerID) (word string, out bool)
}

// Rounds are the views of a rounds.Machine.
type Rounds interface {
	Fragment(p int) rounds.View
	Plan() rounds.Plan
}

// Learner is what the training thread has done in this process; nil for an observer.
type Learner struct {
	Loss, Rate, PerSecond float64
	Time                  status.TimeAccount
}

// Quality is what the newest evaluation found.
type Quality struct {
	Loss, BitsPerByte float64
	Bytes, Tokens     int
	Bits              float32 // as heartbeats say it
	At                uint64  // tokens folded by the global parameters that it is of
}

// Peer is a peer as gossip sees it, and what connections carried.
type Peer struct {
	gossip.PeerView
	Path           *Path // nil if it is not connected
	Sent, Received uint64
}

// Path is how a peer is reached.
type Path struct {
	Addr, Relay string // the relay's id in hex, empty if none
	Punching    bool   // an attempt at a direct connection is under way
}
