package aggregation

import (
	"math"

	"atoll/optimizer/outer"
)

// Trust is what liars can do.
type Trust struct {
	// Learner is the most of a fold's weight that one learner's delta has before anybody judges it, and LearnerAfter what is
	// left once it is judged. Judged says that there are enough deltas for that, where its delta is merged.
	Learner      float64 `json:"learner_share"`
	LearnerAfter float64 `json:"learner_share_after"`
	Judged       bool    `json:"learner_judged"`
	// LearnerMean is Learner in the mean over rounds: it does not publish in each.
	LearnerMean float64 `json:"learner_share_mean"`

	// Aggregator is the share of a fold's weight that one aggregator alone moves before somebody makes its merged delta again,
	// and AggregatorAfter what is left after that.
	Aggregator      float64 `json:"aggregator_share"`
	AggregatorAfter float64 `json:"aggregator_share_after"`
	// Group is the share of a merged delta that a fold takes: what all aggregators of a group move together, until then.
	Group float64 `json:"group_share"`
	// Captured is the share of a round's merged deltas whose aggregators are all the liar's, with its share of the learners.
	Captured float64 `json:"captured"`
	// Unseen is the share of these of which all auditors are the liar's as well.
	Unseen float64 `json:"captured_unseen"`
	// Dispute is the time in seconds that a fold waits longer where two aggregators differ.
	Dispute float64 `json:"dispute_s"`
	// Lost is the share of a round's deltas that comes too late for it as all aggregators on their way died. They are folded in
	// a later round.
	Lost float64 `json:"late_share"`
}

// trust is what a plan comes to.
func (c Config) trust() (t Trust) {
	counts, levels := c.counts(), c.levels()
	top := float64(counts[levels])
	judges := float64(counts[0]) // deltas among which a learner's is
	share := 1.0
	if levels > 0 {
		judges = min(judges, float64(c.group()))
		share = judges / float64(counts[0])
	}
	t.Judged = judges >= outer.MinReferences
	t.Learner = share
	if t.Judged {
		t.Learner *= outer.FreeClaim / (judges - 1 + outer.FreeClaim)
	} else {
		t.LearnerAfter = t.Learner
	}
	t.LearnerMean = t.Learner * float64(counts[0]) / float64(c.Learners)
	if levels == 0 {
		return t
	}
	t.Group = 1 / top
	alone := c.Aggregators == 1
	if alone {
		t.Aggregator = t.Group
	}
	all, lost := math.Pow(c.Liars, float64(c.Aggregators)), math.Pow(c.Gone, float64(c.Aggregators))
	t.Captured = 1 - math.Pow(1-all, float64(levels))
	t.Unseen = math.Pow(c.Liars, float64(c.Auditors))
	if c.Auditors == 0 {
		t.AggregatorAfter = t.Aggregator // nobody looks
	}
	t.Dispute = 3*c.Delay.Seconds() + c.auditBytes(levels)*8/c.Rate + c.mergeSeconds(levels)
	t.Lost = 1 - math.Pow(1-lost, float64(levels))
	return t
}

// auditBytes are what somebody fetches that makes a merged delta of a level again.
func (c Config) auditBytes(level int) float64 { return c.members(level) * c.payload(level-1) }

// members is how many deltas are in a merged delta of a level, in the mean.
func (c Config) members(level int) float64 {
	counts := c.counts()
	return float64(counts[level-1]) / float64(counts[level])
}
