package rounds

import (
	"slices"

	"atoll/optimizer/outer"
)

// Fragments is the number of fragments.
func (m *Machine) Fragments() int { return len(m.frags) }

// Closed is the last closed round of a fragment.
func (m *Machine) Closed(p int) uint32 { return m.frags[p].closed }

// Base is the oldest round whose tip is kept: deltas of later rounds can still
// be folded.
func (m *Machine) Base(p int) uint32 { return m.frags[p].base }

// Tip is the newest folded tip of a fragment. It must not be changed.
func (m *Machine) Tip(p int) *outer.Tip { return m.frags[p].tip }

// Link is the link of a closed round, while it is inside the union window.
func (m *Machine) Link(p int, rnd uint32) (outer.Link, bool) { return m.frags[p].link(rnd) }

// Links are the links of the union window, oldest first, up to round upTo.
func (m *Machine) Links(p int, upTo uint32) []outer.Link {
	f := m.frags[p]
	from := max(f.first, m.windowEdge(f.closed))
	if upTo < from {
		return nil
	}
	return slices.Clone(f.links[from-f.first : min(upTo, f.closed)-f.first+1])
}

// Set are the deltas of a round whose payload is held. Of a round below the
// kept bases nothing but the ids folded is known; see Link.
func (m *Machine) Set(p int, rnd uint32) []outer.Delta { return m.frags[p].rounds[rnd].set() }

// Version is another number after each change of what Set returns for a round,
// and 0 where it returns nothing. It names a set only in the life of this machine.
func (m *Machine) Version(p int, rnd uint32) uint64 {
	if r := m.frags[p].rounds[rnd]; r.held() > 0 {
		return r.memo
	}
	return 0
}

// By are the deltas of one author in a round whose payload is held.
func (m *Machine) By(p int, rnd uint32, author outer.Author) (out []outer.Delta) {
	if r, ok := m.frags[p].rounds[rnd]; ok {
		for _, e := range r.of(author) {
			if e.held {
				out = append(out, e.delta)
			}
		}
	}
	return out
}

// Known says whether a delta is known, and whether its payload is held.
func (m *Machine) Known(p int, rnd uint32, id outer.ID) (known, held bool) {
	r, ok := m.frags[p].rounds[rnd]
	if !ok {
		return false, false
	}
	e := r.find(id)
	return e != nil, e != nil && e.held
}

// Settled says that every closed round is folded and adopted.
func (m *Machine) Settled() bool {
	for _, f := range m.frags {
		if f.folding != nil || f.dirty != 0 || f.tip.Round != f.closed {
			return false
		}
	}
	return true
}

// Ended says that the adopted tip of every fragment has reached the budget.
func (m *Machine) Ended() bool {
	for _, f := range m.frags {
		end := f.last().EndRound
		if end == 0 || f.tip.Round < end {
			return false
		}
	}
	return true
}

// Flushed says that nothing is left that this learner could still publish.
func (m *Machine) Flushed() bool {
	for _, f := range m.frags {
		if f.drafting || f.pending > 0 && !m.over(f) {
			return false
		}
	}
	return true
}

// over says that the fragment takes no further delta of this learner.
func (m *Machine) over(f *fragment) bool {
	if m.barred[m.self] {
		return true
	}
	end := f.last().EndRound
	return end != 0 && max(f.closed, f.mark) > end
}

// Pending are the steps and tokens of a fragment that this learner has not
// published.
func (m *Machine) Pending(p int) (steps uint32, tokens uint64) {
	return m.frags[p].pending, m.frags[p].unsent
}

// Promised are the tokens of Pending that this learner will be able to publish:
// none where it is barred or the fragment is over, and none where it signed
// rounds far ahead of the open one (on a chain that it left), which others have
// to close first.
func (m *Machine) Promised(p int) uint64 {
	f := m.frags[p]
	if m.over(f) || f.mark > f.closed+1 {
		return 0
	}
	return f.unsent
}

// Projected is how many tokens the fragment will have folded when every delta
// that is held now is, and those whose payload is likely on its way. What is
// parked further ahead, or was announced and never came, does not count.
func (m *Machine) Projected(now Time, p int) uint64 {
	f := m.frags[p]
	total := f.last().Tokens
	for rnd := max(f.first, f.closed-min(f.closed, m.p.WindowAccept)) + 1; rnd <= f.closed+2; rnd++ {
		r := f.rounds[rnd]
		if r == nil || r.have == len(r.entries) && f.allLinked(rnd) {
			continue
		}
		for _, e := range r.entries {
			likely := e.held || e.vouched && now-r.rang < m.p.GraceMaxMs
			if likely && !f.linked(rnd, e) {
				total += e.delta.Tokens
			}
		}
	}
	return total
}

// linked says whether the link of a round names a delta of it. Where nothing
// changed since the links were made, it names all that are held.
func (f *fragment) linked(rnd uint32, e entry) bool {
	switch {
	case !e.held || rnd > f.closed:
		return false
	case f.allLinked(rnd):
		return true
	}
	l, _ := f.link(rnd)
	_, in := slices.BinarySearchFunc(l.Folded, e.delta.ID, outer.CompareIDs)
	return in
}

// allLinked says whether the link of a round names all that are held.
func (f *fragment) allLinked(rnd uint32) bool {
	return rnd <= f.closed && (f.dirty == 0 || rnd < f.dirty)
}

// AllHanded says that some peer holds every own delta that is not folded, and those
// published of late, which others have yet to fold; or that there is nobody to hand
// them to. What nobody took for as long as a round can stay open and is folded
// came to the others with tips.
func (m *Machine) AllHanded(now Time) bool {
	if len(m.live) <= 1 {
		return true
	}
	for _, f := range m.frags {
		for _, o := range f.own {
			if !o.handed && !o.gone && (!o.folded || now-o.at < m.p.GraceMaxMs) {
				return false
			}
		}
	}
	return true
}

// Bases are the rounds of a fragment whose kept tips are on its chain,
// ascending. Those that a refold is about to replace are not among them.
func (m *Machine) Bases(p int) []uint32 {
	f := m.frags[p]
	return slices.DeleteFunc(slices.Clone(f.bases), func(b uint32) bool {
		return f.folding != nil && b > f.folding.start || f.dirty != 0 && b >= f.dirty
	})
}

// InFlight are the tokens of own deltas of a fragment that its tip does not
// contain.
func (m *Machine) InFlight(p int) (tokens uint64) {
	for _, o := range m.frags[p].own {
		if !o.folded && !o.gone {
			tokens += o.tokens
		}
	}
	return tokens
}
