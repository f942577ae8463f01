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
	learners = m.stepping(learners)
	first, _ := slices.BinarySearchFunc(learners, m.self, wire.PeerID.Compare)
	most := uint64(0)
	for p, claimed := range m.claims(now) {
		missing := m.missing(now, p, claimed)
		if missing > m.stepTokens*uint64(first) {
			return true
		}
		most = max(most, missing)
	}
	return most > 0 && most > m.stepTokens*uint64(m.place(learners[:first]))
}

// stepping are the learners that can be expected to step.
func (m *Machine) stepping(learners []wire.PeerID) []wire.PeerID {
	idles := func(id wire.PeerID) bool { return m.gossip.Peers().Rests(id) || m.absent(id) }
	if !slices.ContainsFunc(learners, idles) {
		return learners
	}
	return slices.DeleteFunc(slices.Clone(learners), idles)
}

// nearSteps is how many steps of every learner before the end each is told of at once: the
// others stop for what is made, and what they have not heard of yet would come on top.
const nearSteps = 2

// tellStep beats after a step near the end.
func (m *Machine) tellStep(now Time) {
	learners := m.gossip.Peers().Learners(now)
	if !m.end.may || len(learners) == 0 || m.farFromBudget(now, len(learners)) {
		return
	}
	most := uint64(0)
	for p, claimed := range m.claims(now) {
		most = max(most, m.missing(now, p, claimed))
	}
	if most <= nearSteps*m.stepTokens*uint64(len(learners)+1) {
		m.gossip.BeatSoon(now)
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

// claims are the tokens of each fragment that others say they have made, and that
// are in no delta yet.
func (m *Machine) claims(now Time) []uint64 {
	claims, coming := make([]uint64, m.rounds.Fragments()), m.coming(now)
	m.gossip.Peers().Beats(func(id wire.PeerID, b *wire.Beat, at gossip.Time) {
		if h := m.heard.of(id); h.believed && !m.rounds.Barred(outer.Author(id)) && !m.gossip.Peers().Gone(id) {
			m.addClaims(claims, h, b, now-at, coming[outer.Author(id)])
		}
	})
	return claims
}

// coming are the tokens, by author and fragment, of deltas that were announced and have
// been under way for long, or whose author's payload before is under way, too.
func (m *Machine) coming(now Time) map[outer.Author][]uint64 {
	var coming map[outer.Author][]uint64
	for p := range m.rounds.Fragments() {
		m.rounds.Fragment(p).Coming(now, func(a outer.Author, tokens uint64) {
			if coming == nil {
				coming = map[outer.Author][]uint64{}
			}
			if coming[a] == nil {
				coming[a] = make([]uint64, m.rounds.Fragments())
			}
			coming[a][p] += tokens
		})
	}
	return coming
}

// missing is how many tokens of the budget a fragment lacks if all that is known
// to be made were folded.
func (m *Machine) missing(now Time, p int, claimed uint64) uint64 {
	made := m.rounds.Fragment(p).Projected(now) + m.rounds.Fragment(p).Promised() + claimed
	return m.cfg.Params.Budget - min(made, m.cfg.Params.Budget)
}

// place is how many of the live learners that come before this one, by id, are
// those whose word counts.
func (m *Machine) place(before []wire.PeerID) int {
	n := 0
	for _, id := range before {
		if m.believes(id) {
			n++
		}
	}
	return n
}

// mostClaimed is what one learner's word counts for at most: one delta.
func (m *Machine) mostClaimed() uint64 {
	return uint64(m.cfg.Params.MaxSteps) * m.cfg.Params.MaxTokensPerStep
}

// addClaims adds, per fragment, an estimate of the tokens of a live learner that are in no delta
// yet: what its beats said, less the deltas that came, plus the whole steps since the last one at the
// speed that it said, plus the deltas that are still coming. It never counts for more than one delta can
// carry, nor, once words are weighed, than its deltas bear out. The beat is of this age, in ms.
func (m *Machine) addClaims(claims []uint64, h heardAuthor, b *wire.Beat, age Time, coming []uint64) {
	most := min(m.mostClaimed(), m.heard.most(h))
	var stepped uint64
	if b.State == wire.Training {
		stepped = uint64(min(b.TokensPerSecond*float64(age)/1000, float64(most)))
		stepped -= stepped % max(1, b.Tokens/max(1, b.Steps))
	}
	for p := range min(len(claims), len(b.Unpublished)) {
		u := min(h.unpublished(b, p), most) + stepped
		if coming != nil {
			u += coming[p]
		}
		claims[p] += min(u, most, m.cfg.Params.Budget)
	}
}

// spent says whether an author steps no more and every delta of a fragment that it makes
// of its last steps was announced, as its last beat and the headers since then tell.
func (m *Machine) spent(fragment int, a outer.Author) bool {
	id := wire.PeerID(a)
	b := m.gossip.Peers().Beat(id)
	if b == nil || b.State != wire.Stopped || fragment >= len(b.Unpublished) {
		return false
	}
	return m.heard.of(id).unpublished(b, fragment) == 0
}

// believes says whether the word of a peer counts: a delta of it came since
// peers were last doubted. Keys are free, work is not.
func (m *Machine) believes(id wire.PeerID) bool {
	return m.heard.of(id).believed && !m.rounds.Barred(outer.Author(id))
}
