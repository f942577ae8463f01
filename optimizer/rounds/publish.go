package rounds

import (
	"errors"

	"atoll/optimizer/outer"
)

// maxUnsent is how many own deltas of a fragment may wait to be handed over
// while there are peers: progress then accumulates in the next one instead of
// filling a slow link with deltas that will be late.
const maxUnsent = 2

// askDraft asks the learner for a copy of its unpublished progress when this
// fragment is due: it proposes a round (see mayPropose), publishes in
// one (h_min steps), or flushes (any step, at the end).
func (m *Machine) askDraft(now Time, f *fragment) {
	if !m.learner || m.withhold || f.learn.drafting || f.learn.givenUp || f.learn.pending == 0 || now < f.learn.draftAt || !m.open(f) || m.linkBusy(now, f) {
		return
	}
	proposes := m.mayPropose(f)
	publishes := f.proposal.at != 0 && m.hasEnough(f) && m.mayPublish(f, m.self, m.next(f))
	full := f.learn.pending >= m.p.MaxSteps
	if proposes || publishes || full || m.flush {
		f.learn.drafting = true
		m.emit(WantDraft{Fragment: f.index})
	}
}

// next is the round that this learner signs for: the open one. A guest publishes for the one after it, as nobody waits for
// guests, and what comes late has all fold again; not at the end, after which no round may open.
func (m *Machine) next(f *fragment) uint32 {
	if m.guest && !m.stopped && f.chain.last().EndRound == 0 {
		return f.chain.closed + 2
	}
	return f.chain.closed + 1
}

// open says whether this learner may sign a delta for the fragment's next
// round: it has not yet, and the round is not past the end of the run.
func (m *Machine) open(f *fragment) bool {
	return !f.chain.last().Ended() && m.next(f) > f.own.mark && !m.muted(f, m.self)
}

// over says that the fragment takes no further delta of this learner.
func (m *Machine) over(f *fragment) bool {
	if m.muted(f, m.self) {
		return true
	}
	end := f.chain.last().EndRound
	return end != 0 && max(f.chain.closed, f.own.mark) > end
}

// linkBusy says whether own deltas of the fragment still wait for anybody to take them, no
// longer than a round stays open or their way over the own link takes. A learner without
// peers publishes all the same.
func (m *Machine) linkBusy(now Time, f *fragment) bool {
	return len(m.peerList.live) > 1 && f.own.unhanded(now, max(m.GraceLimit(), m.plan.sweep), f.overflows) >= maxUnsent
}

// RoundOfDraft names the round of a draft that was asked for and that the learner made:
// the next one at this moment. The caller signs it, makes it durable
// and then calls SettleDraft. It must not be published, and is to be returned, if
// tips of older rounds were taken since or rounds turned out to be signed already:
// the open round is then one that this learner must leave out, and a delta for a
// later one would be parked everywhere, and here.
func (m *Machine) RoundOfDraft(fragment int) (rnd uint32, may bool) {
	f := m.frags[fragment]
	next := m.next(f)
	return max(next-1, f.own.mark) + 1, !m.withhold && next > f.own.mark
}

// ErrNoDraft says that the learner had nothing to publish.
var ErrNoDraft = errors.New("the learner has nothing to publish")

// draftRetryMs is the pause after a draft that could not be made durable: a full
// disk stays full for a while, and each try costs an encoding.
const draftRetryMs = 5_000

// SettleDraft takes what came of a draft of a fragment that was asked for: the own delta
// that is durable now, ErrNoDraft, or why the draft was returned, so that its work
// is unpublished again and is asked for later.
func (m *Machine) SettleDraft(now Time, fragment int, d OwnDelta, err error) {
	f := m.frags[fragment]
	f.learn.drafting = false
	switch {
	case err == nil:
		m.enterOwn(now, f, d.Delta, d.Seq)
	case !errors.Is(err, ErrNoDraft):
		f.learn.draftAt = now + draftRetryMs
	}
}

// enterOwn enters an own delta into the set. As others will hold it, it does so by
// the rules of repair, should tips of older rounds have been taken since it was signed:
// a delta that its author does not hold is missed by all.
func (m *Machine) enterOwn(now Time, f *fragment, d outer.Delta, seq uint64) {
	f.learn.since, f.learn.size = 0, d.Size
	m.averageSteps(d.Steps)
	f.own.mark = max(f.own.mark, d.Round)
	own := newOwn(OwnDelta{Seq: seq, Delta: d})
	own.at = now
	f.own.list = append(f.own.list, own)
	f.learn.spend(own.Work())
	if m.Offer(now, d, true) == nil {
		m.Payload(now, d.Fragment, d.Round, d.ID, PayloadHeld)
	}
}

// RaiseMark says that rounds up to rnd may have been signed.
func (m *Machine) RaiseMark(fragment int, rnd uint32) {
	f := m.frags[fragment]
	f.own.mark = max(f.own.mark, rnd)
}

// HandedOver says that some peer holds the own delta.
func (m *Machine) HandedOver(now Time, fragment int, id outer.ID) {
	f := m.frags[fragment]
	for i := range f.own.list {
		if f.own.list[i].id == id {
			f.own.list[i].handed = true
		}
	}
	m.askDraft(now, f)
}
