package core

import (
	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// Effect is one thing to do, in order. A replica does it.
//
//sumtype:decl
type Effect interface{ effect() }

// Effects that pass through.
type (
	// IO is what gossip wants of network and disk.
	IO struct{ Effect gossip.IO }
	// Work is what the rounds want of the learner and of the folds.
	Work struct{ Effect rounds.Work }
	// News is an effect of gossip or of the rounds that only tells something.
	News struct{ Event any }
)

// Effects of the machine's own.
type (
	// StoreOwn makes an own delta durable (payload, header and mark, fsynced)
	// before anything of it leaves the node. Answer with StoredOwn.
	StoreOwn struct {
		ID      wire.Digest
		Header  wire.SignedHeader
		Payload []byte
		Seq     uint64
	}
	// ReturnDraft returns an own draft that could not be published; see outer.Learner.
	ReturnDraft struct {
		Fragment int
		Own      outer.Own
	}
	// RaiseMark makes durable that rounds of a fragment up to Round may have been
	// signed: other nodes hold deltas of this key that the disk does not.
	RaiseMark struct {
		Fragment int
		Round    uint32
	}
	// MarksKnown says that nothing that this key signed is unknown any more.
	MarksKnown struct{}
	// StoreDelta checks that another's payload decodes and stores it. Answer
	// with StoredDelta or Invalid.
	StoreDelta struct {
		ID      wire.Digest
		Header  *wire.SignedHeader // shared, not to be changed
		Payload []byte
	}
	// ForgetDelta drops what is kept of a delta: its round has no room for it. There may be nothing.
	ForgetDelta struct{ ID wire.Digest }
	// StoreEquivocation keeps the proof that an author signed two deltas for one
	// round.
	StoreEquivocation struct{ Equivocation wire.Equivocation }
	// InstallSnapshot assembles the chunks of a manifest. Answer with Installed.
	// Common are, by fragment, the last rounds up to which this node's chain is known
	// to be the chain of the snapshot. Closed are the last rounds that it has closed.
	InstallSnapshot struct {
		Manifest       wire.Manifest
		Common, Closed []uint32
	}
	// MayStep tells the training thread whether to go on stepping: not while
	// joining, and not once the budget is spoken for.
	MayStep struct{ Yes bool }
	// Verdict says whose state was wrong where this node and a peer folded the same
	// deltas of a fragment to different states. It is the peer's, or its own from
	// Round on, which is repaired.
	Verdict struct {
		Peer     wire.PeerID
		Fragment int
		Own      bool
		Round    uint32
	}
	// StoreRevocation keeps an owner's word, for those whom it is about and who were away.
	StoreRevocation struct{ member.Word }
	// Revoked says that an owner of the run revoked authors, or invites, since the last one. Own says
	// that this node is one of those who count no more.
	Revoked struct {
		Names []wire.PeerID
		Words []wire.SignedHeader // the statements that gossip brought of them: the payload of each is the reason
		Own   bool
	}
	// Refused says that a header was not taken, and why.
	Refused struct {
		ID     wire.Digest
		Header wire.Header
		Reason error
	}
	// Finished says that the run is over here: all live nodes showed the same
	// digests for the longest of their heartbeat periods.
	Finished struct{}
)

func (IO) effect()                {}
func (Work) effect()              {}
func (News) effect()              {}
func (StoreOwn) effect()          {}
func (ReturnDraft) effect()       {}
func (RaiseMark) effect()         {}
func (MarksKnown) effect()        {}
func (StoreDelta) effect()        {}
func (ForgetDelta) effect()       {}
func (StoreEquivocation) effect() {}
func (InstallSnapshot) effect()   {}
func (MayStep) effect()           {}
func (Verdict) effect()           {}
func (StoreRevocation) effect()   {}
func (Revoked) effect()           {}
func (Finished) effect()          {}
func (Refused) effect()           {}
