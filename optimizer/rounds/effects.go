package rounds

import (
	"slices"

	"atoll/optimizer/outer"
)

// Effect is something the round machine wants done. Effects are carried
// out in the order in which they were drained.
//
//sumtype:decl
type Effect interface{ effect() }

// Work is an effect that the learner and the folds carry out. The others are for who has the machine.
//
//sumtype:decl
type Work interface {
	Effect
	work()
}

// WantDraft asks the learner for a copy of its unpublished progress on a
// fragment, at its next step boundary.
type WantDraft struct{ Fragment int }

// Closed says that a round closed here, with the link it has for now.
type Closed struct {
	Fragment int
	Link     outer.Link
	Why      Why
}

// WantFold asks for the fold of Sets[i] as round Start+1+i, beginning at the
// kept tip of round Start. The tips of rounds in Keep, and the last one, are
// kept as bases until DropBase. Without sets it asks for that tip, read again
// from where it is sound. The answer is TakeFold.
type WantFold struct {
	Fragment int
	Job      uint64 // names it in the answer
	Start    uint32
	Sets     [][]outer.Delta
	Keep     []uint32
}

// Keeps says that the tip of a round is to be kept as a base. The last one
// always is.
func (w WantFold) Keeps(round uint32) bool {
	return round == w.Start+uint32(len(w.Sets)) || slices.Contains(w.Keep, round)
}

// Checked says what came of Recheck: whether the states of this node were Wrong,
// and then from which round on.
type Checked struct {
	Fragment int
	Wrong    bool
	Round    uint32
}

// WantSnapshot says that the only kept base of a fragment is lost: a snapshot has to
// come from another node.
type WantSnapshot struct{}

// Revoked are the names that the chain of a fragment and the sets above it revoke, ordered. It
// comes again when there are others.
type Revoked struct {
	Fragment int
	Names    []outer.Revoked
}

// Forgot says that a delta is known no more, as an owner revoked its author or its round has no
// room for it: those of a full set come before it, or there are too many headers without payloads.
type Forgot struct {
	Fragment int
	Round    uint32
	ID       outer.ID
}

// Adopt has the learner stand on a new tip.
type Adopt struct{ outer.Adopt }

// DropBase says that a kept base is no longer needed.
type DropBase struct {
	Fragment int
	Round    uint32
}

func (WantDraft) effect()    {}
func (Closed) effect()       {}
func (WantFold) effect()     {}
func (Checked) effect()      {}
func (WantSnapshot) effect() {}
func (Revoked) effect()      {}
func (Forgot) effect()       {}
func (Adopt) effect()        {}
func (DropBase) effect()     {}

func (WantDraft) work() {}
func (WantFold) work()  {}
func (Adopt) work()     {}
func (DropBase) work()  {}
