package effect

import (
	"atoll/gossip/member"
	"atoll/gossip/wire"
)

// Effect is one thing that the core asks its caller to do. Effects must be
// executed in the order in which Effects returns them.
//
//sumtype:decl
type Effect interface{ effect() }

// IO is an effect that network and disk carry out. The others are for the outer side.
//
//sumtype:decl
type IO interface {
	Effect
	io()
}

// Effects for the network side.
type (
	// Publish spreads one gossip message to everyone.
	Publish struct{ Bytes []byte }

	// Call sends a stream request to a connected peer. The caller reports the
	// outcome with Answered(ID), also when the peer cannot be reached. A
	// response longer than MaxResponse bytes (status included) is an error.
	Call struct {
		ID          uint64
		To          wire.PeerID
		Request     []byte
		MaxResponse int
		TimeoutMs   int64
	}

	// Hangup ends a Call whose answer is of no use any more, so that what is left of it
	// does not travel. Its outcome need not be reported.
	Hangup struct{ ID uint64 }

	// Dial tries the addresses of one peer, and where it was met recently, without reporting
	// back: success is a PeerUp. There may be no addresses.
	Dial struct {
		Peer  wire.PeerID
		Addrs []string
	}

	// Discover looks for peers of the run in the DHT of all runs. What is found comes as Hinted.
	Discover struct{}

	// Reserve asks a connected peer for a slot at which it relays to this node, and keeps
	// that until Release or the connection is gone. Reserved says what came of it.
	Reserve struct{ Peer wire.PeerID }

	// Release gives such a slot up.
	Release struct{ Peer wire.PeerID }

	// Keep says that the connection to a peer is to be closed after those to others, where
	// there are too many, for as long as it lasts: the peer is more than a key.
	Keep struct{ Peer wire.PeerID }

	// Drop closes the connection to a peer that broke the protocol too often.
	Drop struct {
		Peer   wire.PeerID
		Reason string
	}

	// EndVisit closes the connection to a peer that only looks.
	EndVisit struct{ Peer wire.PeerID }

	// Admitted brings a certificate that was not known before, to be made durable.
	Admitted struct{ Certificate member.Certificate }

	// Reconnect closes the connection to a peer from which no gossip comes, and
	// dials it again. The peer is not to blame.
	Reconnect struct{ Peer wire.PeerID }
)

// Effects that answer a stream request (Requested). Each handle gets
// exactly one of them.
type (
	// Reply carries the whole response frame, status included.
	Reply struct {
		Handle   uint64
		Response []byte
	}

	// ReplyPayload answers with the verified payload of a header. When the
	// last byte left, or the stream failed, the caller says Replied.
	ReplyPayload struct {
		Handle uint64
		ID     wire.Digest
	}

	// ReplyGenesis answers with the genesis document.
	ReplyGenesis struct{ Handle uint64 }

	// ReplyManifest answers with a signed manifest of the node's snapshot. At names
	// its rounds, one per fragment; a fragment whose tip of that round is not
	// held gets no chunks. If At is empty, the caller chooses the rounds. The
	// caller keeps the chunks it names for as long as a fetch may take, and
	// says Left or Replied as for a chunk.
	ReplyManifest struct {
		Handle uint64
		At     []uint32
	}

	// ReplyChunk answers with the chunk of that digest, packed, or with NotFound. When
	// the last byte left the caller may say Left, and once the asker has it
	// all, or the stream failed, Replied.
	ReplyChunk struct {
		Handle uint64
		Digest wire.Digest
	}

	// ReplyPart answers with a part of the blob of that digest, which is held, or with
	// NotFound and DropBlob. Left and Replied follow as for a chunk.
	ReplyPart struct {
		Handle uint64
		Digest wire.Digest
		Index  int
	}
)

// Effects for the outer side.
type (
	// Offer hands up a verified header. From is the peer that brought it. The
	// payload follows as Fetched, if it can be had. A header may be offered
	// again when repair meets it and its payload is still missing; Repair then
	// says that From holds the delta and its payload in its set. To refuse it
	// for a reason that is not the same everywhere would keep the two apart. The
	// header is shared by all who hold it and must not be changed; ID is its id.
	Offer struct {
		ID     wire.Digest
		Header *wire.SignedHeader
		From   wire.PeerID
		Repair bool
	}

	// Fetched hands up a payload whose hash and size fit its header. The
	// caller decodes and stores it and then says Complete.
	Fetched struct {
		ID      wire.Digest
		Header  *wire.SignedHeader
		Payload []byte
	}

	// CatchUp says that this node now holds all that Peer held for Fragment
	// up to Round, its last closed round: the node may close that far.
	CatchUp struct {
		Peer     wire.PeerID
		Fragment int
		Round    uint32
	}

	// LeaveOut says that this node, a guest, holds a delta of a guest in a closed round, and a member does not: the delta is of
	// no set before a member brings it.
	LeaveOut struct {
		ID       wire.Digest
		Fragment int
		Round    uint32
	}

	// BaseMismatch says that set union cannot repair the difference of two chains,
	// or that one node is far behind. It says which one takes the other's snapshot.
	// When Take is true a snapshot fetch from Peer has begun.
	BaseMismatch struct {
		Peer   wire.PeerID
		Take   bool
		Reason string
	}

	// StateDiffers says that Peer shows the same chain at Rounds (one per
	// fragment) and another state: memory corruption or a bug, here or there.
	// An Audit follows, once it is known where they last agreed.
	StateDiffers struct {
		Peer   wire.PeerID
		Rounds []uint32
	}

	// Audit asks to fold Fragment again from the kept base of round Shared, the
	// newest round at which this node and Peer have the same state. If the
	// later states of one of them do not come out again, that one was wrong.
	Audit struct {
		Peer     wire.PeerID
		Fragment int
		Shared   uint32
	}

	// Fetching says that chunks of the snapshot of these rounds, one for each
	// fragment, are about to be stored. Remember them beside the chunks: after
	// a restart they are Config.Resume.
	Fetching struct{ At []uint32 }

	// StoreChunk keeps one verified chunk of the snapshot being fetched. If that
	// cannot be done: ChunkNotStored.
	StoreChunk struct {
		Digest wire.Digest
		Bytes  []byte
	}

	// StorePart keeps one verified part of a blob that is wanted. Answer with PartStored.
	StorePart struct {
		Digest wire.Digest
		Part   wire.Part
	}

	// StoreHeader keeps the header of a delta that was folded before the snapshot
	// that this node took, and whose payload it will not have.
	StoreHeader struct{ Header wire.SignedHeader }

	// Snapshot says that every chunk of Manifest is stored: install it,
	// all fragments at once. A manifest with every fragment at round 0
	// has no chunks and means: start from genesis.
	Snapshot struct {
		Manifest wire.Manifest
		Source   wire.PeerID
	}

	// OwnHeader hands up an own delta that a peer knows of: a disk that was lost
	// may have held more of them than the one there is now.
	OwnHeader struct{ Header wire.SignedHeader }

	// OwnKnown says that AskOwn is answered. A peer that connects later may still
	// bring an OwnHeader.
	OwnKnown struct {
		Closed []uint32 // the last round that any of those who answered has closed, by fragment
	}

	// EquivocationFound hands up a verified equivocation proof, once for each (author,
	// fragment, round).
	EquivocationFound struct{ Equivocation wire.Equivocation }

	// Revoked hands up owners' words that peers told and that are new here, those that keep somebody first.
	Revoked struct{ Words []member.Word }

	// Misbehaved says that a peer broke the protocol, for scoring and for
	// the reason shown beside the peer.
	Misbehaved struct {
		Peer   wire.PeerID
		Reason string
	}

	// Event is something worth showing to people.
	Event struct {
		Kind EventKind
		Peer wire.PeerID
		Text string
	}
)

// EventKind classes an Event.
type EventKind uint8

// The kinds of events.
const (
	EventJoined       EventKind = iota + 1 // a peer connected
	EventLeft                              // a peer said that it leaves
	EventSilent                            // nothing heard for ten heartbeat periods
	EventHeard                             // heard again after silence
	EventRepair                            // a repair began or ended
	EventFork                              // two chains differ below the windows
	EventGaveUp                            // no source gave a payload
	EventSnapshot                          // a step of a snapshot fetch
	EventMisbehaved                        // a peer broke the protocol
	EventEquivocation                      // two headers of one author for one round
	EventJoin                              // something about the way in that people should know
	EventAudit                             // a step of finding out whose state is wrong
)

// String names the kind as status screens show it.
func (k EventKind) String() string {
	names := [...]string{"", "joined", "left", "silent", "heard", "repair", "fork",
		"gave up", "snapshot", "misbehaved", "equivocation", "join", "audit"}
	if int(k) < len(names) {
		return names[k]
	}
	return "unknown"
}

func (Publish) effect()           {}
func (Call) effect()              {}
func (Hangup) effect()            {}
func (Dial) effect()              {}
func (Discover) effect()          {}
func (Reserve) effect()           {}
func (Release) effect()           {}
func (Keep) effect()              {}
func (EndVisit) effect()          {}
func (Drop) effect()              {}
func (Reconnect) effect()         {}
func (Admitted) effect()          {}
func (Reply) effect()             {}
func (ReplyPayload) effect()      {}
func (ReplyGenesis) effect()      {}
func (ReplyManifest) effect()     {}
func (ReplyChunk) effect()        {}
func (ReplyPart) effect()         {}
func (StorePart) effect()         {}
func (Offer) effect()             {}
func (Fetched) effect()           {}
func (CatchUp) effect()           {}
func (LeaveOut) effect()          {}
func (BaseMismatch) effect()      {}
func (StateDiffers) effect()      {}
func (Audit) effect()             {}
func (OwnHeader) effect()         {}
func (OwnKnown) effect()          {}
func (Fetching) effect()          {}
func (StoreHeader) effect()       {}
func (StoreChunk) effect()        {}
func (Snapshot) effect()          {}
func (EquivocationFound) effect() {}
func (Revoked) effect()           {}
func (Misbehaved) effect()        {}
func (Event) effect()             {}

func (Publish) io()       {}
func (Call) io()          {}
func (Hangup) io()        {}
func (Dial) io()          {}
func (Discover) io()      {}
func (Reserve) io()       {}
func (Release) io()       {}
func (Keep) io()          {}
func (EndVisit) io()      {}
func (Drop) io()          {}
func (Reconnect) io()     {}
func (Admitted) io()      {}
func (Reply) io()         {}
func (ReplyPayload) io()  {}
func (ReplyGenesis) io()  {}
func (ReplyManifest) io() {}
func (ReplyChunk) io()    {}
func (ReplyPart) io()     {}
func (Fetching) io()      {}
func (StoreChunk) io()    {}
func (StorePart) io()     {}
func (StoreHeader) io()   {}
