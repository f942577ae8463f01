package replica

import (
	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// Events that a Watcher is told of.
type (
	// PayloadOnDisk: another's payload is on the disk.
	PayloadOnDisk struct{ core.StoreDelta }
	// DraftFailed: no delta came of the learner's progress.
	DraftFailed struct {
		Fragment int
		Err      error
	}
	// TipFolded: a WantFold came to a tip.
	TipFolded struct {
		Want rounds.WantFold
		FoldResult
	}
	// FoldFailed: a WantFold came to nothing for now.
	FoldFailed struct {
		Want rounds.WantFold
		Err  error
	}
	// Adopted: the learner stands on a new tip, or on a sound one in place of a damaged one.
	Adopted struct {
		outer.Adopt
		Loss outer.Loss
	}
	// StepsLost: the device that stepped is gone, with what it had of a fragment.
	StepsLost struct {
		Fragment int
		Loss     outer.Loss
	}
	// Installed: a snapshot was taken. It comes before the machine knows.
	Installed struct {
		From wire.PeerID
		Tips []*outer.Tip
		Left core.Left // with the chain that they replace
	}
	// NotInstalled: a snapshot does not fit, or the disk did not take it.
	NotInstalled struct {
		From wire.PeerID
		Err  error
	}
	// Damaged: the disk or memory has lost something that is made or fetched again.
	Damaged struct{ Err error }
	// Retained: old payloads were dropped, as far as the budget asks and may.
	Retained struct {
		Kept
		Budget int64
	}
	// GivenUp: a disk that takes no record for too long has rounds of a fragment
	// without one, from this one on.
	GivenUp struct {
		Fragment int
		Round    uint32
	}
)

// MayRepair says whether an adoption has cost something, or replaces what was damaged.
func (a Adopted) MayRepair() bool { return a.LosesUnpublished() || !a.Loss.None() }
