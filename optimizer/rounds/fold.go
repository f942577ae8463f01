package rounds

import (
	"fmt"

	"atoll/optimizer/outer"
)

// folds is the fold under way and what is to be folded next.
type folds struct {
	job     *foldJob
	jobs    uint64 // asked for so far
	dirty   uint32 // lowest closed round whose set changed since it was folded; 0 = none
	askedAt Time   // when the last fold was asked for
	retryAt Time   // no fold before: one failed
	check   uint32 // the first round to be folded again and compared with the state recorded; 0 = none
	reload  bool   // the tip is damaged and there is no older base to fold it from
	repair  bool   // the tip that was adopted last is damaged
}

// foldJob is a fold under way.
type foldJob struct {
	id    uint64
	start uint32
	links []outer.Link // rounds start+1..to
	keep  []uint32
	check bool // the states are to be those recorded
}

// FoldResult is what came of a WantFold.
type FoldResult struct {
	Fragment int
	Job      uint64 // of the WantFold
	Tip      *outer.Tip
	States   []outer.Digest // of every round folded
	Err      error          // the fold could not be done: it is asked for again when grace has passed
}

// askFold asks for the tip of the newest closed round when the one held is
// behind it, or when late deltas changed the chain below it. Late deltas
// coalesce: a refold waits for the next close, or for grace to pass; for the least grace
// where the learner steps no more, as nothing else is left to do.
func (m *Machine) askFold(now Time, f *fragment) {
	if f.folds.job != nil || now < f.folds.retryAt {
		return
	}
	behind := f.chain.tip.Round < f.chain.closed
	again := f.folds.reload || f.folds.check != 0 && f.folds.dirty == 0
	if !behind && !again && (f.folds.dirty == 0 || now-f.folds.askedAt < m.coalesces()) {
		return
	}
	m.emit(f.startFold(m.foldStart(f)))
	f.folds.dirty, f.folds.askedAt, f.folds.reload = 0, now, false
}

// coalesces is for how long late deltas wait for others to be folded with them.
func (m *Machine) coalesces() Time {
	if m.stopped {
		return m.p.GraceMinMs
	}
	return m.grace()
}

// foldStart is the base that the next fold begins at. A change of the sets comes
// before a check, which needs the states recorded since the base.
func (m *Machine) foldStart(f *fragment) uint32 {
	start := f.chain.tip.Round
	switch {
	case f.folds.dirty == 0 && f.folds.check != 0:
		return f.chain.baseBelow(min(f.folds.check, start))
	case f.folds.dirty == 0:
		return start
	case f.folds.dirty <= start:
		start = f.chain.baseBelow(f.folds.dirty)
	}
	f.relink(m.p, start)
	return start
}

// startFold describes the fold of rounds start+1 to closed.
func (f *fragment) startFold(start uint32) WantFold {
	f.folds.jobs++
	job := &foldJob{id: f.folds.jobs, start: start, check: f.folds.check != 0 && f.folds.dirty == 0}
	if job.check {
		f.folds.check = 0
	}
	w := WantFold{Fragment: f.index, Job: job.id, Start: start}
	for r := start + 1; r <= f.chain.closed; r++ {
		l, _ := f.chain.link(r)
		job.links = append(job.links, l)
		w.Sets = append(w.Sets, f.deltas.rounds[r].set())
	}
	for r := start + 1; r < f.chain.closed; r++ {
		if keepsBase(r, f.chain.closed) {
			w.Keep = append(w.Keep, r)
		}
	}
	job.keep = w.Keep
	f.folds.job = job
	return w
}

// TakeFold takes the result of a fold that was asked for. That of a fold that was
// overtaken, because tips were installed meanwhile, changes nothing. A chain that
// differs from the one fixed when the fold was asked for is a bug or corrupt memory,
// and an error.
func (m *Machine) TakeFold(now Time, r FoldResult) error {
	f := m.frags[r.Fragment]
	job := f.folds.job
	if job == nil || job.id != r.Job {
		return nil
	}
	f.folds.job = nil
	if r.Err != nil {
		f.touched(job.start + 1)
		f.folds.reload = len(job.links) == 0
		f.folds.retryAt = now + m.grace()
		return nil
	}
	if err := f.checkFold(job, r); err != nil {
		return err
	}
	tip := r.Tip
	if job.check {
		m.compareStates(f, job, r.States)
	}
	f.chain.recordStates(job, r.States)
	f.chain.tip = tip
	if len(job.links) > 0 {
		m.dropBases(f, job)
	}
	m.adopt(f, false)
	m.advance(now, f)
	return nil
}

// checkFold compares the result of a fold with what was asked for.
func (f *fragment) checkFold(job *foldJob, r FoldResult) error {
	if len(r.States) != len(job.links) {
		return fmt.Errorf("fold of fragment %d: %d states for %d rounds", f.index, len(r.States), len(job.links))
	}
	want, _ := f.chain.link(job.start)
	if n := len(job.links); n > 0 {
		want = job.links[n-1]
	}
	tip := r.Tip
	if tip.Round != want.Round || tip.Chain != want.Chain || tip.Tokens != want.Tokens || tip.EndRound != want.EndRound {
		return fmt.Errorf("fold of fragment %d round %d: got chain %x, the deltas held give %x: memory corruption or a bug", f.index, want.Round, tip.Chain[:4], want.Chain[:4])
	}
	return nil
}

// adopt has the learner follow the new tip; whole if it was taken from another node.
func (m *Machine) adopt(f *fragment, whole bool) {
	a := outer.Adopt{Fragment: f.index, Tip: f.chain.tip, Repair: f.folds.repair}
	f.folds.repair = false
	for _, d := range f.own.update(m.p, &f.chain, &a, whole) {
		if d.folded || d.gone {
			f.forget(d)
			continue
		}
		f.learn.pending += d.Steps
		f.learn.unsent += d.Tokens
	}
	m.emit(Adopt{a})
}
