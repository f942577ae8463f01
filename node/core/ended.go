package core

import "atoll/gossip/wire"

// LastDeltasMs is how long it took, since the last own step, until everything that this
// node had was published and everything that came was folded; 0 where it steps, or is paused.
func (v View) LastDeltasMs() Time {
	if v.m.end.may || v.m.pause.on {
		return 0
	}
	return max(0, v.m.end.unfinished-v.m.end.stepped)
}

// EndStage says what a learner that steps no more waits for, and how long that takes, in
// ms; 0 where nobody can say. The text is empty while it steps, and when the run is over.
func (v View) EndStage() (text string, left Time) {
	m := v.m
	if v.State() != wire.Stopped || m.end.finished || m.pause.on {
		return "", 0
	}
	since := m.end.ticked - m.end.stepped
	switch s := m.rounds.Status(); {
	case !s.Flushed && !m.lastStepsMade(m.end.ticked, false):
		return "waits for the last steps of others", max(0, m.cache.sweepMs-since)
	case !s.Flushed:
		return "publishes its last steps", max(0, m.cache.sweepMs-since)
	case !s.Ended || !s.Settled:
		return "waits for the last deltas of others", max(0, m.cache.sweepMs-since)
	}
	return "waits until all show the same model", m.gossip.Chains().QuietMs()
}

// Missing are the tokens of the budget that nobody has made yet as far as this node knows, as a mean over the fragments, and how
// long, in ms, the deltas of the last ones then take.
func (v View) Missing(now Time) (tokens float64, deltasMs Time) {
	claimants := v.m.claimants(now)
	return v.m.cfg.Plan.Mean(func(p int) uint64 { return v.m.missing(now, p, claimants) }), v.m.cache.sweepMs
}
