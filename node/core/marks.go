package core

import (
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// marks is what a key without its disk does before it signs anything: peers say
// which rounds it has signed. It trains meanwhile, and publishes what came of it
// when it may. No bound but what they say would do: how far a chain went on the other
// side of a cut follows from nothing that is known on this one.
type marks struct {
	asking bool
	since  Time     // when this process began
	closed []uint32 // by those who answered, by fragment; nil until they are enough
}

// markMargin is how many rounds above the highest known own one are left out too.
// One may be on its way that no peer has shown yet, and the next was perhaps
// signed when the disk was lost.
const markMargin = 2

// keyOnlyMs is how long a key without its disk waits for all peers that may know
// what it signed (see gossip.Core.AwaitsOwn). It is long enough for peers that
// restart or are cut off; after it, peers that could contradict are gone. Should one
// come back after all, what both sides hold of a round proves equivocation, and the key is
// excluded.
const keyOnlyMs = 600_000

// askMarks holds all signing until marksKnown.
func (m *Machine) askMarks() {
	if !m.cfg.KeyOnly || !m.cfg.Learner {
		return
	}
	m.marks.asking = true
	m.rounds.Withhold(true)
}

// tickMarks gives up asking where nobody can answer: a founder that begins the run is
// alone, or with newcomers. Peers that could and do not keep nobody for ever.
func (m *Machine) tickMarks(now Time) {
	if !m.marks.asking {
		return
	}
	m.beginMarks(now)
	waited := now - m.marks.since
	nobody := m.foundsNow() && waited >= m.cfg.AloneMs && !m.sourceInSight() && !m.gossip.AwaitsOwn()
	if nobody || waited >= keyOnlyMs || m.reached() {
		m.marksKnown()
	}
}

// ownKnown takes it that peers have told what they know.
func (m *Machine) ownKnown(closed []uint32) {
	if m.marks.closed = closed; m.reached() {
		m.marksKnown()
	}
}

// reached says that peers have told what they know, and that every round which they closed is closed here too. They know
// nothing of rounds below their bases, and may be on another chain than this node: what it signed there it would sign again.
func (m *Machine) reached() bool {
	for p, closed := range m.marks.closed {
		if m.rounds.Fragment(p).Closed() < closed {
			return false
		}
	}
	return m.marks.closed != nil
}

// beginMarks records when this process began, and asks.
func (m *Machine) beginMarks(now Time) {
	if m.marks.asking && m.marks.since == 0 {
		m.marks.since = now
		m.gossip.AskOwn(now, m.foundsNow())
	}
}

// comesBack says that this node took part in the run, as far as it can tell, and has
// nothing of it. A node that has more would undo what this one would make of
// genesis.
func (m *Machine) comesBack() bool { return m.marks.asking && !m.foundsNow() && !m.join.restored }

// foundsNow says that this node was started to begin the run: its link names nobody,
// and the run is young. Then nobody need know of deltas of this key. A founder comes
// back to a run that went on without it, or its link names peers. Then it was there
// before, or the named peers were. A peer that was not there can tell it nothing.
func (m *Machine) foundsNow() bool {
	return m.cfg.Alone && m.marks.since-m.cfg.Params.CreatedMs < keyOnlyMs
}

// ComesBack says that this node may sign nothing yet, as peers may know of more that its key signed.
func (v View) ComesBack() bool { return v.m.marks.asking }

func (m *Machine) marksKnown() {
	if m.marks.asking {
		m.marks.asking = false
		m.emit(MarksKnown{})
		m.rounds.Withhold(false)
	}
}

// signedBefore takes a delta of this node's own key. One above the mark was
// signed on a disk that is lost.
func (m *Machine) signedBefore(id wire.Digest, h wire.Header) {
	p := int(h.Fragment)
	if _, own := m.headers[id]; own || h.Round <= m.rounds.Fragment(p).Mark() {
		return
	}
	m.rounds.RaiseMark(p, h.Round+markMargin)
	m.emit(RaiseMark{Fragment: p, Round: h.Round + markMargin})
}

// isOwn says whether a delta bears this node's key.
func (m *Machine) isOwn(d outer.Delta) bool { return wire.PeerID(d.Author) == m.self }
