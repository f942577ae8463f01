package core

import "atoll/gossip/wire"

// pause is the wish of the owner that this node costs nothing for now. It steps no more and
// publishes what it has, as one that leaves. Then it rests: its rounds stand still, it
// fetches nothing and gives nothing away. It sends heartbeats, so that others know that they
// need not wait. When it goes on it is as one that slept.
type pause struct {
	on      bool
	since   Time // when it was wished, or a step came that was under way then
	resting bool
	rested  Time // since when
}

// restWithinMs is how long a node that is paused tries to publish what it has. What nobody
// took by then goes out when the node goes on.
const restWithinMs = 60_000

// Pause has this node pause, or go on.
func (m *Machine) Pause(now Time, on bool) {
	if on == m.pause.on {
		return
	}
	m.pause.on, m.pause.since = on, now
	if !on {
		m.goOn(now)
		m.end.stepped = now
	}
	m.Tick(now)
}

// SetDown sets what this node may receive from now on, in bytes per ms; 0 is no limit.
func (m *Machine) SetDown(bytesPerMs float64) { m.gossip.SetDown(bytesPerMs) }

// Paused says whether the owner has this node paused, and Resting whether nothing is left
// that it publishes first.
func (v View) Paused() bool  { return v.m.pause.on }
func (v View) Resting() bool { return v.m.pause.resting }

// tickPause begins the rest once there is nothing to publish.
func (m *Machine) tickPause(now Time) {
	if !m.pause.on || m.pause.resting || m.end.leaving {
		return
	}
	if m.join.phase == Ready && !m.View().MayLeave() && now-m.pause.since < restWithinMs {
		return
	}
	m.pause.resting, m.pause.rested = true, now
	m.gossip.Pause(now, true)
}

// goOn ends a rest.
func (m *Machine) goOn(now Time) {
	if !m.pause.resting {
		return
	}
	m.pause.resting = false
	m.gossip.Pause(now, false)
	m.rounds.Resumed(now)
	m.heard.forget() // peers published meanwhile, and may have lost it again
	m.end.moved, m.end.came, m.end.reached = now, now, now
	m.join.rested(now - m.pause.rested)
	m.gossip.Compare(now, wire.PeerID{})
}

// steppedPaused has a node that rests publish a step that was under way when it was paused.
func (m *Machine) steppedPaused(now Time) {
	if m.pause.resting {
		m.goOn(now)
		m.pause.since = now
	}
}

// rested moves the times of a way into the run by those for which the node rested.
func (j *join) rested(ms Time) {
	for _, at := range []*Time{&j.since, &j.began, &j.fetching, &j.holder, &j.asked} {
		if *at > 0 {
			*at += ms
		}
	}
}
