package outer

import "slices"

// OwnDelta is an own delta as the ledger remembers it.
type OwnDelta struct {
	Seq   uint64
	Delta Delta
}

// Restored is the state of one fragment that a node finds on its disk.
type Restored struct {
	Tip     *Tip       // newest kept base
	History []Link     // ends with the link of Tip; bases older than it are of no use
	Bases   []uint32   // all kept bases up to Tip, ascending
	Held    []Delta    // deltas with payload, of rounds above the oldest base
	Own     []OwnDelta // own deltas inside the window
	Mark    uint32     // highest round ever signed
	Closed  uint32     // last round closed before the restart
}

// Restore puts a fragment back to what the disk holds and closes again what
// had been closed; the folds this needs are asked for as effects. It returns
// the seqs of own deltas that the restored tip already contains.
func (m *Rounds) Restore(now Time, fragment int, s Restored) (folded []uint64) {
	f := m.frags[fragment]
	f.reset(s.Tip, slices.Clone(s.History))
	f.bases = slices.DeleteFunc(slices.Clone(s.Bases), func(b uint32) bool { return b < f.first })
	f.base = f.bases[0]
	f.mark = s.Mark
	for _, d := range s.Held {
		if d.Round > f.base && !slices.Contains(f.barred[d.Author], d.Round) {
			r := f.round(d.Round)
			r.rang = now
			r.insert(entry{delta: d, held: true})
		}
	}
	f.reopen()
	f.touchUnfolded(m.p)
	for _, o := range s.Own {
		own := ownRound{seq: o.Seq, id: o.Delta.ID, round: o.Delta.Round, steps: o.Delta.Steps, tokens: o.Delta.Tokens}
		if l, ok := f.link(own.round); ok && slices.Contains(l.Folded, own.id) {
			own.folded = true
			folded = append(folded, own.seq)
		}
		f.own = append(f.own, own)
	}
	m.CloseTo(now, fragment, s.Closed)
	return folded
}

// touchUnfolded marks the closed rounds whose set is not what their link folded:
// late deltas were stored, and the node stopped before the refold.
func (f *fragment) touchUnfolded(p Params) {
	for r := f.base + 1; r <= f.closed; r++ {
		if next := NextLink(p, f.links[r-1-f.first], f.rounds[r].set()); next.Chain != f.links[r-f.first].Chain {
			f.touched(r)
			return
		}
	}
}
