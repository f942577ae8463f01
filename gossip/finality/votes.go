package finality

import (
	"fmt"
	"maps"
	"slices"

	"atoll/gossip/wire"
)

// Limits on the votes that are kept of a height. What is dropped comes again: voters repeat what they signed.
const (
	// viewsAhead is how far ahead of its own view a voter keeps votes: others may be a little faster.
	viewsAhead = 4
	// viewsBehind is how far behind: late precommits may still certify.
	viewsBehind = 64
	// maxOfOne bounds the votes of one voter in one phase of a view: two show that it lies.
	maxOfOne = 2
)

// choice is what a vote is for; the zero choice is none.
type choice struct {
	round uint32
	value wire.Digest
}

func choiceOf(v wire.Vote) choice { return choice{v.Round, v.Value} }

// DoubleVote proves that a voter signed two different votes of one phase, height and view.
type DoubleVote struct{ A, B wire.SignedVote }

// Check verifies the proof.
func (d DoubleVote) Check(run wire.RunID) error {
	a, b := d.A.Vote, d.B.Vote
	if a.Author != b.Author || a.Phase != b.Phase || a.Height != b.Height || a.View != b.View || a == b {
		return fmt.Errorf("double vote of %v: %w: want two votes of one phase, height and view that differ", a.Author, wire.ErrInvalid)
	}
	if err := d.A.Verify(run); err != nil {
		return err
	}
	return d.B.Verify(run)
}

// ballot is the votes of one phase of a view, by author.
type ballot map[wire.PeerID][]wire.SignedVote

// votes are those of one height. They trust that signatures were verified.
type votes struct {
	table  Table
	views  map[uint32]*[wire.Precommit + 1]ballot
	top    map[wire.PeerID]uint32 // by voter: 1 + the highest view that it voted in
	barred map[wire.PeerID]bool   // who voted twice, at whatever height
}

func newVotes(table Table, barred map[wire.PeerID]bool) votes {
	return votes{table, map[uint32]*[wire.Precommit + 1]ballot{}, map[wire.PeerID]uint32{}, barred}
}

// add keeps a vote. another is one of the same place that differs from it, if there is one: then s is kept
// only if there is room, or if proof says that it is part of what a proposer shows.
func (v votes) add(s wire.SignedVote, proof bool) (fresh bool, another *wire.SignedVote) {
	phases := v.views[s.View]
	if phases == nil {
		phases = &[wire.Precommit + 1]ballot{wire.Propose: {}, wire.Prevote: {}, wire.Precommit: {}}
		v.views[s.View] = phases
	}
	have := phases[s.Phase][s.Author]
	if slices.ContainsFunc(have, func(h wire.SignedVote) bool { return h.Vote == s.Vote }) {
		return false, nil
	}
	if len(have) > 0 {
		another = &have[0]
	}
	if len(have) < maxOfOne || proof {
		phases[s.Phase][s.Author] = append(have, s)
		fresh = true
	}
	return fresh, another
}

// saw notes that a voter is in a view, whether its vote is kept or not.
func (v votes) saw(s wire.SignedVote) { v.top[s.Author] = max(v.top[s.Author], s.View+1) }

// of are the votes of a voter in a phase of a view, in the order in which they came.
func (v votes) of(view uint32, phase wire.Phase, author wire.PeerID) []wire.SignedVote {
	if phases := v.views[view]; phases != nil {
		return phases[phase][author]
	}
	return nil
}

// all returns one vote for c of each voter, in the order of the table.
func (v votes) all(view uint32, phase wire.Phase, c choice) (list []wire.SignedVote) {
	for _, id := range v.table.ids {
		for _, s := range v.of(view, phase, id) {
			if choiceOf(s.Vote) == c {
				list = append(list, s)
				break
			}
		}
	}
	return list
}

// counted is all without voters that are barred.
func (v votes) counted(view uint32, phase wire.Phase, c choice) []wire.SignedVote {
	return slices.DeleteFunc(v.all(view, phase, c), func(s wire.SignedVote) bool { return v.barred[s.Author] })
}

// decided returns what more than two thirds voted for in a phase of a view, and their votes.
func (v votes) decided(view uint32, phase wire.Phase) (c choice, by []wire.SignedVote, any bool) {
	tried := map[choice]bool{}
	for _, id := range v.table.ids {
		for _, s := range v.of(view, phase, id) {
			c := choiceOf(s.Vote)
			if tried[c] {
				continue
			}
			tried[c] = true
			if by := v.counted(view, phase, c); v.table.Enough(len(by)) {
				return c, by, true
			}
		}
	}
	return choice{}, nil, false
}

// proven reports whether more than two thirds prevoted for c in some view.
func (v votes) proven(c choice) bool {
	for view := range v.views {
		if v.table.Enough(len(v.all(view, wire.Prevote, c))) {
			return true
		}
	}
	return false
}

// supporters are those who voted for each choice, in whatever phase and view. Who voted twice supports nothing.
func (v votes) supporters() map[choice]map[wire.PeerID]bool {
	found := map[choice]map[wire.PeerID]bool{}
	for _, phases := range v.views {
		for _, ballot := range phases {
			for author, list := range ballot {
				for _, s := range list {
					if c := choiceOf(s.Vote); !v.barred[author] {
						if found[c] == nil {
							found[c] = map[wire.PeerID]bool{}
						}
						found[c][author] = true
					}
				}
			}
		}
	}
	return found
}

// enough reports whether more than two thirds voted in a phase of a view, for whatever.
func (v votes) enough(view uint32, phase wire.Phase) bool {
	n := 0
	for _, id := range v.table.ids {
		if len(v.of(view, phase, id)) > 0 && !v.barred[id] {
			n++
		}
	}
	return v.table.Enough(n)
}

// reached returns the highest view that voters of whom one is honest are in or beyond, and whether there is one.
func (v votes) reached() (view uint32, any bool) {
	var tops []uint32
	for id, top := range v.top {
		if !v.barred[id] {
			tops = append(tops, top)
		}
	}
	slices.SortFunc(tops, func(a, b uint32) int { return int(b) - int(a) })
	for i, top := range tops {
		if v.table.SomeHonest(i + 1) {
			return top - 1, true
		}
	}
	return 0, false
}

// ahead is how many voters are in a later view.
func (v votes) ahead(view uint32) int { return v.from(view + 1) }

// from is how many voters are in a view or beyond.
func (v votes) from(view uint32) (n int) {
	for id, top := range v.top {
		if top > view && !v.barred[id] {
			n++
		}
	}
	return n
}

// kept are the views that there are votes of, ascending.
func (v votes) kept() []uint32 { return slices.Sorted(maps.Keys(v.views)) }

// forget drops the votes of views that are too old, except those that keep names.
func (v votes) forget(view uint32, keep func(view uint32) bool) {
	maps.DeleteFunc(v.views, func(old uint32, _ *[wire.Precommit + 1]ballot) bool {
		return old+viewsBehind < view && !keep(old)
	})
}
