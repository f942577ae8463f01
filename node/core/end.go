package core

import (
	"fmt"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// learning is what the training thread last said of itself.
type learning struct {
	steps, tokens uint64
	perSecond     float64
	bits          float32
	capability    uint64
	upload        float64
	full          bool // the uplink carries no more than upload
}

// ending is what the machine knows about the end of the run and of itself.
type ending struct {
	may        bool // the last MayStep
	leaving    bool
	finished   bool
	over       Time // when it was
	lacked     Time // when a peer was last in sight that lacked the end of the run
	moved      Time // when a tip last changed
	doubted    bool // this node has stood still since, though what it knows to be made would be enough
	came       Time // when a payload was last stored
	stepped    Time // when the own learner last stepped, or became ready to
	unfinished Time // when it last had something to publish or to fold, stepping no more
	announced  Time // when an own delta was last announced
	ticked     Time // the last Tick
	reached    Time // since when each fragment has folded its budget: the last Tick, while one has not; 0 before the first
}

// leaveMs is how long a leaver stays after its last delta was announced: what
// travels inside gossip messages has no receipt, so it gets time to go out.
const leaveMs = 500

// SetLearning sets what the next heartbeats say of the training thread: steps and
// tokens since its first start, its speed in tokens per second, the last live
// bits per byte (0 = none), and the sequence number of its capability record. Steps
// that Stepped counted already and the caller has not are counted once.
func (m *Machine) SetLearning(steps, tokens uint64, perSecond float64, bits float32, capability uint64) {
	l := &m.learning
	l.steps, l.tokens = max(l.steps, steps), max(l.tokens, tokens)
	l.perSecond, l.bits, l.capability = perSecond, bits, capability
}

// SetUpload sets the most bytes per second that the uplink of this node was seen to carry
// recently, 0 while nothing is known, and whether it was full with them. The next heartbeats say so.
func (m *Machine) SetUpload(_ Time, bytesPerSecond float64, full bool) {
	l := &m.learning
	l.upload, l.full = 0, false
	if bytesPerSecond > 0 { // false for NaN
		l.upload, l.full = min(bytesPerSecond, wire.MaxUpload), full
	}
}

// Leave begins an ordered leave: no step more, what is unpublished goes out.
func (m *Machine) Leave(now Time) {
	m.end.leaving = true
	m.goOn(now) // what is not published yet has to be given
	m.tickEnd(now)
	m.gossip.HeartbeatNow(now)
	m.pump(now)
}

// MayLeave says that nothing is left that would be lost by leaving now.
func (v View) MayLeave() bool {
	return v.m.rounds.Status().Flushed && v.m.rounds.AllHanded(v.m.end.ticked) && v.m.end.ticked-v.m.end.announced >= leaveMs
}

// tickEnd decides whether the learner goes on stepping, and whether the run is
// over.
func (m *Machine) tickEnd(now Time) {
	ready := m.join.phase == Ready
	needed := m.tokensNeeded(now)
	if !ready || !m.rounds.Status().Ended || m.end.reached == 0 {
		m.end.reached = now
	}
	if ready && !needed && !m.pause.resting {
		m.doubt(now)
	}
	may := m.cfg.Learner && ready && needed && !m.end.leaving && !m.pause.on && !m.rounds.Excluded(m.self)
	if may != m.end.may {
		m.end.may = may
		m.emit(MayStep{Yes: may})
	}
	stopped := ready && !may
	m.rounds.SetStopped(now, stopped, stopped && m.lastStepsMade(now, needed))
	if stopped && !m.end.finished && !m.quiet() {
		m.end.unfinished = now
	}
	m.updateHeartbeats(now)
	if ready && !m.end.finished && m.over(now) {
		m.end.finished, m.end.over = true, now
		m.gossip.HeartbeatSoon(now)
		m.emit(Finished{})
	}
	m.share(now)
}

// lastStepsHeartbeats is for how many heartbeat periods after its last step a learner that steps no more keeps what it has while
// others step: what it publishes late is folded late, and the others may be slow.
const lastStepsHeartbeats = 2

// lastStepsMade says whether a learner that does not step publishes all that it has, however few steps that is. The last
// steps are dealt out as heartbeats come, so while others step it may get one more, and then all its fragments would go out twice.
func (m *Machine) lastStepsMade(now Time, needed bool) bool {
	if needed || m.end.leaving || m.pause.on || now-m.end.stepped >= lastStepsHeartbeats*m.gossip.HeartbeatPeriodMs() {
		return true
	}
	step := false
	m.gossip.Peers().Heartbeats(func(id wire.PeerID, b *wire.Heartbeat, _ gossip.Time) {
		step = step || b.State == wire.Training && !b.Paused && m.believes(id) && !m.gossip.Peers().Gone(id)
	})
	return !step
}

// shareMs is how long a node whose run is over stays for peers that lack its end:
// as long as a joiner would wait for its return.
const shareMs = holderMs

// lingerHeartbeats is for how many heartbeat periods it stays in any case, so that the
// others hear that it agrees: it has sent a heartbeat since it does, and sends one more.
const lingerHeartbeats = 1

// share looks for peers that lack the end of the run. A node that is joining
// when the others end has nobody else to take their model from.
func (m *Machine) share(now Time) {
	if !m.end.finished || now-m.end.over >= shareMs {
		return
	}
	id, lacking := m.gossip.Chains().Lacking(now)
	if !lacking {
		return
	}
	if m.end.lacked == 0 {
		m.report(id, fmt.Sprintf("the run is over, but this peer has not reached its end: this node waits up to %d minutes for it", shareMs/60_000))
	}
	m.end.lacked = now
}

// MayEnd says that the run is over and that nobody in sight needs this node any
// more. A peer that lacked its end and fell silent, or lost its connection, is given
// the time to come back.
func (v View) MayEnd(now Time) bool {
	period := v.m.gossip.HeartbeatPeriodMs()
	if v.m.end.lacked > 0 && now-v.m.end.lacked < holdUpHeartbeats*period {
		return false
	}
	return v.m.end.finished && now-v.m.end.over >= lingerHeartbeats*period
}

// doubtHeartbeats is how many heartbeat periods a run may stand still because peers say
// they have what is missing: as many as make a peer silent.
const doubtHeartbeats = 10

// doubt stops believing peers that say they will publish when the budget is not
// reached, nobody steps for it, and they published nothing. A peer is believed again
// when a delta of it comes. Where something came, and so little that this node has
// stood still all the same, claims are weighed from then on by what comes.
func (m *Machine) doubt(now Time) {
	if m.rounds.Status().Ended {
		return
	}
	if m.long(now-m.end.stepped, doubtHeartbeats) {
		m.heard.weighed = true
	}
	if m.stoodStill(now, doubtHeartbeats) {
		m.heard.doubt()
		m.end.doubted = true
	}
}

// stoodStill says that no tip changed, nothing came and the own learner did not step for so
// many heartbeat periods, and for as long as deltas may be under way.
func (m *Machine) stoodStill(now Time, periods int64) bool {
	return m.long(now-max(m.end.moved, m.end.came, m.end.stepped), periods)
}

// lastTimes is how many times what the last deltas of all should take nothing may come.
const lastTimes = 3

// long says that a time is as long as so many heartbeat periods, and as deltas may be under way:
// one of usual size at usual times, or one of each fragment over the thinnest uplink.
func (m *Machine) long(still Time, periods int64) bool {
	way := max(min(m.rounds.GraceLimit(), m.cfg.Params.GraceMaxMs), lastTimes*m.cache.sweepMs)
	return still >= max(periods*m.gossip.HeartbeatPeriodMs(), way)
}

// State is what this node is doing; see said.
func (v View) State() wire.State {
	switch {
	case v.m.end.leaving:
		return wire.Leaving
	case v.m.join.phase != Ready:
		return wire.Joining
	case !v.m.cfg.Learner || v.m.rounds.Excluded(v.m.self):
		return wire.Observing
	case !v.m.end.may:
		return wire.Stopped
	}
	return wire.Training
}

// quiet says that nothing is left to publish or to fold.
func (m *Machine) quiet() bool {
	s := m.rounds.Status()
	return s.Flushed && s.Settled
}

func (m *Machine) updateHeartbeats(now Time) {
	s := gossip.SelfState{
		State: m.said(), Steps: m.learning.steps, Tokens: m.learning.tokens,
		TokensPerSecond: m.learning.perSecond, Bits: m.learning.bits, Capability: m.learning.capability,
		Upload: m.learning.upload, Full: m.learning.full, Plan: uint32(m.rounds.Plan().Steps), Paused: m.pause.on,
	}
	s.Unfinished, s.Unreached = !m.quiet(), !m.join.met && !m.cfg.Alone
	for p := range m.rounds.Fragments() {
		s.Unpublished = append(s.Unpublished, m.promised(p))
	}
	m.gossip.SetSelf(now, s)
}

// said is what heartbeats say that this node is doing. One that may sign nothing is to others as
// one that never trains: nobody is to wait for it.
func (m *Machine) said() wire.State {
	state := m.View().State()
	if m.marks.asking && (state == wire.Training || state == wire.Stopped) {
		return wire.Observing
	}
	return state
}

// promised are the tokens of a fragment that others may count on: none while this node may
// sign nothing. Others would stand still for them for minutes, and it may give them up at last.
func (m *Machine) promised(p int) uint64 {
	if m.marks.asking {
		return 0
	}
	return m.rounds.Fragment(p).Promised()
}

// over says whether the run has ended. Every fragment reached its budget, this
// node has nothing left that it may publish or that it folds, and all live peers have shown
// the same digests for the longest of their heartbeat periods. A peer that goes on saying otherwise and
// brings nothing is waited for only so long.
func (m *Machine) over(now Time) bool {
	if s := m.rounds.Status(); !s.Ended || !s.Settled || m.cfg.Learner && !s.Flushed && !m.marks.asking {
		return false
	}
	if m.stoodStill(now, holdUpHeartbeats) || m.reachedFor(now, changesTimes) {
		return true
	}
	agreed, since := m.gossip.Chains().Agreed(now)
	return agreed && now-max(since, m.end.moved) >= m.gossip.Chains().QuietMs()
}

// holdUpHeartbeats is for how many heartbeat periods without a change peers can hold up
// the end by showing other digests, or that they train. It is three times what
// makes a peer silent; an honest one publishes or repairs within it.
const holdUpHeartbeats = 30

// changesTimes is how many times as long a node waits at the end while changes come: the last
// deltas of others come within one, and what is reconciled after that within another.
const changesTimes = 3

// reachedFor says that the budget was reached so many times as long ago as peers can hold up the end
// without a change. What changes since then is no work that the run needs, and keys that cost
// nothing can bring changes for ever.
func (m *Machine) reachedFor(now Time, times int64) bool {
	return m.end.reached > 0 && m.long((now-m.end.reached)/times, holdUpHeartbeats)
}

// tooLate says whether gossip brings a delta of a closed round no more, as the end was reached long ago. Whoever has
// one in its set brings it by repair. Other keys that sign for closed rounds would have all fold again for ever.
func (m *Machine) tooLate(now Time, d outer.Delta) bool {
	return m.reachedFor(now, 1) && d.Round <= m.rounds.Fragment(d.Fragment).Closed()
}

// FoldedTokens is sum_p n_p T_p / sum_p n_p over the adopted tips: it drives
// the budget. See Progress for the learning rate.
func (v View) FoldedTokens() uint64 {
	return uint64(v.m.cfg.Plan.Mean(func(p int) uint64 { return v.m.rounds.Fragment(p).Tip().Tokens }))
}

// Counts are totals for the status screen.
func (v View) Counts() (refused, late uint64) { return v.m.refused, v.m.late }
