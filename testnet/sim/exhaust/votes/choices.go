package votes

import (
	"slices"

	"atoll/gossip/wire"
)

// anything is what the liar votes for: none, A, B.
var anything = []uint32{0, roundA, roundB}

// choices are the inputs that may make a voter do something.
func (s *search) choices(w *world, i int) (all []input) {
	l := w.at[i]
	if l.view >= s.bounds.Views {
		return nil
	}
	all = append(all, input{}) // its wait ends
	switch s.phase(l) {
	case wire.Propose:
		all = append(all, s.proposals(w, i)...)
	case wire.Prevote:
		all = append(all, s.pairs(w, i, wire.Prevote, l.view)...)
	case wire.Precommit:
		if s.proposes(i, l.view) {
			all = append(all, s.late(w, i)...)
		}
		all = append(all, s.pairs(w, i, wire.Precommit, l.view)...)
	}
	for view := range l.view {
		all = append(all, s.pairs(w, i, wire.Precommit, view)...) // may certify still
	}
	all = append(all, s.leads(w, i)...)
	if w.restarts < s.bounds.Restarts {
		all = append(all, input{restart: true})
	}
	return all
}

// phase is what a voter is in: the last that it voted in, in its view.
func (s *search) phase(l *local) wire.Phase {
	in := wire.Propose
	for _, n := range l.signed {
		if v := s.sent[n]; v.View == l.view {
			in = max(in, v.Phase)
		}
	}
	return in
}

func inputOf(votes ...vote) (in input) {
	slices.Sort(votes)
	for i, n := range slices.Compact(votes) {
		in.votes[i] = n + 1
	}
	return in
}

// proposals are those that can come in a voter's view, with what they rest on, if anything.
func (s *search) proposals(w *world, i int) (all []input) {
	view := w.at[i].view
	var list []vote
	if s.bounds.Liars>>view&1 == 1 {
		for _, round := range []uint32{roundA, roundB} {
			for proof := range view + 1 {
				list = append(list, s.lie(wire.Propose, view, round, proof))
			}
		}
	}
	for _, l := range w.at {
		if v, any := s.find(l, func(v wire.SignedVote) bool { return v.Phase == wire.Propose && v.View == view }); any {
			list = append(list, v)
		}
	}
	for _, p := range list {
		rests := s.restsOn(w, i, s.sent[p])
		all = append(all, inputOf(append(rests, p)...))
		if proof := s.sent[p].Proof; proof > 0 {
			lie := s.lie(wire.Prevote, proof-1, s.sent[p].Round, 0)
			all = append(all, inputOf(append(rests, p, lie)...))
		}
		all = append(all, s.vouched(w, i, p)...)
	}
	return all
}

// vouched are a proposal and what a voter that went astray may take for a sign that its chain is the certified one: votes for
// a value, of whatever phase and view, of another voter and of the liar's.
func (s *search) vouched(w *world, i int, p vote) (all []input) {
	if s.bounds.Astray>>i&1 == 0 {
		return nil
	}
	for j, l := range w.at {
		for _, n := range l.signed {
			if j == i || s.sent[n].Round == 0 {
				continue
			}
			all = append(all, inputOf(p, n), inputOf(p, n, s.lie(wire.Prevote, w.at[i].view, s.sent[n].Round, 0)))
		}
	}
	for _, round := range []uint32{roundA, roundB} {
		all = append(all, inputOf(p, s.lie(wire.Prevote, w.at[i].view, round, 0)))
	}
	return all
}

// restsOn are the prevotes of other honest voters that a proposal shows.
func (s *search) restsOn(w *world, i int, p wire.SignedVote) (list []vote) {
	for j, l := range w.at {
		v, any := s.find(l, func(v wire.SignedVote) bool {
			return v.Phase == wire.Prevote && v.View+1 == p.Proof && v.Round == p.Round
		})
		if any && j != i {
			list = append(list, v)
		}
	}
	return list
}

// pairs are the votes of two others in a phase of a view: with the own one they are more than two thirds. Where both
// honest ones are there, a lie counts that completes two equal votes. Or all three are equal, and any
// other vote of the liar's keeps them apart. All else the honest ones do as well, and the liar need not commit itself.
func (s *search) pairs(w *world, i int, phase wire.Phase, view uint32) (all []input) {
	own, any := s.voted(w.at[i], phase, view)
	if !any {
		return nil // only together with the own one
	}
	var others []vote
	equal := true
	for j, l := range w.at {
		if v, any := s.voted(l, phase, view); any && j != i {
			others = append(others, v)
			equal = equal && s.sent[v].Round == s.sent[own].Round
		}
	}
	if len(others) == 2 {
		all = append(all, inputOf(others...))
	}
	for _, other := range others {
		for _, round := range s.lies(s.sent[own].Round, s.sent[other].Round, len(others) == 2, equal) {
			all = append(all, inputOf(other, s.lie(phase, view, round, 0)))
		}
	}
	return all
}

// lies are what the liar may say beside two votes.
func (s *search) lies(own, other uint32, both, equal bool) []uint32 {
	switch {
	case !both:
		return anything
	case equal && own == 0:
		return []uint32{0, roundA}
	case equal:
		return []uint32{0, own}
	case own == other:
		return []uint32{own}
	}
	return nil
}

// voted is the vote of an honest voter in a phase of a view.
func (s *search) voted(l *local, phase wire.Phase, view uint32) (v vote, any bool) {
	return s.find(l, func(v wire.SignedVote) bool { return v.Phase == phase && v.View == view })
}

// late are prevotes of more than two thirds for a value that come when the voter has precommitted: it proposes
// the value in a later view.
func (s *search) late(w *world, i int) (all []input) {
	view := w.at[i].view
	for _, round := range []uint32{roundA, roundB} {
		for _, lies := range []bool{false, true} {
			var list []vote
			own := 0
			for j, l := range w.at {
				v, any := s.find(l, func(v wire.SignedVote) bool {
					return v.Phase == wire.Prevote && v.View == view && v.Round == round
				})
				switch {
				case any && j == i:
					own = 1
				case any:
					list = append(list, v)
				}
			}
			if lies {
				list = append(list, s.lie(wire.Prevote, view, round, 0))
			}
			if own+len(list) >= 3 {
				in := inputOf(list...)
				in.late = true
				all = append(all, in)
			}
		}
	}
	return all
}

// leads are the votes that lead a voter into the view of another: its and the liar's are more than a third.
func (s *search) leads(w *world, i int) (all []input) {
	for j, l := range w.at {
		if j == i {
			continue
		}
		seen := map[uint32]bool{w.at[i].view: true}
		for _, n := range l.signed {
			if view := s.sent[n].View; view > w.at[i].view && !seen[view] {
				seen[view] = true
				in := inputOf(n, s.lie(wire.Prevote, view, 0, 0))
				in.leads = true
				all = append(all, in)
			}
		}
	}
	return all
}
