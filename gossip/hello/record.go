package hello

import (
	"atoll/gossip/wire"
)

// Protocol is the version of everything that nodes say to each other.
const Protocol = 2

// Roles of a node and kinds of a trainer.
const (
	Learner  = "learner"
	Observer = "observer"

	Builtin  = "builtin"
	External = "external"
)

// Device is one kind of hardware that a node trains on.
type Device struct {
	Kind        string `cbor:"1,keyasint"` // "cpu", "cuda", ...
	Name        string `cbor:"2,keyasint"` // as the system calls it
	Count       int    `cbor:"3,keyasint"`
	MemoryBytes uint64 `cbor:"4,keyasint"` // of all of them together
}

// Record is what a node says about itself. The speed is measured, 0 if not yet.
type Record struct {
	Protocol        uint32      `cbor:"1,keyasint"`
	Run             wire.RunID  `cbor:"2,keyasint"`
	Author          wire.PeerID `cbor:"3,keyasint"`
	Seq             uint64      `cbor:"4,keyasint"` // a higher one replaces a lower
	Role            string      `cbor:"5,keyasint"` // Learner or Observer
	Trainer         string      `cbor:"6,keyasint"` // Builtin or External; empty for an observer
	Devices         []Device    `cbor:"7,keyasint"`
	TokensPerSecond float64     `cbor:"8,keyasint"` // for this run's model
	TokensPerStep   uint64      `cbor:"9,keyasint"`
	Precision       string      `cbor:"10,keyasint"` // of the training arithmetic: f32, bf16
	MemoryBytes     uint64      `cbor:"11,keyasint"` // that training may use
	Addrs           []string    `cbor:"12,keyasint"` // multiaddrs at which it can be dialled
	Agent           string      `cbor:"13,keyasint"` // name and version of the program
	StartedMs       int64       `cbor:"14,keyasint"` // unix milliseconds

	// Relays says that others reach this node by themselves and may reserve a slot at it.
	Relays bool `cbor:"15,keyasint,omitempty"`
	// Near says that the addresses are of the author's own network, and that the record is
	// for nodes there. Every other node gets one of the same number with the other addresses.
	Near bool `cbor:"16,keyasint,omitempty"`
	// Stateless says that this node holds nothing of the run and sends no heartbeats, as a relay
	// does: nobody waits for it.
	Stateless bool `cbor:"17,keyasint,omitempty"`
	// Certificate admits the author to a run that admits by invitation, see package member.
	Certificate []byte `cbor:"18,keyasint,omitempty"`
	// Visits says that this node only looks whether it would be let in: nobody keeps anything of it.
	Visits bool `cbor:"19,keyasint,omitempty"`
	// Name is what its owner calls the machine, see CheckName. A record that has one is for members alone and has no addresses:
	// it goes to those that are known to be, in peer lists, and everybody gets one of the same number without it.
	Name string `cbor:"20,keyasint,omitempty"`
}
