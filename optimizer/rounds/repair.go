package rounds

import (
	"slices"

	"atoll/optimizer/outer"
)

// Damage is what of a fragment turned out to be damaged.
type Damage uint8

const (
	// DamagedTip is the tip that the learner stands on: memory is corrupt.
	DamagedTip Damage = iota
	// DamagedOwn is an own delta that is lost: the learner does not know any more what
	// is unpublished.
	DamagedOwn
	// DamagedBase is a kept base.
	DamagedBase
)

// Damaged takes what is damaged of a fragment: a base is the one of round rnd.
func (m *Machine) Damaged(now Time, fragment int, what Damage, rnd uint32) {
	f := m.frags[fragment]
	switch what {
	case DamagedTip:
		f.damagedTip()
	case DamagedOwn:
		f.folds.repair, f.folds.reload = true, true
	case DamagedBase:
		m.damagedBase(f, rnd)
	}
	m.advance(now, f)
}

// damagedTip has the tip folded again from the base below it, or read again,
// unless a sound one is on its way to the learner already.
func (f *fragment) damagedTip() {
	if f.chain.tip.Sound() {
		return
	}
	f.folds.repair = true
	if f.chain.baseBelow(f.chain.tip.Round) < f.chain.tip.Round {
		f.touched(f.chain.tip.Round)
	} else {
		f.folds.reload = true
	}
	f.folds.askedAt = 0 // at once
}

// damagedBase has the next older base take its place. Where there is none, another
// node has to serve a snapshot. If it is the tip itself, what the local parameters got
// from it is not to be trusted.
func (m *Machine) damagedBase(f *fragment, rnd uint32) {
	f.folds.repair = f.folds.repair || rnd == f.chain.tip.Round
	switch {
	case len(f.chain.bases) > 1:
		f.chain.bases = slices.DeleteFunc(f.chain.bases, func(b uint32) bool { return b == rnd })
		f.chain.base = f.chain.bases[0]
		f.folds.reload = false
		f.touched(rnd) // folds begin below it from now on
	case slices.Contains(f.chain.bases, rnd):
		m.emit(WantSnapshot{})
	}
}

// Recheck folds a fragment again from the kept base of a round up to which its
// state is agreed on, because a peer with the same chain shows another state.
// Checked says whose is wrong.
func (m *Machine) Recheck(now Time, fragment int, shared uint32) {
	f := m.frags[fragment]
	if !slices.Contains(f.chain.bases, shared) || shared >= f.chain.tip.Round {
		return
	}
	f.folds.check = shared + 1
	m.advance(now, f)
}

// Repaired says what a damaged tip or own delta cost the learner.
func (m *Machine) Repaired(now Time, fragment int, loss outer.Loss) {
	f := m.frags[fragment]
	f.lose(loss.Lost)
	f.learn.givenUp = false
	for i := range f.own.list {
		f.own.list[i].gone = f.own.list[i].gone || slices.Contains(loss.Gone, f.own.list[i].Seq)
	}
	m.advance(now, f)
}

// compareStates compares the states of a fold that was a check with those recorded for
// the same chain, and reports what came of it.
func (m *Machine) compareStates(f *fragment, job *foldJob, states []outer.Digest) {
	for i, l := range job.links {
		cur, known := f.chain.link(l.Round)
		if known && cur.Chain == l.Chain && cur.State != (outer.Digest{}) && cur.State != states[i] {
			f.folds.repair = true
			m.emit(Checked{Fragment: f.index, Wrong: true, Round: l.Round})
			return
		}
	}
	m.emit(Checked{Fragment: f.index, Round: job.start + uint32(len(job.links))})
}
