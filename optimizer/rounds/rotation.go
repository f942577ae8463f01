package rounds

import (
	"math/bits"
	"slices"

	"atoll/optimizer/outer"
)

// Where more than C learners train they publish in rotation. Otherwise the cost of a run
// would grow with all of them for each: everybody receives and folds every delta. They sit
// in a circle, in the order of their names, and a round begins at a point of it: the C
// learners that follow are sampled, the next C are the next group, and so on. The points
// of a fragment's rounds are multiples of the golden ratio: any few in a row are spread
// evenly. So nobody waits for much more than N/C rounds when learners come and go
// meanwhile, and nodes that know of slightly different learners draw nearly the same.

// goldenStep is 2^64 over the golden ratio: from one round's point to the next.
const goldenStep = 0x9E3779B97F4A7C15

// fragmentStep is a number without a pattern: from one fragment's first point to the next.
const fragmentStep = 0xC2B2AE3D27D4EB4F

// sample is the learners drawn to publish in one round, sorted by name.
type sample struct {
	round    uint32
	peerList int
	sorted   []outer.Author
	group    int // of this node: 0 is sampled
}

// everybody says that no more learners train than may publish in a round.
func (m *Machine) everybody() bool { return len(m.peerList.training) <= m.p.LearnersPerRound }

// mayPublish says whether the author is sampled to publish in a round.
func (m *Machine) mayPublish(f *fragment, a outer.Author, rnd uint32) bool {
	if a == m.self && m.guest {
		return m.hasRoom(f, rnd)
	}
	return m.everybody() || includes(m.sampleOf(f, rnd).sorted, a)
}

// sampled are the learners drawn to publish in a round, sorted by name.
func (m *Machine) sampled(f *fragment, rnd uint32) []outer.Author {
	if m.everybody() {
		return m.peerList.training
	}
	return m.sampleOf(f, rnd).sorted
}

// mayPropose says whether this learner proposes the open round: when it has made the steps
// that it plans since its last delta, and, where learners publish in rotation, as many in the
// round for each group up to its own. So one of the sampled does; one of the next group if
// none of them is well; or one so fast that it has made as many steps meanwhile.
func (m *Machine) mayPropose(f *fragment) bool {
	if m.guest {
		return false
	}
	steps := m.plan.Steps
	if f.learn.since < steps || m.everybody() {
		return f.learn.since >= steps
	}
	return f.learn.opened >= steps*(1+m.sampleOf(f, f.chain.closed+1).group)
}

// sampleOf draws who publishes in a round, unless that is known.
func (m *Machine) sampleOf(f *fragment, rnd uint32) *sample {
	if f.sample.round != rnd || f.sample.peerList != m.peerList.changes {
		f.sample = m.draw(f.index, rnd)
	}
	return &f.sample
}

func (m *Machine) draw(fragment int, rnd uint32) sample {
	n, most := len(m.peerList.training), m.p.LearnersPerRound
	point := uint64(rnd)*goldenStep + uint64(fragment)*fragmentStep
	place, _ := bits.Mul64(point, uint64(n)) // point / 2^64 of the way round
	c := sample{round: rnd, peerList: m.peerList.changes, sorted: make([]outer.Author, most), group: n / most}
	for i := range c.sorted {
		c.sorted[i] = m.peerList.training[(int(place)+i)%n]
	}
	slices.SortFunc(c.sorted, outer.CompareAuthors)
	if own, ok := slices.BinarySearchFunc(m.peerList.training, m.self, outer.CompareAuthors); ok {
		c.group = (own - int(place) + n) % n / most
	}
	return c
}
