package rounds

import (
	"fmt"
	"slices"

	"atoll/optimizer/outer"
)

// Install replaces every fragment by the tips of a snapshot of another node (all
// of one chain). history[p] ends with the link of tips[p] and reaches back as
// far as that node could show; own deltas named there count as folded, and
// those folded here in rounds that it lists without them are discarded: adding
// them back would undo what the winner's learners made of these rounds. common[p], if
// known, is the round up to which others are known to have folded the same: it only
// tells what is lost with a chain.
func (m *Machine) Install(now Time, tips []*outer.Tip, history [][]outer.Link, common []uint32) error {
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
		if common != nil {
			f.own.common = common[i]
		}
		f.own.leave(&f.chain, history[i][0])
		f.reset(t, slices.Clone(history[i]))
		m.revoke(f)
		m.adopt(f, true)
	}
	m.each(now)
	return nil
}

// Restored is the state of one fragment that a node finds on its disk.
type Restored struct {
	Tip     *outer.Tip    // newest kept base
	History []outer.Link  // ends with the link of Tip; bases older than it are of no use
	Bases   []uint32      // all kept bases up to Tip, ascending
	Held    []outer.Delta // deltas with payload, of rounds above the oldest base
	Own     []OwnDelta    // own deltas inside the window
	Mark    uint32        // highest round ever signed
	Closed  uint32        // last round closed before the restart
}

// ReachGenesis makes the tip of genesis, which no disk needs to keep, the oldest base
// of a young fragment: one whose first round is in the union window still. Without it
// a node that was restarted could not refold a fork that is older than the bases on its
// disk, and would leave a chain that everybody else reconciles with. Held is to be the
// deltas of all rounds; what it does not need is taken away: all up to the oldest
// base if genesis is out of reach, as a record or a payload on the way is missing.
func (s *Restored) ReachGenesis(p outer.Params, genesis *outer.Tip) {
	oldest := s.Bases[0]
	if oldest == 0 {
		return
	}
	if s.reaches(p) {
		s.Bases = slices.Insert(slices.Clone(s.Bases), 0, 0)
		s.History = slices.Insert(slices.Clone(s.History), 0, outer.Link{State: genesis.State})
		return
	}
	s.Held = slices.DeleteFunc(s.Held, func(d outer.Delta) bool { return d.Round <= oldest })
}

// reaches says whether all rounds of the fragment can be folded again.
func (s *Restored) reaches(p outer.Params) bool {
	if s.Tip.Round > p.WindowUnion || s.History[0].Round != 1 {
		return false
	}
	held := map[outer.ID]bool{}
	for _, d := range s.Held {
		held[d.ID] = true
	}
	for _, l := range s.History {
		if l.Round <= s.Bases[0] && slices.ContainsFunc(l.Folded, func(id outer.ID) bool { return !held[id] }) {
			return false
		}
	}
	return true
}

// Restore puts a fragment back to what the disk holds and closes again what
// had been closed; the folds this needs are asked for as effects. It returns
// the seqs of own deltas that the restored tip already contains.
func (m *Machine) Restore(now Time, fragment int, s Restored) (folded []uint64) {
	f := m.frags[fragment]
	f.reset(s.Tip, slices.Clone(s.History))
	f.chain.bases = slices.DeleteFunc(slices.Clone(s.Bases), func(b uint32) bool { return b < f.chain.first })
	f.chain.base = f.chain.bases[0]
	f.own.mark = s.Mark
	for _, d := range s.Held {
		if d.Round > f.chain.base && (d.Guest || !slices.Contains(f.deltas.excluded[d.Author], d.Round)) {
			r := f.deltas.round(d.Round)
			if !d.Guest {
				r.proposed = now
			}
			r.insert(entry{delta: d, priority: outer.PriorityOf(m.run, d)})
			r.hold(r.find(d.ID))
			m.thin(f, r, d.Round)
		}
	}
	m.revoke(f)
	f.reopen()
	f.touchUnfolded(m.p)
	for _, o := range s.Own {
		own := newOwn(o)
		if l, ok := f.chain.link(own.round); ok && slices.Contains(l.Folded, own.id) {
			own.folded = true
			folded = append(folded, own.Seq)
		}
		f.own.list = append(f.own.list, own)
	}
	f.proposal.before = s.Closed
	m.CloseTo(now, fragment, s.Closed)
	return folded
}

// touchUnfolded marks the closed rounds whose set is not what their link folded:
// late deltas were stored, and the node stopped before the refold.
func (f *fragment) touchUnfolded(p outer.Params) {
	for r := f.chain.base + 1; r <= f.chain.closed; r++ {
		if next := outer.NextLink(p, f.chain.links[r-1-f.chain.first], f.deltas.rounds[r].set()); next.Chain != f.chain.links[r-f.chain.first].Chain {
			f.touched(r)
			return
		}
	}
}
