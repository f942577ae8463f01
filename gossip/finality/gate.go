package finality

import "atoll/gossip/wire"

// Limits on the votes that a node takes from gossip and passes on. What it drops comes another way: a voter asks its
// peers for the votes that it lacks.
const (
	// gateBurst is the votes of one voter that pass at once: those of four views, or a proposal with its proof.
	gateBurst = 12
	// gatePerStep is how many more pass in the time of a step. An honest voter makes fewer.
	gatePerStep = 3
	// gateOthers is as many times a voter's share for all authors together of whom nobody here knows whether they
	// vote: a node that begins does not know the voters yet.
	gateOthers = 2 * MaxVoters
)

// Gate bounds the votes that pass a node. It is not safe for concurrent use.
type Gate struct {
	stepMs int64
	self   wire.PeerID // passes always

	known  bool // the voters are
	table  Table
	height uint32
	shares map[wire.PeerID]*share // of voters, and one with no name for all others
}

// share is what may pass, as of a time.
type share struct {
	votes float64
	at    Time
}

// NewGate is the gate of a node that does not know the voters yet. stepMs is Config.StepMs.
func NewGate(self wire.PeerID, stepMs int64) *Gate {
	return &Gate{stepMs: stepMs, self: self, shares: map[wire.PeerID]*share{}}
}

// Set says who votes, and at which height. Until then everybody may.
func (g *Gate) Set(height uint32, table Table) {
	if table.Len() == 0 || g.known && g.height == height && sameTable(g.table, table) {
		return
	}
	g.known, g.height, g.table = true, height, table
	for id := range g.shares {
		if _, votes := table.Place(id); !votes && id != (wire.PeerID{}) {
			delete(g.shares, id)
		}
	}
}

// Pass reports whether a vote goes on at a time in milliseconds, and counts it.
func (g *Gate) Pass(now Time, v wire.Vote) bool { return g.pass(now, v, 1) }

// Spares is Pass of a vote whose signature was not looked at, and counts nothing.
func (g *Gate) Spares(now Time, v wire.Vote) bool { return g.pass(now, v, 0) }

func (g *Gate) pass(now Time, v wire.Vote, count float64) bool {
	if v.Author == g.self {
		return true
	}
	_, votes := g.table.Place(v.Author)
	switch {
	case !g.known, v.Height > g.height: // perhaps of voters that this node has yet to learn of
		if !votes {
			return g.take(now, wire.PeerID{}, gateOthers, count)
		}
	case !votes, v.Height < g.height:
		return false
	}
	return g.take(now, v.Author, 1, count)
}

// take reports whether an author, who has so many shares, may have one vote more, and takes count of them.
func (g *Gate) take(now Time, author wire.PeerID, shares, count float64) bool {
	s := g.shares[author]
	if s == nil {
		s = &share{gateBurst * shares, now}
		g.shares[author] = s
	}
	passed := float64(max(now-s.at, 0)) / float64(g.stepMs)
	s.votes, s.at = min(s.votes+gatePerStep*shares*passed, gateBurst*shares), max(s.at, now)
	if s.votes < 1 {
		return false
	}
	s.votes -= count
	return true
}
