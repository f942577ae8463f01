package core

import (
	"slices"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// tokensNeeded says whether some fragment would still miss tokens of the budget
// if everything known were folded: tips, deltas in flight, own unpublished
// steps, and what peers last said is unpublished. The last steps are dealt out.
// A learner takes one only if the learners before it would still leave
// something missing. So a run ends near its budget however many learners there
// are.
func (m *Machine) tokensNeeded(now Time) bool {
	learners := m.gossip.Peers().Learners(now)
	if m.farFromBudget(now, len(learners)) {
		return true
	}
	first, _ := slices.BinarySearchFunc(learners, m.self, wire.PeerID.Compare)
	most, claimants := uint64(0), m.claimants(now)
	for p := range m.rounds.Fragments() {
		missing := m.missing(now, p, claimants)
		if missing > m.stepTokens*uint64(first) {
			return true // whoever of them steps
		}
		most = max(most, missing)
	}
	if most == 0 {
		return false
	}
	learners = m.stepping(learners)
	first, _ = slices.BinarySearchFunc(learners, m.self, wire.PeerID.Compare)
	return most > m.stepTokens*uint64(m.believed(learners[:first]))
}

// stepping are the learners that can be expected to step.
func (m *Machine) stepping(learners []wire.PeerID) []wire.PeerID {
	idles := func(id wire.PeerID) bool { return m.gossip.Peers().Idle(id) || m.absent(id) }
	if !slices.ContainsFunc(learners, idles) {
		return learners
	}
	return slices.DeleteFunc(slices.Clone(learners), idles)
}

// nearSteps is how many steps of every learner before the end each is told of at once: the
// others stop for what is made, and what they have not heard of yet would come on top.
const nearSteps = 2

// announceStep sends a heartbeat after a step near the end.
func (m *Machine) announceStep(now Time) {
	learners := m.gossip.Peers().Learners(now)
	if !m.end.may || len(learners) == 0 || m.farFromBudget(now, len(learners)) {
		return
	}
	most, claimants := uint64(0), m.claimants(now)
	for p := range m.rounds.Fragments() {
		most = max(most, m.missing(now, p, claimants))
	}
	if most <= nearSteps*m.stepTokens*uint64(len(learners)+1) {
		m.gossip.HeartbeatSoon(now)
	}
}

// farFromBudget says that tokens are needed whatever peers claim. It is all that a
// node has to look at until the end is near.
func (m *Machine) farFromBudget(now Time, learners int) bool {
	p := m.cfg.Params
	peers, claim := uint64(m.gossip.Peers().Known()), min(m.mostClaimed(), p.Budget)
	if peers > 0 && claim > p.Budget/peers {
		return false
	}
	others := peers*claim + m.stepTokens*uint64(learners)
	for f := range m.rounds.Fragments() {
		if m.rounds.Fragment(f).Projected(now)+m.rounds.Fragment(f).Promised()+others < p.Budget {
			return true
		}
	}
	return false
}

// claimant is a learner whose claims count, and its newest heartbeat.
type claimant struct {
	author    outer.Author
	heard     heardAuthor
	heartbeat *wire.Heartbeat
	most      uint64 // tokens that it counts for at most
	stepped   uint64 // tokens of the steps since the heartbeat, by the speed that it says
}

// claimants are the learners whose claims count: a delta of them came, and they are here.
// They never count for more than one delta can carry, nor, once claims are weighed, than
// their deltas bear out.
func (m *Machine) claimants(now Time) []claimant {
	claimants := make([]claimant, 0, m.gossip.Peers().Known()) // asked for at every step near the end
	m.gossip.Peers().Heartbeats(func(id wire.PeerID, b *wire.Heartbeat, at gossip.Time) {
		h := m.heard.of(id)
		if !m.counts(id, h) || m.gossip.Peers().Gone(id) {
			return
		}
		v := claimant{author: outer.Author(id), heard: h, heartbeat: b, most: min(m.mostClaimed(), m.heard.most(h))}
		if b.State == wire.Training {
			v.stepped = uint64(min(b.TokensPerSecond*float64(max(0, now-at))/1000, float64(v.most)))
			v.stepped -= v.stepped % max(1, b.Tokens/max(1, b.Steps))
		}
		claimants = append(claimants, v)
	})
	return claimants
}

// claimed estimates the tokens of a fragment that others have made and that are in no delta yet.
// That is what their heartbeats said, less the deltas that came. The whole steps since the last heartbeat, at
// the speed that they said, come on top, and so do deltas that were announced and are still coming.
func (m *Machine) claimed(p int, claimants []claimant, coming map[outer.Author]uint64) (claimed uint64) {
	for i := range claimants {
		v := &claimants[i]
		if p < len(v.heartbeat.Unpublished) {
			u := min(v.heard.unpublished(v.heartbeat, p), v.most) + v.stepped + coming[v.author]
			claimed += min(u, v.most, m.cfg.Params.Budget)
		}
	}
	return claimed
}

// made are the tokens of a fragment that this node knows to be made, and those that others say
// they have made beside them, with what is parked behind rounds of which nothing came or without.
func (m *Machine) made(now Time, p int, parked bool, claimants []claimant) (seen, said uint64) {
	var coming map[outer.Author]uint64
	seen = m.rounds.Fragment(p).Announced(now, parked, func(a outer.Author, tokens uint64) {
		if coming == nil {
			coming = map[outer.Author]uint64{}
		}
		coming[a] += tokens
	})
	return seen + m.rounds.Fragment(p).Promised(), m.claimed(p, claimants, coming)
}

// missing is how many tokens of the budget a fragment lacks if all that is known
// to be made were folded. What is parked does not count once this node has stood still for it: who made the rounds before
// may never give them.
func (m *Machine) missing(now Time, p int, claimants []claimant) uint64 {
	seen, said := m.made(now, p, !m.end.doubted, claimants)
	return m.cfg.Params.Budget - min(seen+said, m.cfg.Params.Budget)
}

// believed is how many of these learners have claims that count.
func (m *Machine) believed(before []wire.PeerID) int {
	n := 0
	for _, id := range before {
		if m.believes(id) {
			n++
		}
	}
	return n
}

// mostClaimed is what one learner's claims count for at most: one delta.
func (m *Machine) mostClaimed() uint64 {
	return uint64(m.cfg.Params.MaxSteps) * m.cfg.Params.MaxTokensPerStep
}

// spent says whether an author steps no more and every delta of a fragment that it makes
// of its last steps was announced, as its last heartbeat and the headers since then tell.
func (m *Machine) spent(fragment int, a outer.Author) bool {
	id := wire.PeerID(a)
	b := m.gossip.Peers().Heartbeat(id)
	if b == nil || b.State != wire.Stopped || fragment >= len(b.Unpublished) {
		return false
	}
	return m.heard.of(id).unpublished(b, fragment) == 0
}

// believes says whether the claims of a peer count: a delta of it came since
// peers were last doubted. Keys are free, work is not. What guests made is no part of the budget.
func (m *Machine) believes(id wire.PeerID) bool { return m.counts(id, m.heard.of(id)) }

func (m *Machine) counts(id wire.PeerID, h heardAuthor) bool {
	return h.believed && !m.guest(id) && !m.rounds.Excluded(outer.Author(id))
}
