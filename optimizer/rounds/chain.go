package rounds

import (
	"math/bits"
	"slices"

	"atoll/optimizer/outer"
)

// chain is the closed rounds of a fragment, and what is kept of them.
type chain struct {
	closed uint32       // last closed round
	links  []outer.Link // links[i] is round first+i; the last one is round closed
	first  uint32       // round of links[0]
	base   uint32       // oldest round with a kept tip: nothing at or below it can be refolded
	bases  []uint32     // rounds with kept tips, ascending
	tip    *outer.Tip   // newest folded tip
}

func (c *chain) last() outer.Link { return c.links[len(c.links)-1] }

func (c *chain) link(rnd uint32) (outer.Link, bool) {
	if rnd < c.first || rnd > c.closed {
		return outer.Link{}, false
	}
	return c.links[rnd-c.first], true
}

// baseBelow is the newest kept base older than the round.
func (c *chain) baseBelow(rnd uint32) uint32 {
	best := c.bases[0]
	for _, b := range c.bases {
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

// windowEdge is the round before the oldest one in the union window.
func windowEdge(p outer.Params, closed uint32) uint32 { return closed - min(closed, p.WindowUnion) }

// relink recomputes the chain above start from the sets as they are now. Late
// deltas may let the budget be reached earlier: the rounds closed since the
// fragment's last one are open again, and stay so.
func (f *fragment) relink(p outer.Params, start uint32) {
	for r := start + 1; r <= f.chain.closed; r++ {
		prev := f.chain.links[r-1-f.chain.first]
		if prev.Ended() {
			f.chain.links, f.chain.closed = f.chain.links[:r-f.chain.first], r-1
			f.reopen()
			return
		}
		f.chain.links[r-f.chain.first] = outer.NextLink(p, prev, f.deltas.rounds[r].set())
	}
}

// recordStates records the state digests of rounds whose chain is still the one
// that was folded.
func (c *chain) recordStates(job *foldJob, states []outer.Digest) {
	for i, l := range job.links {
		if cur, ok := c.link(l.Round); ok && cur.Chain == l.Chain {
			c.links[l.Round-c.first].State = states[i]
		}
	}
}

// expire forgets what is older than the union window and than the base from
// which that window is refolded.
func (m *Machine) expire(f *fragment) {
	final := min(windowEdge(m.p, f.chain.closed), f.chain.base)
	if f.chain.first >= final {
		return
	}
	for r := range f.deltas.rounds {
		if r <= final {
			delete(f.deltas.rounds, r)
		}
	}
	f.chain.links = slices.Delete(f.chain.links, 0, int(final-f.chain.first))
	f.chain.first = final
}

// dropBases drops the bases that are no longer needed: of those up to the fold's
// start and those that it made, the spacing wants some, and the oldest round of
// the window needs one below it, of whatever round.
func (m *Machine) dropBases(f *fragment, job *foldJob) {
	kept := func(r uint32) bool { return keepsBase(r, f.chain.tip.Round) }
	had := slices.Clone(f.chain.bases)
	made := append(slices.Clone(job.keep), f.chain.tip.Round)
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
	for len(keep) > 1 && keep[1] <= windowEdge(m.p, f.chain.tip.Round) {
		keep = keep[1:]
	}
	all := append(had, made...)
	slices.Sort(all)
	for _, b := range slices.Compact(all) {
		if !slices.Contains(keep, b) {
			m.emit(DropBase{Fragment: f.index, Round: b})
		}
	}
	f.chain.bases, f.chain.base = keep, keep[0]
}
