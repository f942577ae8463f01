package replica

import (
	"errors"
	"io"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// Exec says when work runs. Disk, Fold and Learn each do one piece of work at a time, in
// order, beside each other and beside the loop; each Serve runs by itself.
type Exec interface {
	Disk(do func())                                 // writes of deltas, marks and chunks
	Fold(do func())                                 // folds, and writes of bases and records
	Learn(do func())                                // between two steps of the learner
	Serve(handle uint64, do func(gone func() bool)) // reads for the stream with that handle, 0 for none; gone says that it ended
	Install(do func())                              // a fold, after the writes that were asked for
	Post(do func(now core.Time))                    // on the loop, what work came to
	Announce(do func(now core.Time))                // on the loop, when an own delta is durable and may leave the node
	Elapsed() int64                                 // milliseconds since some moment in which this process was awake
	Cut() bool                                      // folds under way are to end between two rounds
}

// Net sends.
type Net interface {
	Publish(message []byte)
	Call(call gossip.Call)
	Hangup(call uint64)                    // ends it; its outcome need not be reported
	Dial(peer wire.PeerID, addrs []string) // there may be none
	Discover()                             // looks for peers of the run at the discovery points of all runs
	Reserve(peer wire.PeerID)              // a slot at a relay; Release gives it up
	Release(peer wire.PeerID)
	Keep(peer wire.PeerID) // its connection is closed after others, where there are too many
	Drop(peer wire.PeerID, reason string)
	Disconnect(peer wire.PeerID)
	Reconnect(peer wire.PeerID)
	Reply(handle uint64, reply Reply)
}

// Reply answers a stream request.
type Reply struct {
	Response []byte
	Bulk     bool        // its slot in the queue of answers is free once it has left
	Payload  wire.Digest // of the delta whose payload it is, or zero
}

// Ledger keeps what a restart finds again. What PutOwn, RaiseMark and Install
// write is durable when they return, with all that was put before; the rest is
// durable in order, soon after.
//
// ErrGone says that something was damaged or was never there; ErrFatal that this
// node cannot go on. Other errors may pass: the disk is full, or was taken away.
type Ledger interface {
	core.Ledger // Rounds and Header
	LastRound(fragment int) (uint32, error)
	Mark(fragment int) (uint32, error)
	Held(fragment int, from uint32, f func(id wire.Digest, h wire.SignedHeader)) error
	Authors(f func(author wire.PeerID)) error // of all deltas in the records, in the order in which they were folded first
	Equivocation() ([]wire.Equivocation, error)

	PutDelta(id wire.Digest, h *wire.SignedHeader, payload []byte) error
	PutHeader(id wire.Digest, h wire.SignedHeader) error
	PutEquivocation(e wire.Equivocation) error
	Members() ([]member.Certificate, error)
	PutMember(c member.Certificate) error
	Revocations() ([]member.Word, error)
	PutRevocation(member.Word) error
	Payload(id wire.Digest) ([]byte, error)
	DropPayload(id wire.Digest) error
	ForgetDelta(id wire.Digest) error // its payload and its header, if they are there
	Retain(budget int64, limit []uint32, own map[wire.Digest]bool) (Kept, error)
	// Archive puts what is known of rounds up to limit[fragment], which are final, where
	// a start does not read it. It stays readable.
	Archive(limit []uint32) error

	PutOwn(e core.StoreOwn) error
	Own() ([]core.OwnRecord, error)
	ForgetOwn(ids []wire.Digest) error // a restart does not read them any more
	LoseOwn(id wire.Digest) error      // ForgetOwn and DropPayload
	RaiseMark(fragment int, round uint32) error
	PutMarksKnown() error

	Bases(fragment int) ([]uint32, error) // rounds, ascending
	BaseState(fragment int, round uint32) (outer.Digest, error)
	Base(fragment int, round uint32) (*outer.Tip, error)
	PutBase(fragment int, tip *outer.Tip) error
	DropBase(fragment int, round uint32) error

	PutRounds(fragment int, rounds []outer.Link) error // consecutive ones
	TruncateRounds(fragment int, last uint32) error
	Install(fragments []InstalledFragment) error

	PutChunk(id wire.Digest, b []byte) error
	Chunk(id wire.Digest) ([]byte, error)
	DropChunks() error
	PutFetching(at []uint32) error // rounds of the snapshot that the chunks are of; nil = none
}

// Errors of a Ledger.
var (
	ErrGone  = errors.New("not on the disk any more")
	ErrFatal = errors.New("the node cannot go on")
)

// InstalledFragment is what replaces one fragment in the ledger when a snapshot is taken.
type InstalledFragment struct {
	Tip    *outer.Tip
	Links  []outer.Link // that lead to it, oldest first
	Keep   bool         // the records before the first link continue into it and stay
	Forget []wire.Digest
}

// Kept is what Ledger.Retain left, in bytes and payloads.
type Kept struct {
	Bytes   int64
	Dropped int
}

// Scratch keeps bytes for as long as this process runs, where they take none of its memory. Methods may be called from any
// goroutine.
type Scratch interface {
	// Keep keeps what fill writes.
	Keep(fill func(w io.Writer) error) (Scrap, error)
}

// Scrap is what a Scratch keeps. Close forgets it; what is read afterwards is an error.
type Scrap interface {
	io.ReaderAt
	io.Closer
}

// Arithmetic are the pure functions that a replica calls with what peers sent.
type Arithmetic interface {
	// CheckPayload says whether a payload decodes, as outer.Params.CheckPayload.
	CheckPayload(d outer.Delta, payload []byte) error
	// Fold is outer.Fold of the round after prev.
	Fold(fragment int, prev *outer.Tip, set []outer.Contribution) (*outer.Tip, outer.Result, error)
	// Intern returns a tip that is equal to one that came whole.
	Intern(tip *outer.Tip) *outer.Tip
}

// Learner is outer.Learner, or what watches one.
type Learner interface {
	Draft(fragment int) (outer.Draft, error)
	Return(fragment int, o outer.Own) error
	Follow(a outer.Adopt) (outer.Loss, error)
	Stepped(tokens int, closed []uint32)
	Restore(fragment int, own, folded []uint64) error
	Lost(fragment int) (outer.Loss, error) // the device that stepped is gone
}

// Watcher is told what happened.
type Watcher interface {
	// Saw tells, on the loop, of one of the events below, or of an effect of the
	// machine that carries news.
	Saw(event any)
	// Check takes an error that stops nothing: what could not be written stays in
	// memory, or is fetched or computed again. It may come from any goroutine, and
	// may be nil: then what was tried has worked.
	Check(what string, err error)
	// Fail ends the node. It may come from any goroutine.
	Fail(err error)
}
