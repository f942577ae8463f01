package rounds

import (
	"slices"

	"atoll/optimizer/outer"
)

// View reads one fragment. What it returns must not be changed.
type View struct {
	m *Machine
	f *fragment
}

// Fragment gives read access to a fragment.
func (m *Machine) Fragment(p int) View { return View{m, m.frags[p]} }

// Closed is the last closed round.
func (v View) Closed() uint32 { return v.f.chain.closed }

// Why says why the open round closes, or what it waits for.
func (v View) Why(now Time) Why { return v.m.whyOf(now, v.f, v.m.why(now, v.f)) }

// Base is the oldest round whose tip is kept: deltas of later rounds can still
// be folded.
func (v View) Base() uint32 { return v.f.chain.base }

// Tip is the newest folded tip.
func (v View) Tip() *outer.Tip { return v.f.chain.tip }

// Mark is the highest round that this learner has signed, or may have.
func (v View) Mark() uint32 { return v.f.own.mark }

// Link is the link of a closed round, while it is inside the union window.
func (v View) Link(rnd uint32) (outer.Link, bool) { return v.f.chain.link(rnd) }

// Links are the links of the union window, oldest first, up to round upTo.
func (v View) Links(upTo uint32) []outer.Link {
	c := &v.f.chain
	from := max(c.first, windowEdge(v.m.p, c.closed))
	if upTo < from {
		return nil
	}
	return slices.Clone(c.links[from-c.first : min(upTo, c.closed)-c.first+1])
}

// Bases are the rounds whose kept tips are on the chain, ascending. Those that a
// refold is about to replace are not among them.
func (v View) Bases() []uint32 {
	f := v.f
	return slices.DeleteFunc(slices.Clone(f.chain.bases), func(b uint32) bool {
		return f.folds.job != nil && b > f.folds.job.start || f.folds.dirty != 0 && b >= f.folds.dirty
	})
}

// Set are the deltas of a round that a fold of it takes. Below the kept bases
// nothing but the ids folded is known of a round; see Link.
func (v View) Set(rnd uint32) []outer.Delta { return v.f.deltas.rounds[rnd].set() }

// Version is another number after each change of what Set returns for a round,
// and 0 where it returns nothing. It names a set only in the life of this machine.
func (v View) Version(rnd uint32) uint64 {
	if r := v.f.deltas.rounds[rnd]; r.held() > 0 {
		return r.cache.version
	}
	return 0
}

// By are the deltas of one author in a round whose payload is held.
func (v View) By(rnd uint32, author outer.Author) (out []outer.Delta) {
	if r, ok := v.f.deltas.rounds[rnd]; ok {
		for _, e := range r.of(author) {
			if e.held {
				out = append(out, e.delta)
			}
		}
	}
	return out
}

// Known says whether a delta is known, and whether its payload is held.
func (v View) Known(rnd uint32, id outer.ID) (known, held bool) {
	r, ok := v.f.deltas.rounds[rnd]
	if !ok {
		return false, false
	}
	e := r.find(id)
	return e != nil, e != nil && e.held
}

// Pending are the steps and tokens that this learner has not published.
func (v View) Pending() (steps uint32, tokens uint64) { return v.f.learn.pending, v.f.learn.unsent }

// Promised are the tokens of Pending that this learner will be able to publish:
// none of a guest, none where it is excluded or the fragment is over, and none where it signed
// rounds far ahead of the open one (on a chain that it left), which others have
// to close first.
func (v View) Promised() uint64 {
	f := v.f
	if v.m.guest || v.m.over(f) || f.own.mark > f.chain.closed+1 {
		return 0
	}
	return f.learn.unsent
}

// Projected is how many tokens the fragment will have folded when every delta
// that is held now is, and those whose payload is likely on its way. What was announced
// and never came does not count; see Announced.
func (v View) Projected(now Time) uint64 {
	return v.Announced(now, true, func(outer.Author, uint64) {})
}

// Announced returns what Projected does. It calls coming with the author and the tokens of each delta
// that was announced, and whose payload is neither held nor likely on its way. What such a delta counts
// for is up to what its author's claim does. Without parked, those deltas do not count that cannot be folded
// before something more comes of the rounds before theirs.
func (v View) Announced(now Time, parked bool, coming func(a outer.Author, tokens uint64)) (projected uint64) {
	f, accept := v.f, v.m.p.WindowAccept
	projected = f.chain.last().Tokens
	opens := f.open()          // the newest round that may open by what is here: one closes by a member's delta of it, or of the next
	var unlinked []entry       // deltas that no link names, those parked ahead included: others have closed these rounds
	var set, all []outer.Delta // with what is linked, as what counts follows from the whole set
	for rnd := max(f.chain.first, f.chain.closed-min(f.chain.closed, accept)) + 1; rnd <= min(f.chain.closed+accept, f.deltas.cache.newest); rnd++ {
		r := f.deltas.rounds[rnd]
		if r == nil || r.have() == len(r.entries) && f.allLinked(rnd) {
			continue
		}
		unlinked, set, all = unlinked[:0], set[:0], all[:0]
		for _, e := range r.entries {
			switch {
			case f.linked(rnd, e):
				set = append(set, e.delta)
			case !e.overflow && (e.held || !r.roomFor(e.delta).beyond(e.priority)): // a full round takes no others
				unlinked = append(unlinked, e)
			}
		}
		if len(unlinked) == 0 || rnd > opens+1 && !parked {
			continue
		}
		if rnd >= opens && slices.ContainsFunc(unlinked, func(e entry) bool { return !e.delta.Guest && (e.held || v.m.likely(now, r, e)) }) {
			opens = rnd + 1
		}
		projected -= v.m.p.CountedOf(set)
		for _, e := range unlinked {
			if e.held || v.m.likely(now, r, e) {
				set = append(set, e.delta)
			} else {
				all = append(all, e.delta)
			}
		}
		projected += v.m.p.CountedOf(set)
		n := len(all)
		if n == 0 {
			continue
		}
		all = append(all, set...)
		for i, tokens := range v.m.p.Counted(all)[:n] {
			coming(all[i].Author, tokens)
		}
	}
	return projected
}

// likely says whether a delta that is not held comes soon: its author proposed the round not
// long ago, and its payload before came.
func (m *Machine) likely(now Time, r *round, e entry) bool {
	return e.trusted && now-r.proposed < m.GraceLimit()
}

// InFlight are the seqs of own deltas that the tip does not contain.
func (v View) InFlight() (seqs []uint64) {
	for _, o := range v.f.own.list {
		if !o.folded && !o.gone {
			seqs = append(seqs, o.Seq)
		}
	}
	return seqs
}

// linked says whether the link of a round names a delta of it. Where nothing
// changed since the links were made, it names all of the set.
func (f *fragment) linked(rnd uint32, e entry) bool {
	switch {
	case !e.held || rnd > f.chain.closed:
		return false
	case f.allLinked(rnd):
		return true
	}
	l, _ := f.chain.link(rnd)
	_, in := slices.BinarySearchFunc(l.Folded, e.delta.ID, outer.CompareIDs)
	return in
}

// allLinked says whether the link of a round names all that are held.
func (f *fragment) allLinked(rnd uint32) bool {
	return rnd <= f.chain.closed && (f.folds.dirty == 0 || rnd < f.folds.dirty)
}

// Status is how far the rounds of all fragments are.
type Status struct {
	Settled bool // every closed round is folded and adopted
	Ended   bool // every fragment has folded its budget
	Flushed bool // nothing is left that this learner could still publish
}

// Status says how far the rounds of all fragments are.
func (m *Machine) Status() Status {
	s := Status{true, true, true}
	for _, f := range m.frags {
		s.Settled = s.Settled && f.settled()
		s.Ended = s.Ended && f.ended()
		s.Flushed = s.Flushed && !f.learn.drafting && (f.learn.pending == 0 || m.over(f))
	}
	return s
}

func (f *fragment) settled() bool {
	return f.folds.job == nil && f.folds.dirty == 0 && f.chain.tip.Round == f.chain.closed
}

// ended says that the adopted tip has reached the budget.
func (f *fragment) ended() bool {
	end := f.chain.last().EndRound
	return end != 0 && f.chain.tip.Round >= end
}

// AllHanded says that some peer holds every own delta that is not folded, and those
// published recently, which others have yet to fold; or that there is nobody to hand
// them to. Nobody takes one that overflows a full round. What nobody took for as
// long as a round can stay open and is folded came to the others with tips.
func (m *Machine) AllHanded(now Time) bool {
	return len(m.peerList.live) <= 1 || !slices.ContainsFunc(m.frags, func(f *fragment) bool {
		return !f.own.allHanded(now, m.p.GraceMaxMs, f.overflows)
	})
}

// overflows says whether a full round keeps an own delta out of its set.
func (f *fragment) overflows(o ownDelta) bool {
	r := f.deltas.rounds[o.round]
	if r == nil {
		return false
	}
	e := r.find(o.id)
	return e != nil && e.overflow
}
