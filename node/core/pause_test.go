package core

import (
	"slices"
	"testing"

	"atoll/gossip"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// learnerAlone is the machine of a learner that is in and may step.
func learnerAlone(t *testing.T, now Time) *Machine {
	t.Helper()
	m := lone(4, 4, 8)
	m.cfg.Learner, m.cfg.Alone = true, true
	m = New(m.cfg, []*outer.Tip{outer.Genesis(m.cfg.Plan[0], make([]float32, 4), m.cfg.Params)})
	m.Tick(now)
	if e := find[MayStep](m.Effects()); len(e) != 1 || !e[0].Yes {
		t.Fatalf("it may not step: %v", e)
	}
	return m
}

// find returns the effects of one kind, also those that pass through.
func find[E any](effects []Effect) (all []E) {
	for _, e := range effects {
		if e, ok := inner(e).(E); ok {
			all = append(all, e)
		}
	}
	return all
}

// inner is what passes through in an effect, or the effect.
func inner(e Effect) any {
	switch e := e.(type) {
	case IO:
		return e.Effect
	case Work:
		return e.Effect
	case News:
		return e.Event
	}
	return e
}

// A step that was under way when its owner paused a learner is published as well, though it
// rested already; what nobody takes keeps it from its rest for a while only.
func TestStepUnderWayWhenPaused(t *testing.T) {
	now := Time(1_000_000)
	m := learnerAlone(t, now)
	m.Pause(now, true)
	if e := find[MayStep](m.Effects()); len(e) != 1 || e[0].Yes || !m.View().Resting() || m.View().State() != wire.Stopped {
		t.Fatalf("with nothing to publish: %v, rests %v, says %v", e, m.View().Resting(), m.View().State())
	}
	now += 5000
	m.Stepped(now, 8)
	if e := m.Effects(); m.View().Resting() || len(find[rounds.WantDraft](e)) != 1 || len(find[MayStep](e)) != 0 {
		t.Errorf("after a step it rests %v, and wants %v", m.View().Resting(), e)
	}
	if m.Tick(now + restWithinMs - 1); m.View().Resting() {
		t.Error("rests before it gave up")
	}
	if m.Tick(now + restWithinMs); !m.View().Resting() {
		t.Error("never gives up")
	}
	m.Pause(now+restWithinMs, false)
	if e := find[MayStep](m.Effects()); len(e) != 1 || !e[0].Yes || m.View().Resting() || m.View().Paused() {
		t.Errorf("going on: %v", e)
	}
}

// What comes while a node rests is left to repair.
func TestRestTakesNoDeltas(t *testing.T) {
	now := Time(1_000_000)
	m := learnerAlone(t, now)
	m.Pause(now, true)
	comes := func(round uint32) (offers int) {
		h := signed(m, testKey(2), wire.Header{Round: round, Base: round - 1, Steps: 1, Tokens: 1, Size: 17})
		m.Step(now, gossip.Received{Message: wire.Message{Header: &h}})
		return len(find[gossip.Offer](m.Effects()))
	}
	if n := comes(1); n != 0 || len(m.headers) != 0 {
		t.Errorf("%d deltas are offered, %d kept", n, len(m.headers))
	}
	m.Pause(now, false)
	if n := comes(2); n != 1 || len(m.headers) != 1 {
		t.Errorf("going on %d deltas are offered, %d kept", n, len(m.headers))
	}
}

// One that is told to leave while it rests gives what it has.
func TestLeaveWhileResting(t *testing.T) {
	now := Time(1_000_000)
	m := learnerAlone(t, now)
	m.Pause(now, true)
	m.Leave(now)
	m.Tick(now + 1000)
	if m.View().Resting() || m.View().State() != wire.Leaving || !m.View().MayLeave() {
		t.Errorf("rests %v, says %v, may leave %v", m.View().Resting(), m.View().State(), m.View().MayLeave())
	}
	heartbeats := func(b gossip.Publish) bool {
		m, err := wire.Open(m.cfg.Run, b.Bytes)
		return err == nil && m.Heartbeat != nil && m.Heartbeat.State == wire.Leaving
	}
	if !slices.ContainsFunc(find[gossip.Publish](m.Effects()), heartbeats) {
		t.Error("it does not say so")
	}
}
