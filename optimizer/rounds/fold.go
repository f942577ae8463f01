package rounds

import (
	"fmt"
	"math/bits"
	"slices"

	"atoll/optimizer/outer"
)

// askFold asks for the tip of the newest closed round when the one held is
// behind it, or when late deltas changed the chain below it. Late deltas
// coalesce: a refold waits for the next close, or for grace to pass.
func (m *Machine) askFold(now Time, f *fragment) {
	if f.folding != nil || now < f.retryAt {
		return
	}
	behind := f.tip.Round < f.closed
	again := f.reload || f.check != 0 && f.dirty == 0
	if !behind && !again && (f.dirty == 0 || now-f.foldAt < m.grace()) {
		return
	}
	m.emit(f.startFold(m.foldStart(f)))
	f.dirty, f.foldAt, f.reload = 0, now, false
}

// foldStart is the base that the next fold begins at. A change of the sets comes
// before a check, which needs the states recorded since the base.
func (m *Machine) foldStart(f *fragment) uint32 {
	start := f.tip.Round
	switch {
	case f.dirty == 0 && f.check != 0:
		return f.baseBelow(min(f.check, start))
	case f.dirty == 0:
		return start
	case f.dirty <= start:
		start = f.baseBelow(f.dirty)
	}
	f.relink(m.p, start)
	return start
}

// relink recomputes the chain above start from the sets as they are now. Late
// deltas may let the budget be reached earlier: the rounds closed since the
// fragment's last one are open again, and stay so.
func (f *fragment) relink(p outer.Params, start uint32) {
	for r := start + 1; r <= f.closed; r++ {
		prev := f.links[r-1-f.first]
		if prev.Ended() {
			f.links, f.closed = f.links[:r-f.first], r-1
			f.reopen()
			return
		}
		f.links[r-f.first] = outer.NextLink(p, prev, f.rounds[r].set())
	}
}

// startFold describes the fold of rounds start+1 to closed.
func (f *fragment) startFold(start uint32) WantFold {
	f.jobs++
	job := &foldJob{id: f.jobs, start: start, check: f.check != 0 && f.dirty == 0}
	if job.check {
		f.check = 0
	}
	w := WantFold{Fragment: f.index, Job: job.id, Start: start}
	for r := start + 1; r <= f.closed; r++ {
		l, _ := f.link(r)
		job.links = append(job.links, l)
		w.Sets = append(w.Sets, f.rounds[r].set())
	}
	for r := start + 1; r < f.closed; r++ {
		if keepsBase(r, f.closed) {
			w.Keep = append(w.Keep, r)
		}
	}
	job.keep = w.Keep
	f.folding = job
	return w
}

// baseBelow is the newest kept base older than the round.
func (f *fragment) baseBelow(rnd uint32) uint32 {
	best := f.bases[0]
	for _, b := range f.bases {
		if b < rnd {
			best = b
		}
	}
	return best
}

// keepsBase is the spacing of kept bases: a tip of round r stays for twice the
// largest power of two that divides r, so that a refold replays about as many
// rounds as the late delta is old, and the bases kept are some two per
// doubling of the window.
func keepsBase(rnd, closed uint32) bool {
	zeros := bits.TrailingZeros32(rnd) // 32 for round 0
	return rnd <= closed && uint64(closed-rnd) < uint64(2)<<zeros
}

// Folded takes the result of a fold that was asked for: the tip and the state
// digest of every round folded. The result of a fold that was overtaken, because
// tips were installed meanwhile, changes nothing. A chain that differs from the
// one fixed when the fold was asked for is a bug or corrupt memory, and an error.
func (m *Machine) Folded(now Time, fragment int, id uint64, tip *outer.Tip, states []outer.Digest) error {
	f := m.frags[fragment]
	job := f.folding
	if job == nil || job.id != id {
		return nil
	}
	f.folding = nil
	if len(states) != len(job.links) {
		return fmt.Errorf("fold of fragment %d: %d states for %d rounds", fragment, len(states), len(job.links))
	}
	want, _ := f.link(job.start)
	if n := len(job.links); n > 0 {
		want = job.links[n-1]
	}
	if tip.Round != want.Round || tip.Chain != want.Chain || tip.Tokens != want.Tokens || tip.EndRound != want.EndRound {
		return fmt.Errorf("fold of fragment %d round %d: got chain %x, the deltas held give %x: memory corruption or a bug", fragment, want.Round, tip.Chain[:4], want.Chain[:4])
	}
	if job.check {
		m.judge(f, job, states)
	}
	f.noteStates(job, states)
	if m.p.Overwrite && tip.Round > f.tip.Round && tip.Tokens != f.tip.Tokens {
		f.pending, f.unsent = 0, 0 // as the learner's are when it adopts
	}
	f.tip = tip
	if len(job.links) > 0 {
		m.dropBases(f, job)
	}
	m.adopt(f, false)
	m.advance(now, f)
	return nil
}

// FoldFailed says that a fold could not be done; it will be asked for again
// when grace has passed.
func (m *Machine) FoldFailed(now Time, fragment int, id uint64) {
	f := m.frags[fragment]
	if f.folding == nil || f.folding.id != id {
		return
	}
	f.touched(f.folding.start + 1)
	f.reload = len(f.folding.links) == 0
	f.folding, f.retryAt = nil, now+m.grace()
}

// noteStates records the state digests of rounds whose chain is still the one
// that was folded.
func (f *fragment) noteStates(job *foldJob, states []outer.Digest) {
	for i, l := range job.links {
		if cur, ok := f.link(l.Round); ok && cur.Chain == l.Chain {
			f.links[l.Round-f.first].State = states[i]
		}
	}
}

// dropBases drops the bases that are no longer needed: of those up to the fold's
// start and those that it made, the spacing wants some, and the oldest round of
// the window needs one below it, of whatever round.
func (m *Machine) dropBases(f *fragment, job *foldJob) {
	kept := func(r uint32) bool { return keepsBase(r, f.tip.Round) }
	had := slices.Clone(f.bases)
	made := append(slices.Clone(job.keep), f.tip.Round)
	keep := []uint32{had[0]}
	for _, b := range had[1:] {
		if b <= job.start && kept(b) {
			keep = append(keep, b)
		}
	}
	for _, b := range made {
		if kept(b) {
			keep = append(keep, b)
		}
	}
	for len(keep) > 1 && keep[1] <= m.windowEdge(f.tip.Round) {
		keep = keep[1:]
	}
	all := append(had, made...)
	slices.Sort(all)
	for _, b := range slices.Compact(all) {
		if !slices.Contains(keep, b) {
			m.emit(DropBase{Fragment: f.index, Round: b})
		}
	}
	f.bases, f.base = keep, keep[0]
}

// adopt tells the learner what the new tip changes for it; whole if it was
// taken from another node.
func (m *Machine) adopt(f *fragment, whole bool) {
	a := outer.Adopt{Fragment: f.index, Tip: f.tip, Heal: f.heal}
	f.heal = false
	f.settle(m.p, &a, whole)
	m.emit(a)
}

// Install replaces every fragment by tips taken whole from another node (all
// of one chain). history[p] ends with the link of tips[p] and reaches back as
// far as that node could vouch for; own deltas named there count as folded, and
// those folded here in rounds that it lists without them are discarded: adding
// them back would undo what the winner's learners made of these rounds.
func (m *Machine) Install(now Time, tips []*outer.Tip, history [][]outer.Link) error {
	if len(tips) != len(m.frags) || len(history) != len(m.frags) {
		return fmt.Errorf("install: %d tips for %d fragments", len(tips), len(m.frags))
	}
	for i, t := range tips {
		h := history[i]
		if len(h) == 0 || h[len(h)-1].Round != t.Round || h[len(h)-1].Chain != t.Chain {
			return fmt.Errorf("install: fragment %d: history does not end with the tip of round %d", i, t.Round)
		}
	}
	for i, t := range tips {
		f := m.frags[i]
		f.leave(history[i][0])
		f.reset(t, slices.Clone(history[i]))
		m.adopt(f, true)
	}
	m.each(now)
	return nil
}
