package rounds

import (
	"encoding/binary"
	"slices"

	"atoll/optimizer/outer"
)

// round is what is known of one round.
type round struct {
	entries []entry  // sorted by author, then id
	keys    []uint64 // the first bytes of the ids of entries, to find one among hundreds
	authors []uint64 // the first bytes of their authors, ascending as they are
	have    int      // entries whose payload is held
	out     int      // left out, as there is evidence against their authors
	rang    Time     // when a header rang first, 0 = not yet
	parked  bool     // that was ahead of the open round
	blind   bool     // a payload rang, as no header was believed: how late deltas are is not known
	cache   struct {
		version uint64 // another number after each change of the entries, see View.Version
	}
}

// entry is one delta of a round.
type entry struct {
	delta    outer.Delta
	held     bool // its payload is verified and stored
	trusted  bool // its header is believed before that
	repaired bool // its header came by repair, or its payload by one
}

// maxEntries bounds what one round may hold in memory: C answer a round, and
// ringers beyond them are few; a thousand is far above both. What evidence left out
// counts, or keys that sign twice would make room for others without end.
const maxEntries = 1024

// maxMissing bounds how many of them may be headers of authors that nothing came
// of yet, so that a flood of fresh keys leaves room for the others. All learners
// of a large run are such in its first round.
const maxMissing = maxEntries / 2

// size is what counts towards maxEntries.
func (r *round) size() int { return len(r.entries) + r.out }

func (r *round) find(id outer.ID) *entry {
	key := keyOf(id)
	for i, k := range r.keys {
		if k == key && r.entries[i].delta.ID == id {
			return &r.entries[i]
		}
	}
	return nil
}

// keyOf and orderOf are what of an entry is looked at first: entries lie far apart
// in memory, and a large round has a thousand.
func keyOf(id outer.ID) uint64 { return binary.LittleEndian.Uint64(id[:]) }

func orderOf(a outer.Author) uint64 { return binary.BigEndian.Uint64(a[:]) }

// of are the entries of an author.
func (r *round) of(a outer.Author) []entry {
	i, _ := slices.BinarySearch(r.authors, orderOf(a))
	for i < len(r.entries) && outer.CompareAuthors(r.entries[i].delta.Author, a) < 0 {
		i++
	}
	n := i
	for n < len(r.entries) && r.entries[n].delta.Author == a {
		n++
	}
	return r.entries[i:n]
}

func (r *round) by(a outer.Author) bool { return len(r.of(a)) > 0 }

// comes says that a delta was announced whose payload is likely on its way.
func (r *round) comes() bool {
	return r.have < len(r.entries) && slices.ContainsFunc(r.entries, func(e entry) bool { return e.trusted && !e.held })
}

// waits says whether a payload of an author is yet to come.
func (r *round) waits(a outer.Author) bool {
	return slices.ContainsFunc(r.of(a), func(e entry) bool { return !e.held })
}

// missing counts the entries whose payload is not held and may never come, and what
// evidence left out, where there is so much of both that it matters.
func (r *round) missing() (n int) {
	if r.size() < maxMissing {
		return 0
	}
	n = r.out
	for _, e := range r.entries {
		if !e.held && !e.trusted {
			n++
		}
	}
	return n
}

// held counts the deltas of a round whose payload is held.
func (r *round) held() int {
	if r == nil {
		return 0
	}
	return r.have
}

func (r *round) holds(a outer.Author) bool {
	return r != nil && slices.ContainsFunc(r.of(a), func(e entry) bool { return e.held })
}

func (r *round) insert(e entry) {
	i, _ := slices.BinarySearchFunc(r.entries, e, compareEntries)
	r.entries = slices.Insert(r.entries, i, e)
	r.keys = slices.Insert(r.keys, i, keyOf(e.delta.ID))
	r.authors = slices.Insert(r.authors, i, orderOf(e.delta.Author))
	if e.held {
		r.have++
	}
	r.cache.version++
}

func compareEntries(a, b entry) int {
	if c := outer.CompareAuthors(a.delta.Author, b.delta.Author); c != 0 {
		return c
	}
	return outer.CompareIDs(a.delta.ID, b.delta.ID)
}

// hold notes that the payload of an entry is held, or not any more.
func (r *round) hold(e *entry, held bool) {
	if held {
		r.have++
	} else {
		r.have--
	}
	e.held = held
	r.cache.version++
}

// leaveOut forgets the entries that pick selects and returns how many these are.
func (r *round) leaveOut(pick func(entry) bool) (count int) {
	count = len(r.entries)
	r.entries = slices.DeleteFunc(r.entries, func(e entry) bool {
		out := pick(e)
		if out && e.held {
			r.have--
		}
		return out
	})
	r.keys, r.authors = r.keys[:0], r.authors[:0]
	for _, e := range r.entries {
		r.keys = append(r.keys, keyOf(e.delta.ID))
		r.authors = append(r.authors, orderOf(e.delta.Author))
	}
	r.cache.version++
	return count - len(r.entries)
}

// set is what a fold of the round sees: the deltas whose payload is held.
func (r *round) set() []outer.Delta {
	if r.held() == 0 {
		return nil
	}
	out := make([]outer.Delta, 0, r.have)
	for _, e := range r.entries {
		if e.held {
			out = append(out, e.delta)
		}
	}
	return out
}
