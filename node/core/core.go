package core

import (
	"crypto/ed25519"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
	"atoll/tensor/codec"
)

// Time is milliseconds since the Unix epoch by a clock that stands still while
// the whole node sleeps. A laptop that is closed for an hour must not take its
// peers for silent in that hour. Woke says how long it slept.
type Time = gossip.Time

// Config is what a Machine is made of.
type Config struct {
	Params  outer.Params
	Plan    outer.Plan
	Key     ed25519.PrivateKey
	Run     wire.RunID
	Learner bool // false for an observer
	// Certificate is the digest of the node's certificate, zero in a run that is open to everybody.
	Certificate wire.Digest
	KeyOnly     bool  // the key may have signed rounds that the disk does not know of
	Alone       bool  // the link names no peers: train from genesis at once
	Newcomer    bool  // others had the run before: begin it by no means before one that the link names answered
	AloneMs     int64 // train from genesis when nobody gave a snapshot for so long
	MostDeltas  int   // that a fold of one round takes, see rounds.Config; for tests
	Gossip      gossip.Config
}

// Machine is the protocol of one node.
type Machine struct {
	cfg          Config
	self         wire.PeerID
	rounds       *rounds.Machine
	gossip       *gossip.Core
	headers      map[wire.Digest]*wire.SignedHeader // of deltas in rounds inside the window
	equivocation map[roundKey][]wire.SignedHeader   // both headers, by fragment and round
	out          []Effect
	join         join
	end          ending
	pause        pause
	learning     learning // what the training thread last said of itself

	stepTokens  uint64 // of the last own step
	marks       marks
	contributed map[wire.PeerID]bool // whose deltas were folded here
	audited     map[int]wire.PeerID  // by fragment: whose state the last audit compared
	refused     uint64
	late        uint64
	heard       heard
	attendance  attendance
	cache       cache
}

// roundKey names one round of one fragment.
type roundKey struct {
	fragment int
	round    uint32
}

// New returns the machine of a node that holds the given tips: genesis ones,
// or, before Restore, the newest that its disk has.
func New(cfg Config, tips []*outer.Tip) *Machine {
	m := &Machine{
		cfg:          cfg,
		self:         wire.PeerIDOf(cfg.Key),
		headers:      map[wire.Digest]*wire.SignedHeader{},
		equivocation: map[roundKey][]wire.SignedHeader{},
		heard:        newHeard(cfg.Params.Fragments),

		attendance:  newAttendance(),
		audited:     map[int]wire.PeerID{},
		contributed: map[wire.PeerID]bool{},
		cache:       cache{sets: map[roundKey]setSeen{}},
	}
	m.rounds = rounds.New(rounds.Config{
		Params: cfg.Params, Run: outer.Digest(cfg.Run), Self: outer.Author(m.self), Learner: cfg.Learner, MostDeltas: cfg.MostDeltas,
		ClosedByMost: func(fragment int, rnd uint32) bool { return m.gossip.Chains().ClosedByMost(fragment, rnd) },
		Spent:        m.spent,
		Invites:      m.invites,
		Guest:        cfg.Gossip.Members.Guest(cfg.Gossip.Self),
	}, tips)
	cfg.Gossip.SweepMs = cfg.Params.SweepMs()
	cfg.Gossip.Unpack = codec.Unpack
	m.gossip = gossip.New(cfg.Gossip, chain{m})
	m.askMarks()
	return m
}

// Rounds gives read access to the round machine.
func (m *Machine) Rounds() *rounds.Machine { return m.rounds }

// Gossip gives read access to the gossip core.
func (m *Machine) Gossip() *gossip.Core { return m.gossip }

// View is what can be asked of a machine. It changes nothing, and is for the caller of
// the machine alone.
type View struct{ m *Machine }

// View gives read access to the machine.
func (m *Machine) View() View { return View{m} }

// Effects drains what is to be done, in order.
func (m *Machine) Effects() []Effect {
	out := m.out
	m.out = nil
	return out
}

func (m *Machine) emit(e Effect) { m.out = append(m.out, e) }

// guest reports whether a peer is a guest of the run: its claims count nowhere.
func (m *Machine) guest(id wire.PeerID) bool { return m.cfg.Gossip.Members.Guest(id) }

// Tick lets time pass.
func (m *Machine) Tick(now Time) {
	m.end.ticked = now
	m.updatePeerList(now)
	m.updateLinks(now)
	resting := m.pause.resting
	if !resting {
		m.rounds.Tick(now)
	}
	m.gossip.Tick(now)
	m.tickMarks(now)
	if !resting {
		m.tickJoin(now)
	}
	m.tickEnd(now)
	m.tickPause(now)
	m.pump(now)
}

// Woke says that the node slept for a time that its clock does not count: the process was
// stopped, or the machine suspended.
func (m *Machine) Woke(now Time) {
	m.heard.forget() // peers published meanwhile, and may have lost it again
	m.Tick(now)
}

// Step takes what the network side says: see gossip.Input.
func (m *Machine) Step(now Time, in gossip.Input) {
	m.gossip.Step(now, in)
	switch in := in.(type) {
	case gossip.PeerUp:
		m.beginMarks(now)
		m.joinPeerUp(now, in)
	case gossip.Replied:
		m.handedOver(now, in.Payload)
	case gossip.Received:
		m.heartbeatCame(now, in.Message.Heartbeat)
	default: // means something to gossip alone
	}
	m.pump(now)
}

// heartbeatCame counts what a heartbeat says is made and published, if it is the newest of its author.
func (m *Machine) heartbeatCame(now Time, b *wire.Heartbeat) {
	if b != nil && m.gossip.Peers().Heartbeat(b.Author) == b {
		m.heard.says(now, b.Author, b, max(owedHeartbeats*m.gossip.HeartbeatPeriodMs(), lastTimes*m.cache.sweepMs))
	}
}

// handedOver counts the own delta whose payload somebody has now; the payload may be
// another's, or none.
func (m *Machine) handedOver(now Time, payload wire.Digest) {
	if h, known := m.headers[payload]; known && h.Header.Author == m.self {
		m.rounds.HandedOver(now, int(h.Header.Fragment), outer.ID(payload))
	}
}

// pump moves effects between the two cores until both are quiet.
func (m *Machine) pump(now Time) {
	for {
		up, across := m.gossip.Effects(), m.rounds.Effects()
		if len(up) == 0 && len(across) == 0 {
			return
		}
		for _, e := range across {
			m.fromRounds(now, e)
		}
		for _, e := range up {
			m.fromGossip(now, e)
		}
	}
}

func (m *Machine) fromRounds(now Time, e rounds.Effect) {
	switch e := e.(type) {
	case rounds.Closed:
		m.forgetHeaders(e.Fragment)
		m.attendance.roundClosed(len(e.Link.Folded))
		m.emit(News{e})
	case rounds.WantFold:
		m.creditFold(e)
		m.emit(Work{e})
	case rounds.Adopt:
		m.end.moved, m.end.doubted = now, false
		m.emit(Work{e})
	case rounds.Work:
		m.emit(Work{e})
	case rounds.Checked:
		m.emit(Verdict{Peer: m.audited[e.Fragment], Fragment: e.Fragment, Own: e.Wrong, Round: e.Round})
	case rounds.Revoked:
		m.revoked(e)
	case rounds.Forgot:
		m.forgot(wire.Digest(e.ID))
	case rounds.WantSnapshot:
		m.gossip.FetchSnapshot(now)
	}
}

func (m *Machine) fromGossip(now Time, e gossip.Effect) {
	switch e := e.(type) {
	case gossip.Offer:
		if m.pause.resting {
			return // repair brings it when the node goes on
		}
		m.emit(News{e})
		m.offer(now, e.ID, e.Header, e.Repair)
	case gossip.Fetched:
		m.fetched(now, e)
	case gossip.CatchUp:
		m.rounds.CloseTo(now, e.Fragment, e.Round)
	case gossip.LeaveOut:
		m.rounds.Payload(now, e.Fragment, e.Round, outer.ID(e.ID), rounds.PayloadLost)
	case gossip.EquivocationFound:
		if m.exclude(now, e.Equivocation, false) {
			m.emit(StoreEquivocation{Equivocation: e.Equivocation})
		}
	case gossip.Revoked:
		m.heed(e.Words, nil)
	case gossip.Snapshot:
		m.snapshot(now, e)
	case gossip.OwnHeader:
		m.signedBefore(e.Header.Header.ID(m.cfg.Run), e.Header.Header)
	case gossip.StoreHeader:
		m.headers[e.Header.Header.ID(m.cfg.Run)] = &e.Header
		m.Credit(e.Header.Header.Author)
		m.emit(IO{e})
	case gossip.OwnKnown:
		m.ownKnown(e.Closed)
	case gossip.Audit:
		m.audited[e.Fragment] = e.Peer
		m.rounds.Recheck(now, e.Fragment, e.Shared)
	case gossip.IO:
		m.emit(IO{e})
	case gossip.BaseMismatch, gossip.StateDiffers, gossip.Misbehaved, gossip.Event:
		m.emit(News{e})
	}
}
