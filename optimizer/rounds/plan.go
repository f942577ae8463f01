package rounds

import (
	"math"

	"atoll/optimizer/outer"
)

// Links is what is known of the links and the speed of the learners that train. All of it
// is local knowledge, mostly claims of peers: it decides how often this learner publishes,
// and no bits.
type Links struct {
	Steps     float64 // inner steps per second of all learners together
	Upload    float64 // bytes per second that the uplinks of all nodes carry together, 0 = not known
	Copies    int     // of each delta that travel: one for each other node
	OwnSteps  float64 // of Steps, those of this learner
	OwnUpload float64 // of Upload, that of this node, 0 = not known
}

// Plan is how many steps this learner's deltas are to have.
type Plan struct {
	Steps  int     // after so many this learner proposes a round: Common, or more if its own link is thinner
	Common int     // what the links of all nodes together carry, at least genesis' H
	Thin   bool    // the links do not carry the run even with the largest H of use
	Real   float64 // steps that its deltas had recently, on average; 0 before the first
}

// What planned steps go by. They follow from bytes and rates alone. By lateness or grace
// they would feed on themselves: longer rounds have a longer grace.
const (
	// planShare is the share of the links that deltas may take. The rest is for heartbeats,
	// repair and joiners, and for what a measured rate is off.
	planShare = 0.75
	// planAbove is how many times what is needed a new plan has, and planMost the most that
	// it may come to before it is made anew: rates that differ by a tenth change nothing.
	planAbove = 1.1
	planMost  = 1.25
	// thinOwn is how many times the common plan a learner's own has to be before it leaves
	// rounds out. Below that it is cheaper to publish a little less.
	thinOwn = 1.5
	// plannedMs is the time between two looks at the links: heartbeats, which bring the rates,
	// are no more frequent.
	plannedMs = 1000
)

// planning is the plan, and what it was made of.
type planning struct {
	Plan
	at    Time // when it was looked at last
	sweep Time // what one own delta of each fragment takes to all others, at most GraceMaxMs; 0 if unknown
}

// SetLinks takes what is known of the links by now.
func (m *Machine) SetLinks(now Time, l Links) {
	p := &m.plan
	if p.at != 0 && now-p.at < plannedMs {
		return
	}
	p.at = now
	bytes := m.SweepBytes() * min(1, float64(m.p.LearnersPerRound)/float64(max(1, len(m.peerList.training))))
	common := stepsFor(bytes*float64(l.Copies)*l.Steps, l.Upload)
	own := stepsFor(bytes*l.OwnSteps, l.OwnUpload)
	if l.OwnUpload > 0 {
		p.sweep = Time(min(1000*m.SweepBytes()*float64(l.Copies)/l.OwnUpload, float64(m.p.GraceMaxMs)))
	}
	most := float64(m.mostPlanned())
	p.Thin = max(common, own) > most
	p.Common = m.replan(p.Common, common)
	p.Steps = max(p.Common, m.replan(p.Steps, own))
}

// stepsFor is how many steps have to go by between two deltas of a fragment: demand is
// the bytes per second that one step a delta would make. It is 0 where nobody can say.
func stepsFor(demand, rate float64) float64 {
	needed := demand / (planShare * rate)
	if rate <= 0 || math.IsNaN(needed) {
		return 0
	}
	return needed
}

// replan moves a plan to what is needed, unless it is near enough.
func (m *Machine) replan(plan int, needed float64) int {
	least, most := m.p.H, m.mostPlanned()
	enough, above := min(needed, float64(most)), planMost*needed+1 // a plan is whole steps
	if now := float64(plan); plan >= least && now >= enough && now < above {
		return plan
	}
	if needed <= float64(least) {
		return least
	}
	return int(math.Ceil(min(planAbove*needed, float64(most))))
}

// mostPlanned is the largest plan: beyond what was measured of the codec a round's
// average is worth little, and a delta has a most of steps.
func (m *Machine) mostPlanned() int {
	return max(m.p.H, min(m.p.MostH(), int(m.p.MaxSteps)))
}

// SweepBytes is the bytes of one own delta of each fragment, 0 before the first. Those of
// fragments that this learner has not published yet count as the mean of the others.
func (m *Machine) SweepBytes() float64 {
	sum, known := 0.0, 0
	for _, f := range m.frags {
		if f.learn.size > 0 {
			sum += float64(f.learn.size)
			known++
		}
	}
	if known == 0 {
		return 0
	}
	return sum / float64(known) * float64(len(m.frags))
}

// Plan is how many steps this learner's deltas are to have by now.
func (m *Machine) Plan() Plan { return m.plan.Plan }

// leavesOut says that the own link is so much thinner than those of the others that this
// learner publishes when its plan is full, and not every round.
func (m *Machine) leavesOut() bool {
	return float64(m.plan.Steps) >= thinOwn*float64(m.plan.Common)
}

// averageSteps takes the steps of an own delta into the average. What is published because a
// learner ends says nothing of the plan.
func (m *Machine) averageSteps(steps uint32) {
	switch p := &m.plan; {
	case m.flush:
	case p.Real == 0:
		p.Real = float64(steps)
	default:
		p.Real += (float64(steps) - p.Real) / emaAll
	}
}

// SetPlans takes the steps that peers say they plan for each delta. One that is not named
// publishes in every round.
func (m *Machine) SetPlans(plans map[outer.Author]uint32) { m.peerList.plans = plans }

// due says whether an author publishes in the open round: one whose own link is thinner than
// those of the others leaves rounds out until its plan is full, and nobody waits for it.
func (m *Machine) due(f *fragment, open uint32, a outer.Author) bool {
	plan := float64(m.peerList.plans[a])
	if a == m.self {
		plan = float64(m.plan.Steps)
	}
	if plan < thinOwn*float64(m.plan.Common) {
		return true
	}
	rounds := open - f.deltas.lastOf(a, open, m.p.WindowAccept)
	return float64(rounds)*float64(m.plan.Common) >= plan
}

// lastOf is the last round before one in which an author has a delta, within a window;
// the round before the window if there is none.
func (d *deltas) lastOf(a outer.Author, before, window uint32) uint32 {
	last := before - 1
	for ; last > 0 && last+window >= before; last-- {
		if r := d.rounds[last]; r != nil && r.by(a) {
			break
		}
	}
	return last
}

// leastSteps is the fewest steps of a delta in a round that another learner proposed: a share of the common plan, as HMin is of H.
func (m *Machine) leastSteps() int {
	return max(m.p.HMin, m.p.HMin*m.plan.Common/m.p.H)
}

// hasEnough says whether this learner has enough steps to publish in a round of a fragment.
func (m *Machine) hasEnough(f *fragment) bool {
	if m.leavesOut() {
		return f.learn.since >= m.plan.Steps
	}
	return int(f.learn.pending) >= m.leastSteps()
}
