package finality

import (
	"cmp"
	"fmt"
	"maps"
	"math"
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
	whole  uint32           // marks up to this round are all that they will ever be
}

// Tip is where a fragment stands that a node took whole.
type Tip struct {
	Point
	Ended bool // there is no round after it
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
	h.enter(fragment, round, chain, folded)
	return nil
}

// enter has a round elect voters.
func (h *History) enter(fragment int, round uint32, chain wire.Digest, folded []Candidate) {
	m := h.at(h.markOf(round))
	for _, c := range folded {
		m.count(c)
	}
	h.reach(fragment, round, chain)
}

// reach says where a fragment stands at a mark, if it does at a round, and whether all its rounds that elect voters there
// have come.
func (h *History) reach(fragment int, round uint32, chain wire.Digest) {
	t, end := h.tracks[fragment], h.markOf(round)
	m := h.marks[end]
	if m == nil {
		return // given up
	}
	if round == end || t.ended && round == t.last {
		m.points[fragment] = Point{Round: round, Chain: chain}
	}
	m.passed[fragment] = m.points[fragment].Round > 0 && t.from+h.every <= end+1
}

// First is the oldest of the rounds of a fragment that came one after the other up to the last.
func (h *History) First(fragment int) uint32 { return h.tracks[fragment].from }

// Earlier takes the round before the first one of a fragment, as Final takes the one after the last: a node that took tips
// whole may learn later what led to them.
func (h *History) Earlier(fragment int, round uint32, chain wire.Digest, folded []Candidate) error {
	t := &h.tracks[fragment]
	if round == 0 || round != t.from-1 {
		return fmt.Errorf("earlier round %d of fragment %d: %w: want the one before %d", round, fragment, wire.ErrInvalid, t.from)
	}
	t.from = round
	if round > h.whole {
		h.enter(fragment, round, chain, folded)
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
func (h *History) Replace(common []uint32, tips []Tip) {
	same, changed := uint32(math.MaxUint32), false
	for f, tip := range tips {
		switch t := &h.tracks[f]; {
		case t.last != tip.Round || t.chain != tip.Chain:
			same, changed = min(same, common[f], tip.Round, t.last), true
			*t = track{last: tip.Round, chain: tip.Chain, ended: tip.Ended}
		case !t.ended:
			same = min(same, t.last)
		}
	}
	if changed {
		h.restart(same)
	}
}

// restart forgets the marks of rounds above one. What they had of fragments that go on comes again by Earlier or never: a
// mark that has a part of it must not seem to have all.
func (h *History) restart(above uint32) {
	maps.DeleteFunc(h.marks, func(round uint32, _ *mark) bool { return round > above })
	h.whole = above - above%h.every
	for f := range h.tracks {
		t := &h.tracks[f]
		t.from = t.last + 1
		if end := h.markOf(t.last); end > h.whole && (t.last == end || t.ended) {
			h.at(end)
			h.reach(f, t.last, t.chain)
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
