package p2p

import (
	"atoll/gossip/hello"
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// Event is something that happened on the network: PeerUp, PeerDown,
// RecordChanged, Refused, Message, Stranger, Has, Addresses, Reserved or Hint.
//
//sumtype:decl
type Event interface{ event() }

type (
	// PeerUp: the handshake with a peer was passed. There is one for each peer,
	// however many connections lead to it.
	PeerUp struct {
		ID     wire.PeerID
		Record hello.Record
		Signed hello.Signed // Record as its author signed it, for the peer list
		Addr   string       // the connection's, with /p2p/; where it dials from if it dialled
		Near   bool         // it is on the same network as this node
	}

	// RecordChanged: a connected peer sent a newer record.
	RecordChanged struct {
		ID     wire.PeerID
		Record hello.Record
		Signed hello.Signed
	}

	// PeerDown: the last connection to a peer that was up is gone.
	PeerDown struct{ ID wire.PeerID }

	// Refused: the handshake failed for a reason worth showing. Either side may
	// have refused the other.
	Refused struct {
		ID     wire.PeerID
		Addr   string
		Reason error // a *hello.Refusal
	}

	// Message is a gossip message that Config.Check accepted. Data must not be
	// modified: gossip may still be sending it.
	Message struct {
		From wire.PeerID // who brought it, not who wrote it
		ID   wire.Digest // wire.Sum of Data
		Data []byte
	}

	// Stranger: a peer brought a message of an author that Config.Check does not know.
	Stranger struct {
		From wire.PeerID
		member.Stranger
	}

	// Has: a peer has the message of ID. It brought another copy, or said that it wants none, maybe before the
	// message came here; the author says so too. That peer is likely to have what the message announces. It may
	// lie, and there may be no such message. What Check refused is reported all the same.
	Has struct {
		From    wire.PeerID
		ID      wire.Digest
		Brought bool // a copy
	}
)

type (
	// Addresses: where this node can be dialled, with /p2p/, is not what it was.
	Addresses struct {
		Outside []string // from anywhere: public ones, or through relays
		Near    []string // from the same network
		Public  bool     // peers from outside come in by themselves, without a relay
		Moved   bool     // an address of before is gone: connections may be dead without a sign
	}

	// Hint: somebody, who may lie, says that a peer of the run can be dialled at these
	// addresses, with /p2p/: on the same network or in the DHT of all runs.
	Hint struct {
		ID    wire.PeerID
		Addrs []string
		Near  bool // it was heard on the same network
	}

	// Reserved: a relay keeps a slot for this node from now on, or refuses to.
	Reserved struct {
		ID  wire.PeerID
		Err error
	}
)

func (PeerUp) event()        {}
func (RecordChanged) event() {}
func (PeerDown) event()      {}
func (Refused) event()       {}
func (Message) event()       {}
func (Has) event()           {}
func (Stranger) event()      {}
func (Addresses) event()     {}
func (Reserved) event()      {}
func (Hint) event()          {}
