package core

import (
	"maps"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// stakes is how many deltas of each author were folded here up to some rounds of
// the first fragment, which stands for all. What was folded before two chains
// parted weighs the word of its authors when one of the chains has to go. Tokens
// would not do: a delta may claim many.
type stakes struct {
	now     map[wire.PeerID]uint64 // deltas
	marks   []stakeMark            // ascending
	spacing uint32                 // rounds between two marks
}

// stakeMark is a copy at a round.
type stakeMark struct {
	round  uint32
	deltas map[wire.PeerID]uint64
}

// maxStakes bounds the authors that are weighed, as a table of peers does.
// maxStakeMarks bounds the copies: when there are more, every second goes and the
// spacing doubles, so that a mark is never further from a round than a
// thirty-second of the run.
const (
	maxStakes     = 4096
	maxStakeMarks = 64
)

func newStakes() stakes { return stakes{now: map[wire.PeerID]uint64{}, spacing: 1} }

func (s *stakes) add(author wire.PeerID) {
	if _, known := s.now[author]; known || len(s.now) < maxStakes {
		s.now[author]++
	}
}

// mark keeps a copy at a round, if it is time for one.
func (s *stakes) mark(round uint32) {
	if n := len(s.marks); n > 0 && round < s.marks[n-1].round+s.spacing {
		return
	}
	s.marks = append(s.marks, stakeMark{round, maps.Clone(s.now)})
	if len(s.marks) <= maxStakeMarks {
		return
	}
	kept := s.marks[:0]
	for i := 1; i < len(s.marks); i += 2 {
		kept = append(kept, s.marks[i])
	}
	s.marks, s.spacing = kept, 2*s.spacing
}

// of returns the deltas of an author up to the newest mark not after a round, 0 if
// there is none.
func (s *stakes) of(author wire.PeerID, round uint32) (deltas uint64) {
	for _, m := range s.marks {
		if m.round > round {
			break
		}
		deltas = m.deltas[author]
	}
	return deltas
}

// Credit says that something of an author was folded on the chain held here, as
// the ledger knows.
func (m *Machine) Credit(author wire.PeerID) {
	if len(m.contributed) < maxStakes {
		m.contributed[author] = true
	}
}

// credit notes the authors of what a round folded.
func (m *Machine) credit(fragment int, l outer.Link) {
	for _, id := range l.Folded {
		h, known := m.headers[wire.Digest(id)]
		if !known {
			continue
		}
		m.Credit(h.Header.Author)
		if fragment == 0 {
			m.stakes.add(h.Header.Author)
		}
	}
	if fragment == 0 {
		m.stakes.mark(l.Round)
	}
}
