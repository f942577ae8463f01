package rounds

import (
	"slices"

	"atoll/optimizer/outer"
)

// peerList is the learners that this node knows of.
type peerList struct {
	live     []outer.Author // can be heard, sorted
	idle     []outer.Author // live ones that have nothing to publish, sorted
	training []outer.Author // the others, sorted: they publish, in rotation where they are many
	changes  int            // of training
	guests   []outer.Author // others that are guests of the run

	plans map[outer.Author]uint32 // steps that peers plan for a delta
}

// SetLive names the learners that can be expected to publish in a round. Local
// knowledge: it may only delay a close.
func (m *Machine) SetLive(live []outer.Author) {
	sorted := slices.Clone(live)
	slices.SortFunc(sorted, outer.CompareAuthors)
	if slices.Equal(sorted, m.peerList.live) {
		return
	}
	m.peerList.live = sorted
	m.late.forgetAllBut(m.peerList.isLive)
	m.peerList.rotate()
}

// SetIdle names the learners that say they have nothing to publish: no round waits
// for them, samples them, nor counts them in its quorum. This node is one of them from
// when it says so, or it would sample others than they do.
func (m *Machine) SetIdle(idle []outer.Author) {
	m.peerList.idle = slices.Clone(idle)
	slices.SortFunc(m.peerList.idle, outer.CompareAuthors)
	m.peerList.rotate()
}

// rotate works out who publishes in rotation.
func (r *peerList) rotate() {
	training := slices.DeleteFunc(slices.Clone(r.live), r.isIdle)
	if !slices.Equal(training, r.training) {
		r.training = training
		r.changes++
	}
}

// SetGuests names the other guests that can be heard. This node publishes in rotation with them, if it is one.
func (m *Machine) SetGuests(guests []outer.Author) { m.peerList.guests = slices.Clone(guests) }

func (r *peerList) isIdle(a outer.Author) bool { return includes(r.idle, a) }

func (r *peerList) isLive(a outer.Author) bool { return includes(r.live, a) }

// includes looks an author up in a sorted list.
func includes(sorted []outer.Author, a outer.Author) bool {
	_, ok := slices.BinarySearchFunc(sorted, a, outer.CompareAuthors)
	return ok
}

// others is the number of learners that can be expected to publish beside this one.
func (m *Machine) others() int {
	if m.peerList.isLive(m.self) {
		return len(m.peerList.live) - 1
	}
	return len(m.peerList.live)
}

// hasRoom says whether a delta of this guest for a round has room in its set, beside those of the others.
func (m *Machine) hasRoom(f *fragment, rnd uint32) bool {
	priorityOf := func(a outer.Author) outer.Priority {
		return outer.PriorityOf(m.run, outer.Delta{Author: a, Fragment: f.index, Round: rnd, Guest: true})
	}
	own, before := priorityOf(m.self), 0
	for _, g := range m.peerList.guests {
		if priorityOf(g).Compare(own) < 0 {
			before++
		}
	}
	return before < f.deltas.guests
}
