package core

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// Phase is how far a node is on its way into the run.
type Phase int

// Phases in the order in which a joiner passes through them. A node that comes
// back with its disk leaves out the second and the third.
const (
	Dialling   Phase = iota // no peer reached yet
	Fetching                // asking for a manifest, fetching chunks
	Installing              // the snapshot is being put together
	Replaying               // folding the rounds since
	Ready                   // trains, contributes and gives snapshots
)

// String is what the screen shows.
func (p Phase) String() string {
	return [...]string{"dialling", "snapshot", "installing", "replaying", "ready"}[p]
}

// Ways out of each phase, so that nobody can keep a node from training.
const (
	// replayMs is how long a joiner tries to show the digests of a live peer
	// before it trains on what it has. It is replayPart times what the fetch
	// took if that is longer: as many rounds closed meanwhile. Repair goes on
	// beside training.
	replayMs   = 60_000
	replayPart = 2
	// outrunTimes is how many repairs with one peer give a joiner all that the peer had closed, and not its digests, before
	// it trains. Where rounds are shorter than the way of a delta it would never show these: a learner that is alone waits
	// for nobody, and its rounds become longer only once others train.
	outrunTimes = 4
	// catchUpHeartbeats is for how many heartbeat periods a node that came back with its
	// disk waits for a peer's heartbeat, and then again for its digests.
	catchUpHeartbeats = 1
	// sayEveryMs is how often a joiner that gets nothing says so, and why.
	sayEveryMs = 10_000
	// holderMs is how long a joiner waits for a silent peer that holds more than
	// genesis: a machine that starts again, a laptop that was closed for a moment.
	// What it would make of genesis meanwhile, that peer's return undoes. Where guests alone hold more,
	// it waits as long for a member.
	holderMs = 600_000
)

// NeedsChunks says that chunks of a snapshot are, or may soon be, asked for or put
// together. Until then the store drops none.
func (v View) NeedsChunks() bool {
	text, _ := v.m.gossip.JoinPhase()
	return v.m.join.phase != Ready || text != ""
}

// join is the way into the run.
type join struct {
	phase    Phase
	since    Time // when the phase began
	began    Time // when the first one did
	fetching Time // when a snapshot was first asked for
	holder   Time // when a peer that holds more than genesis was in sight last; 0 = never
	waits    bool // for its return
	said     Time // when it was last told that nothing comes
	answered bool // a peer that the link names, or any if it names none, was connected
	restored bool // the disk had tips
	met      bool // something of others has reached this node: a snapshot, or a delta of a member that it folded
	source   wire.PeerID
	common   []uint32 // of the snapshot being installed
	asked    Time     // when a peer was last asked what is missing
	rounds   int      // to close when replaying began, as the source had them
}

// Phase is how far this node is on its way into the run.
func (v View) Phase() Phase { return v.m.join.phase }

// Alone says that a node whose link names peers reached none of them and
// trains by itself.
func (v View) Alone() bool { return v.m.join.phase == Ready && v.m.gossip.Peers().Known() == 0 }

// Joins says that this node has no state of the run yet: what is folded, and by whom, it learns with a snapshot.
func (v View) Joins() bool { return v.m.joins() }

// Unanswered says that a newcomer has nothing of the run, and that nobody whom its link names was connected yet: it waits, as
// these may be at work, and cannot be reached by this node alone.
func (v View) Unanswered() bool { return v.m.unanswered() }

func (m *Machine) unanswered() bool {
	return m.cfg.Newcomer && !m.join.answered && !m.join.restored && m.join.phase <= Fetching
}

func (m *Machine) enter(now Time, p Phase) {
	m.join.phase, m.join.since = p, now
	m.end.stepped = now
}

// joins reports whether this node waits for a snapshot. One that came back with its disk
// does not: it trains, and takes one on the way if it must.
func (m *Machine) joins() bool { return m.join.phase != Ready && !m.join.restored }

// joinPeerUp begins to fetch a snapshot from the first peer that shows up.
func (m *Machine) joinPeerUp(now Time, up gossip.PeerUp) {
	named := m.cfg.Gossip.Trusted
	m.join.answered = m.join.answered || !up.Record.Stateless && (len(named) == 0 || slices.Contains(named, up.Peer))
	if m.join.phase != Dialling || m.cfg.Alone && !m.comesBack() {
		return
	}
	if m.join.restored {
		m.enter(now, Replaying)
		return
	}
	m.join.fetching = now
	m.enter(now, Fetching)
	m.gossip.FetchSnapshot(now)
}

func (m *Machine) tickJoin(now Time) {
	if m.join.began == 0 {
		m.join.since, m.join.began = now, now
	}
	switch m.join.phase {
	case Dialling:
		if !m.unanswered() && now-m.join.began >= m.dialMs() && m.rounds.Status().Settled {
			m.enter(now, Ready)
		}
	case Fetching:
		m.tickFetch(now)
	case Replaying:
		m.tickReplay(now)
	}
}

// dialMs is how long a node waits for a first peer. A node that holds rounds of
// the run can do something useful meanwhile. One that begins from genesis would
// make only what is thrown away.
func (m *Machine) dialMs() int64 {
	switch {
	case m.comesBack():
		return keyOnlyMs
	case m.cfg.Alone:
		return 0
	case m.join.restored:
		return min(m.cfg.AloneMs, catchUpHeartbeats*m.gossip.HeartbeatPeriodMs())
	}
	return m.cfg.AloneMs
}

// tickFetch gives up on a snapshot where nobody is left that may give one: a second chain costs all that is trained on it once
// the two meet. Who gives nothing, over a path that loses it, is waited for. Who gives what is proven wrong is not: it
// must keep nobody out.
func (m *Machine) tickFetch(now Time) {
	m.recordHolder(now)
	f := m.gossip.Fetch()
	m.sayNothingComes(now, f)
	if f.Any || m.unanswered() || now-max(m.join.fetching, f.Came) < m.cfg.AloneMs {
		return
	}
	switch {
	case m.comesBack() || m.mayReturn(now):
		m.waitForHolder()
		return
	case f.Wrong > 0:
		m.report(m.join.source, fmt.Sprintf("all peers in sight that gave a snapshot, %d, gave what is proven to be none of this run: trains from genesis and compares with others later", f.Wrong))
	default:
		m.report(m.join.source, "no peer in sight gives a snapshot beyond genesis: trains from genesis")
	}
	m.gossip.CancelFetch(now)
	m.enter(now, Ready)
}

// sayNothingComes tells whose snapshot is waited for, what is wrong with it, and what to do, as long as nothing comes.
func (m *Machine) sayNothingComes(now Time, f gossip.Fetch) {
	if !f.Any || now-max(m.join.fetching, f.Came, m.join.said) < sayEveryMs {
		return
	}
	m.join.said = now
	m.report(f.Source, fmt.Sprintf("nothing of the run's snapshot for %d s: %s; asks on. %s", (now-max(m.join.fetching, f.Came))/1000, lacks(f), nothingComesRemedy))
}

// lacks is what is wrong with a search that brings nothing.
func lacks(f gossip.Fetch) string { return cmp.Or(f.Lacks, "no answer yet") }

// nothingComesRemedy is what a person can do where a peer is there and gives nothing.
const nothingComesRemedy = "`atoll doctor LINK` tells whether the way to it loses large packets; else its owner can look at it"

// mayReturn reports whether a peer that holds more than genesis was in sight recently.
func (m *Machine) mayReturn(now Time) bool { return m.join.holder > 0 && now-m.join.holder < holderMs }

func (m *Machine) waitForHolder() {
	if !m.join.waits {
		m.join.waits = true
		m.report(m.join.source, fmt.Sprintf("no peer in sight gives a snapshot beyond genesis: waits up to %d minutes for one that does", holderMs/60_000))
	}
}

// tickReplay waits until this node shows the digests of a live peer, and asks
// for what it lacks.
func (m *Machine) tickReplay(now Time) {
	equal, live := m.gossip.Chains().Equal(now)
	switch {
	case equal:
		m.report(m.join.source, "digest equal to that of a live peer: trains")
	case live && m.outrun() && m.rounds.Status().Settled:
		m.report(m.join.source, fmt.Sprintf("took %d times all that a peer had closed, which had closed more by then: trains, repair goes on", outrunTimes))
	case now < m.replayUntil(live), !m.rounds.Status().Settled && now < m.replayUntil(live)+replayMs:
		if live && now-m.join.asked >= m.gossip.HeartbeatPeriodMs() {
			m.join.asked = now
			m.gossip.Compare(now, wire.PeerID{})
		}
		return
	case live && !m.join.restored:
		m.report(m.join.source, fmt.Sprintf("no live peer shows the same digests after %d s: trains on what it has, repair goes on", (now-m.join.since)/1000))
	}
	m.enter(now, Ready)
}

// outrun says that this node does not come nearer to a peer by replaying: the peer closes rounds faster than deltas travel.
func (m *Machine) outrun() bool { return m.gossip.Chains().Outran() >= outrunTimes }

// replayUntil is when replaying ends whatever the digests are. With no live peer
// there is nobody to be equal to. A node that came back with its disk waits no
// longer for a peer than the peer's next heartbeat takes.
func (m *Machine) replayUntil(live bool) Time {
	heartbeat := catchUpHeartbeats * m.gossip.HeartbeatPeriodMs()
	switch {
	case m.join.restored && live:
		return m.join.began + 2*heartbeat
	case m.join.restored:
		return m.join.began + heartbeat
	case live:
		return m.join.since + max(replayMs, replayPart*(m.join.since-m.join.fetching))
	}
	return m.join.since + 2*heartbeat
}

// report says something to people about the way in.
func (m *Machine) report(peer wire.PeerID, text string) {
	m.emit(News{gossip.Event{Kind: gossip.EventJoin, Peer: peer, Text: text}})
}

// sourceInSight says whether some live peer is past joining itself. Newcomers
// that know only each other begin the run from genesis.
func (m *Machine) sourceInSight() bool {
	return m.inSight(func(wire.PeerID, *wire.Heartbeat) bool { return true })
}

// recordHolder records when a peer was in sight that holds more than genesis. A guest counts only
// at first sight: a member closed what it holds and may return, but a guest that gives no snapshot
// is no reason to wait for ever.
func (m *Machine) recordHolder(now Time) {
	switch holds := func(id wire.PeerID, b *wire.Heartbeat) bool { return b.Folded > 0 && !m.gossip.Wrong(id) }; {
	case m.inSight(func(id wire.PeerID, b *wire.Heartbeat) bool { return holds(id, b) && !m.guest(id) }):
		m.join.holder, m.join.waits = now, false
	case m.join.holder == 0 && m.inSight(holds):
		m.join.holder = now
	}
}

// inSight says whether some live peer that is past joining itself is one of these.
func (m *Machine) inSight(is func(wire.PeerID, *wire.Heartbeat) bool) bool {
	seen := false
	m.gossip.Peers().Heartbeats(func(id wire.PeerID, b *wire.Heartbeat, _ gossip.Time) {
		seen = seen || b.State != wire.Joining && is(id, b)
	})
	return seen
}

// JoinStage describes for people where this node is on its way in, with the
// share of the phase that is done, 0 to 1.
func (v View) JoinStage() (text string, done float64) {
	if v.m.join.phase == Fetching {
		if f := v.m.gossip.Fetch(); f.Any && v.m.join.said > max(v.m.join.fetching, f.Came) {
			return fmt.Sprintf("nothing comes of the snapshot of %v: %s; %s", f.Source, lacks(f), nothingComesRemedy), 0
		}
		if v.m.join.waits {
			return "waits for a peer that holds more than genesis and is silent", 0
		}
	}
	if text, done = v.m.gossip.JoinPhase(); text != "" {
		return text, done
	}
	if v.m.join.phase != Replaying {
		return v.m.join.phase.String(), 0
	}
	left := v.m.behind()
	v.m.join.rounds = max(v.m.join.rounds, left)
	if left == 0 {
		return "replaying: waits for a peer's digests", 1
	}
	return fmt.Sprintf("replaying %d rounds", left), 1 - float64(left)/float64(v.m.join.rounds)
}

// behind is how many rounds, over all fragments, live peers are ahead of the
// tips held here.
func (m *Machine) behind() (rounds int) {
	for p := range m.rounds.Fragments() {
		ahead := m.rounds.Fragment(p).Closed()
		for _, v := range m.gossip.Peers().All() {
			if v.Heartbeat != nil && !v.Silent && v.Refused == "" {
				ahead = max(ahead, v.Heartbeat.Closed[p])
			}
		}
		rounds += int(ahead - m.rounds.Fragment(p).Tip().Round)
	}
	return rounds
}

// closed are the last rounds that closed here, by fragment.
func (m *Machine) closed() []uint32 {
	closed := make([]uint32, m.rounds.Fragments())
	for p := range closed {
		closed[p] = m.rounds.Fragment(p).Closed()
	}
	return closed
}

// snapshot takes a manifest whose chunks are all stored. One that says round 0
// everywhere is of a run that has not begun: genesis is the tip.
func (m *Machine) snapshot(now Time, e gossip.Snapshot) {
	m.join.source = e.Source
	for _, f := range e.Manifest.Fragments {
		if f.Round > 0 {
			if m.joins() {
				m.enter(now, Installing)
			}
			m.join.common = m.gossip.Chains().CommonWith(e.Manifest.Author)
			m.emit(InstallSnapshot{Manifest: e.Manifest, Common: m.join.common, Closed: m.closed()})
			return
		}
	}
	m.replay(now) // rounds may have closed above it
}

// replay begins to fetch what came since the snapshot.
func (m *Machine) replay(now Time) {
	if m.joins() {
		m.enter(now, Replaying)
		m.join.asked = now
	}
	m.gossip.Compare(now, m.join.source)
}

// ErrInstall says that a peer's snapshot does not fit this run.
var ErrInstall = errors.New("install a snapshot")

// Installed takes the tips that InstallSnapshot came to, with the links that lead to each.
// With ErrUnfit the snapshot does not fit: a joiner asks for another snapshot, and a node that has
// joined goes on with what it has until repair decides anew. Any other err is of the own
// disk, which could not take the snapshot or lost a part of it. In a while the node fetches
// what is missing of the same one.
func (m *Machine) Installed(now Time, tips []*outer.Tip, history [][]outer.Link, err error) error {
	if err != nil {
		m.notInstalled(now, err)
		return nil
	}
	if err := m.rounds.Install(now, tips, history, m.join.common); err != nil {
		return errors.Join(ErrInstall, err)
	}
	m.join.met = true
	m.gossip.Installed(now, m.join.common, nil)
	m.heard.forget() // the snapshot has deltas that never come by themselves
	m.replay(now)
	m.pump(now)
	return nil
}

func (m *Machine) notInstalled(now Time, err error) {
	if errors.Is(err, ErrUnfit) {
		m.gossip.Installed(now, nil, ErrInstall)
	} else {
		m.gossip.Installed(now, nil, gossip.ErrNotStored)
	}
	if m.joins() {
		m.enter(now, Fetching)
		m.gossip.FetchSnapshot(now)
	}
	m.pump(now)
}

// ChunkNotStored says that the own disk could not take a chunk of a StoreChunk.
func (m *Machine) ChunkNotStored(now Time, id wire.Digest) {
	m.gossip.ChunkNotStored(now, id)
	m.pump(now)
}
