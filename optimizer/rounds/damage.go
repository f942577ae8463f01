package rounds

import (
	"slices"

	"atoll/optimizer/outer"
)

// LostBase says that a kept base turned out to be damaged. The next older one
// takes its place; where there is none, another node has to give the tips. If it
// is the tip itself, what theta got from it is not to be trusted.
func (m *Machine) LostBase(now Time, fragment int, rnd uint32) {
	f := m.frags[fragment]
	f.heal = f.heal || rnd == f.tip.Round
	switch {
	case len(f.bases) > 1:
		f.bases = slices.DeleteFunc(f.bases, func(b uint32) bool { return b == rnd })
		f.base = f.bases[0]
		f.reload = false
		f.touched(rnd) // folds begin below it from now on
	case slices.Contains(f.bases, rnd):
		m.emit(WantTips{})
	}
	m.advance(now, f)
}

// Damaged says that the tip which the learner stands on is not what its checksum
// says: memory is corrupt. It is folded again from the base below it, or read
// again, unless a sound one is on its way to the learner already.
func (m *Machine) Damaged(now Time, fragment int) {
	f := m.frags[fragment]
	if f.tip.Sound() {
		return
	}
	f.heal = true
	if f.baseBelow(f.tip.Round) < f.tip.Round {
		f.touched(f.tip.Round)
	} else {
		f.reload = true
	}
	f.foldAt = 0 // at once
	m.advance(now, f)
}

// Recheck folds a fragment again from the kept base of a round up to which its
// state is agreed on, because a peer with the same chain shows another state.
// Checked says whose is wrong.
func (m *Machine) Recheck(now Time, fragment int, shared uint32) {
	f := m.frags[fragment]
	if !slices.Contains(f.bases, shared) || shared >= f.tip.Round {
		return
	}
	f.check = shared + 1
	m.advance(now, f)
}

// Renew says that the learner cannot tell what is unpublished any more, because an
// own delta of the fragment is lost: it gets its tip again, to begin anew from.
func (m *Machine) Renew(now Time, fragment int) {
	f := m.frags[fragment]
	f.heal, f.reload = true, true
	m.advance(now, f)
}

// Healed says what a damaged tip or own delta cost the learner.
func (m *Machine) Healed(now Time, fragment int, loss outer.Loss) {
	f := m.frags[fragment]
	f.pending -= min(f.pending, uint32(loss.Dropped.Steps))
	f.unsent -= min(f.unsent, loss.Dropped.Tokens)
	f.givenUp = false
	for i := range f.own {
		f.own[i].gone = f.own[i].gone || slices.Contains(loss.Gone, f.own[i].seq)
	}
	m.advance(now, f)
}

// judge compares the states of a fold that was a check with those recorded for
// the same chain, and tells what came of it.
func (m *Machine) judge(f *fragment, job *foldJob, states []outer.Digest) {
	for i, l := range job.links {
		cur, known := f.link(l.Round)
		if known && cur.Chain == l.Chain && cur.State != (outer.Digest{}) && cur.State != states[i] {
			f.heal = true
			m.emit(Checked{Fragment: f.index, Wrong: true, Round: l.Round})
			return
		}
	}
	m.emit(Checked{Fragment: f.index, Round: job.start + uint32(len(job.links))})
}
