package rounds

import (
	"cmp"
	"slices"

	"atoll/optimizer/outer"
)

// stuck is where a fragment cannot fold its chain again, see Stuck.
type stuck struct {
	round   uint32 // the first one; 0 = it can
	lost    []lost
	strayed bool // it went on all the same: what else is lost changes nothing
}

// lost is a delta of a final round whose payload the disk has damaged. It counts as held, so that the round keeps its link.
type lost struct {
	round uint32
	id    outer.ID
}

// sticks notes that a fragment cannot fold a final round.
func (m *Machine) sticks(f *fragment, rnd uint32) {
	first := f.stuck.round == 0
	if first || rnd < f.stuck.round {
		f.stuck.round = rnd
	}
	f.touched(rnd)
	if first {
		m.emit(Stuck{Fragment: f.index, Round: rnd})
	}
}

// Stuck says that some fragment stands still, see the effect Stuck.
func (m *Machine) Stuck() bool {
	return slices.ContainsFunc(m.frags, func(f *fragment) bool { return f.stuck.round != 0 })
}

// GoOn has fragments that stand still go on with what they have, as nobody gives tips. Where a delta is lost they are on a
// chain of their own from its round on, which loses to that of others.
func (m *Machine) GoOn(now Time) {
	for _, f := range m.frags {
		if f.stuck.round != 0 {
			m.goOn(now, f)
		}
	}
}

func (m *Machine) goOn(now Time, f *fragment) {
	first, lost := f.stuck.round, f.stuck.lost
	f.stuck = stuck{strayed: true}
	for _, l := range lost {
		first = min(cmp.Or(first, l.round), l.round)
		r := f.deltas.rounds[l.round]
		if e := r.find(l.id); e != nil && e.held {
			r.unhold(e)
		}
	}
	f.touched(first)
	m.revoke(f)
	if m.seals && f.chain.sealed >= first {
		f.chain.sealed = first - 1
		before, _ := f.chain.link(f.chain.sealed)
		m.emit(Unsealed{Fragment: f.index, Link: before})
	}
	m.advance(now, f)
}
