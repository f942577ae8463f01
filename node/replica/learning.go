package replica

import (
	"atoll/node/core"
	"atoll/optimizer/outer"
)

// learning is the learner and what its steps stand on. It belongs to the steps.
type learning struct {
	learner Learner  // nil for a node that only holds and serves
	closed  []uint32 // rounds of the tips that the local parameters stand on
}

// learn has the learner do something between two steps.
func (r *Replica) learn(do func(l Learner)) {
	if l := r.learning.learner; l != nil {
		r.exec.Learn(func() { do(l) })
	}
}

// Stepped counts an inner step of so many tokens. It belongs to the steps; the
// machine hears of it on the loop.
func (r *Replica) Stepped(tokens int) {
	r.learning.learner.Stepped(tokens, r.learning.closed)
	r.exec.Post(func(now core.Time) { r.machine.Stepped(now, uint64(tokens)) })
}

// draft makes a delta of the learner's progress.
func (r *Replica) draft(l Learner, fragment int) {
	d, err := l.Draft(fragment)
	r.exec.Post(func(now core.Time) {
		if err != nil {
			r.watcher.Saw(DraftFailed{fragment, err})
		}
		r.machine.SignDraft(now, fragment, d, err)
	})
}

// returnDraft returns a draft that could not be made durable.
func (r *Replica) returnDraft(l Learner, e core.ReturnDraft) {
	if err := l.Return(e.Fragment, e.Own); err != nil {
		r.watcher.Fail(err)
	}
}

// LearnerLost takes off what was stepped on a device that is gone and had not been published.
// It belongs to the steps; the machine hears of it on the loop.
func (r *Replica) LearnerLost() {
	for p := range r.learning.closed {
		loss, err := r.learning.learner.Lost(p)
		if err != nil {
			r.watcher.Fail(err)
			return
		}
		r.exec.Post(func(now core.Time) {
			r.watcher.Saw(StepsLost{p, loss})
			r.machine.Repaired(now, p, loss)
		})
	}
}

// adopt moves the local parameters to a new tip, or repairs them, and takes own deltas that are
// final off the list that a restart reads. Those that were discarded or dropped may be regained
// until they are forgotten.
func (r *Replica) adopt(a outer.Adopt) {
	if r.learning.learner == nil {
		r.watcher.Saw(Adopted{Adopt: a})
		return
	}
	r.learn(func(l Learner) { r.follow(l, a) })
	final := r.own.ids(a.Final())
	r.write("forget a final own delta", func() error { return r.ledger.ForgetOwn(final) })
}

func (r *Replica) follow(l Learner, a outer.Adopt) {
	loss, err := l.Follow(a)
	if err != nil {
		r.watcher.Fail(err)
		return
	}
	r.learning.closed[a.Fragment] = a.Tip.Round
	r.exec.Post(func(now core.Time) {
		seen := Adopted{a, loss}
		r.watcher.Saw(seen)
		if seen.MayRepair() {
			r.machine.Repaired(now, a.Fragment, loss)
		}
		r.own.drop(a.Seqs(outer.Forgotten, outer.Returned))
	})
}
