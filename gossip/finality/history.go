package finality

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"atoll/gossip/wire"
)

// maxMarks bounds the values that a History keeps: those of thousands of rounds, within a few MB. A run in which
// nothing is certified for longer gives up the oldest.
const maxMarks = 256

// MaxRounds is for how many rounds a History that keeps a value at every multiple of every keeps values.
func MaxRounds(every uint32) uint32 { return maxMarks * every }

// History is what a node's own chain says, made of its final rounds as they come. It is a Chain.
type History struct {
	every  uint32
	tracks []track
	marks  map[uint32]*mark // by round, a multiple of every
	keep   uint32           // a mark that is not given up
}

// track is how far a fragment is known.
type track struct {
	last  uint32 // final round
	from  uint32 // of the rounds that came one after the other up to last
	chain wire.Digest
	ended bool // there is no round after last
}

// mark is a value while it comes together.
type mark struct {
	points  []Point // by fragment; of round 0 where it is not there yet
	passed  []bool  // by fragment: all rounds that elect voters have come
	authors map[wire.PeerID]*Candidate
}

// NewHistory knows no round of so many fragments. every is Config.Every.
func NewHistory(every uint32, fragments int) *History {
	h := &History{every: every, tracks: make([]track, fragments), marks: map[uint32]*mark{}, keep: every}
	for f := range h.tracks {
		h.tracks[f].from = 1
	}
	return h
}

// markOf is the mark whose voters a round elects.
func (h *History) markOf(round uint32) uint32 { return (round + h.every - 1) / h.every * h.every }

func (h *History) at(round uint32) *mark {
	m := h.marks[round]
	if m == nil {
		m = &mark{make([]Point, len(h.tracks)), make([]bool, len(h.tracks)), map[wire.PeerID]*Candidate{}}
		h.marks[round] = m
		h.giveUp()
	}
	return m
}

// giveUp drops the oldest value if there are too many.
func (h *History) giveUp() {
	if len(h.marks) <= maxMarks {
		return
	}
	for _, round := range slices.Sorted(maps.Keys(h.marks)) {
		if round != h.keep {
			delete(h.marks, round)
			return
		}
	}
}

// Final takes the next final round of a fragment: its chain digest, and who is the author of each delta folded in it. ended
// says that the fragment has no round after it.
func (h *History) Final(fragment int, round uint32, chain wire.Digest, folded []Candidate, ended bool) error {
	t := &h.tracks[fragment]
	if round != t.last+1 || t.ended {
		return fmt.Errorf("final round %d of fragment %d: %w: %d was the last, the end %v", round, fragment, wire.ErrInvalid, t.last, t.ended)
	}
	t.last, t.chain, t.ended = round, chain, ended
	m := h.at(h.markOf(round))
	for _, c := range folded {
		m.count(c)
	}
	if end := h.markOf(round); round == end || ended {
		m.points[fragment] = Point{Round: round, Chain: chain}
		m.passed[fragment] = t.from+h.every <= end+1
	}
	return nil
}

// Last is the last round of a fragment that is known.
func (h *History) Last(fragment int) uint32 { return h.tracks[fragment].last }

// count adds a delta of an author. Of several invites the one with the lowest key counts, whichever came first.
func (m *mark) count(c Candidate) {
	known := m.authors[c.Author]
	if known == nil {
		known = &Candidate{Author: c.Author, Invite: c.Invite, Uses: c.Uses}
		m.authors[c.Author] = known
	}
	if cmp.Or(c.Invite.Compare(known.Invite), cmp.Compare(c.Uses, known.Uses)) < 0 {
		known.Invite, known.Uses = c.Invite, c.Uses
	}
	known.Deltas++
}

// Replace says that the node took tips at some rounds in place of its own, by fragment. Its chain is the same up to the
// rounds common, at most.
func (h *History) Replace(common []uint32, tips []Point) {
	for f, tip := range tips {
		t := &h.tracks[f]
		if t.last == tip.Round && t.chain == tip.Chain {
			continue
		}
		h.cut(f, min(common[f], tip.Round))
		*t = track{last: tip.Round, from: tip.Round + 1, chain: tip.Chain}
	}
	for f, tip := range tips {
		if tip.Round > 0 && tip.Round%h.every == 0 {
			h.at(tip.Round).points[f] = tip
		}
	}
}

// cut forgets the marks that a fragment's rounds above common are part of.
func (h *History) cut(fragment int, common uint32) {
	for round, m := range h.marks {
		switch {
		case round-h.every >= common: // authors of other fragments may come again no more
			delete(h.marks, round)
		case round > common:
			m.points[fragment], m.passed[fragment] = Point{}, false
		}
	}
}

// Keep has a value not given up, that of the newest certificate. Until there is one it is the first value.
func (h *History) Keep(round uint32) { h.keep = round }

// point is where a fragment stands at a mark, and whether all that elects voters there is known of it.
func (h *History) point(fragment int, round uint32) (p Point, passed bool) {
	t := h.tracks[fragment]
	if t.ended && h.markOf(t.last) < round {
		return Point{Round: t.last, Chain: t.chain}, true
	}
	if m := h.marks[round]; m != nil {
		return m.points[fragment], m.passed[fragment]
	}
	return Point{}, false
}

// Newest implements Chain.
func (h *History) Newest() uint32 {
	for _, round := range slices.Backward(slices.Sorted(maps.Keys(h.marks))) {
		if _, known := h.At(round); known {
			return round
		}
	}
	return 0
}

// At implements Chain. There is no value of rounds in which nothing was folded: nobody would be elected.
func (h *History) At(round uint32) (Value, bool) {
	m := h.marks[round]
	if m == nil {
		return Value{}, false
	}
	v := Value{Round: round}
	for f := range h.tracks {
		p, passed := h.point(f, round)
		if !passed {
			return Value{}, false
		}
		v.Points = append(v.Points, p)
	}
	var candidates []Candidate
	for _, c := range m.authors {
		candidates = append(candidates, *c)
	}
	v.Voters = Elect(candidates)
	return v, len(v.Voters) > 0
}

// Holds implements Chain.
func (h *History) Holds(points []Point) (yes, known bool) {
	if len(points) != len(h.tracks) {
		return false, true
	}
	yes, known = true, true
	for f, p := range points {
		switch own, has := h.pointAt(f, p.Round); {
		case !has:
			known = false
		case own != p:
			return false, true
		}
	}
	return yes && known, known
}

// pointAt is a point of a fragment at a round, if it is kept: that of a mark, or of the fragment's end.
func (h *History) pointAt(fragment int, round uint32) (p Point, has bool) {
	t := h.tracks[fragment]
	switch {
	case round == 0:
		return Point{}, true
	case round == t.last:
		return Point{Round: round, Chain: t.chain}, true
	case t.ended && round > t.last:
		return Point{Round: t.last, Chain: t.chain}, true // the chain has no such round
	}
	if m := h.marks[round]; m != nil && m.points[fragment].Round == round {
		return m.points[fragment], true
	}
	return Point{}, false
}
