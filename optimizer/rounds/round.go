package rounds

import (
	"cmp"
	"encoding/binary"
	"slices"

	"atoll/optimizer/outer"
)

// round is what is known of one round.
type round struct {
	entries  []entry  // sorted by author, then id
	keys     []uint64 // the first bytes of the ids of entries, to find one among hundreds
	authors  []uint64 // the first bytes of their authors, ascending as they are
	members  room     // for deltas of members
	guests   room     // for those of guests
	out      int      // left out, by equivocation proofs against their authors
	met      uint64   // headers that were taken so far
	tried    int      // those of guests that gossip brought
	proposed Time     // when a header proposed it first, 0 = not yet
	parked   bool     // that was ahead of the open round
	blind    bool     // a payload proposed it, as no header was believed: how late deltas are is not known
	cache    struct {
		version uint64 // another number after each change of the entries, see View.Version
	}
}

// room is what a round has room for of one class of authors. Classes take none from each other.
type room struct {
	most         int            // deltas that a fold takes: of more that are held, those of the first priorities
	mostOverflow int            // that are kept beside those
	known        int            // entries
	have         int            // entries that a fold takes
	overflow     int            // entries that are held, and that others keep out of the set
	last         outer.Priority // the last priority in the set, once it is full
}

// newRound is a round without entries. One delta of guests may overflow, as it may be an own one: no equivocation
// proof makes room for others.
func newRound(members, guests int) *round {
	return &round{members: room{most: members, mostOverflow: maxOverflow}, guests: room{most: guests, mostOverflow: 1}}
}

// roomFor is the room for the author of a delta.
func (r *round) roomFor(d outer.Delta) *room {
	if d.Guest {
		return &r.guests
	}
	return &r.members
}

// rooms are those of all classes.
func (r *round) rooms() [2]*room { return [...]*room{&r.members, &r.guests} }

// have counts the entries that a fold takes.
func (r *round) have() int { return r.members.have + r.guests.have }

// entry is one delta of a round.
type entry struct {
	delta    outer.Delta
	priority outer.Priority
	met      uint64 // how many headers of the round were taken before
	held     bool   // its payload is verified and stored
	overflow bool   // likewise, and the set is full of deltas of higher priority
	trusted  bool   // its header is believed before that
	repaired bool   // its header came by repair, or its payload by one
}

// maxEntries bounds the deltas that a fold of one round takes: C publish in a round, and
// those beyond that propose one are few; a thousand is far above both.
const maxEntries = 1024

// guestPart is the part of LearnersPerRound that a round has room for of guests: they weigh little, and every delta is kept and sent
// on by all.
const guestPart = 4

// maxOverflow bounds the deltas that overflow a full round. They are known so that
// nobody fetches them again, and come back in where an equivocation proof makes room. Others bring one
// that was forgotten, if they have it in their set.
const maxOverflow = maxEntries / 4

// maxAwaited bounds the headers of one round whose payload is not held: a fold takes no more.
const maxAwaited = maxEntries

// maxMissing bounds how many of them gossip may bring of authors that nothing came
// of yet, so that a flood of fresh keys leaves room for the others. All learners
// of a large run are such in its first round. What equivocation proofs left out counts, or keys that
// sign twice would take memory without end.
const maxMissing = maxEntries / 2

// size is what is known of the round of members' deltas, and what equivocation proofs left out.
func (r *round) size() int { return r.members.known + r.out }

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

// by says whether a delta of a member is known. A revocation is none, nor is what it made as a guest.
func (r *round) by(a outer.Author) bool {
	return slices.ContainsFunc(r.of(a), func(e entry) bool { return !e.delta.Revocation() && !e.delta.Guest })
}

// comes is who announced a delta whose payload is likely on its way.
func (r *round) comes() (a outer.Author, found bool) {
	if r.have() == len(r.entries) {
		return a, false
	}
	i := slices.IndexFunc(r.entries, func(e entry) bool { return e.trusted && !e.held })
	if i < 0 {
		return a, false
	}
	return r.entries[i].delta.Author, true
}

// waits says whether a payload of a member is yet to come.
func (r *round) waits(a outer.Author) bool {
	return slices.ContainsFunc(r.of(a), func(e entry) bool { return !e.held && !e.delta.Guest })
}

// missing counts the entries that gossip brought and whose payload is not held and may never
// come, and what equivocation proofs left out, where there is so much of both that it matters.
func (r *round) missing() (n int) {
	if r.size() < maxMissing {
		return 0
	}
	n = r.out
	for _, e := range r.entries {
		if !e.held && e.vouched() == 0 && !e.delta.Guest {
			n++
		}
	}
	return n
}

// held counts the deltas of a round that a fold takes.
func (r *round) held() int {
	if r == nil {
		return 0
	}
	return r.have()
}

// heldOfMembers counts those of members. No guest's delta closes a round, and none alone makes one.
func (r *round) heldOfMembers() int {
	if r == nil {
		return 0
	}
	return r.members.have
}

// awaitsGuests counts the headers of guests whose payload is not held.
func (r *round) awaitsGuests() (n int) {
	for _, e := range r.entries {
		if e.delta.Guest && !e.held {
			n++
		}
	}
	return n
}

func (r *round) holds(a outer.Author) bool {
	return r != nil && slices.ContainsFunc(r.of(a), func(e entry) bool { return e.held && !e.delta.Guest })
}

// insert adds an entry that is not held.
func (r *round) insert(e entry) {
	e.met = r.met
	r.met++
	i, _ := slices.BinarySearchFunc(r.entries, e, compareEntries)
	r.roomFor(e.delta).known++
	r.entries = slices.Insert(r.entries, i, e)
	r.keys = slices.Insert(r.keys, i, keyOf(e.delta.ID))
	r.authors = slices.Insert(r.authors, i, orderOf(e.delta.Author))
	r.cache.version++
}

func compareEntries(a, b entry) int {
	if c := outer.CompareAuthors(a.delta.Author, b.delta.Author); c != 0 {
		return c
	}
	return outer.CompareIDs(a.delta.ID, b.delta.ID)
}

// beyond says that a priority is behind all of a full set.
func (r *room) beyond(p outer.Priority) bool { return r.have >= r.most && p.Compare(r.last) > 0 }

// hold records that the payload of an entry is held, and says whether the set changes. In
// a full room the entry takes the place of the last one, or overflows itself.
func (r *round) hold(e *entry) (changed bool) {
	r.cache.version++
	e.held = true
	room := r.roomFor(e.delta)
	switch {
	case room.beyond(e.priority):
		e.overflow = true
		room.overflow++
		return false
	case room.have >= room.most:
		r.endOfSet(room).overflow = true
		room.overflow++
	default:
		room.have++
	}
	r.fill()
	return true
}

// unhold records that the payload of an entry is not held any more, and says whether the set
// changes.
func (r *round) unhold(e *entry) (changed bool) {
	r.cache.version++
	r.drop(*e)
	changed = !e.overflow
	e.held, e.overflow = false, false
	r.fill()
	return changed
}

// drop counts an entry no longer.
func (r *round) drop(e entry) {
	switch room := r.roomFor(e.delta); {
	case e.overflow:
		room.overflow--
	case e.held:
		room.have--
	}
}

// fill takes into the set what overflowed, as far as there is room, and records where it ends.
func (r *round) fill() {
	for _, room := range r.rooms() {
		for room.have < room.most && room.overflow > 0 {
			first := r.first(func(e entry) bool { return e.overflow && r.roomFor(e.delta) == room },
				func(a, b entry) int { return a.priority.Compare(b.priority) })
			first.overflow = false
			room.overflow--
			room.have++
		}
		if room.have >= room.most && room.have > 0 {
			room.last = r.endOfSet(room).priority
		}
	}
}

// endOfSet is the entry of a room that comes last in the set; nil if there is none.
func (r *round) endOfSet(room *room) *entry {
	return r.first(func(e entry) bool { return e.held && !e.overflow && r.roomFor(e.delta) == room },
		func(a, b entry) int { return b.priority.Compare(a.priority) })
}

// first is the first entry, in some order, of those that pick selects; nil if there is none.
func (r *round) first(pick func(entry) bool, order func(a, b entry) int) (first *entry) {
	for i := range r.entries {
		if e := &r.entries[i]; pick(*e) && (first == nil || order(*e, *first) < 0) {
			first = e
		}
	}
	return first
}

// leaveOut forgets the entries that pick selects and returns how many these are.
func (r *round) leaveOut(pick func(entry) bool) (count int) {
	count = len(r.entries)
	r.entries = slices.DeleteFunc(r.entries, func(e entry) bool {
		out := pick(e)
		if out {
			r.roomFor(e.delta).known--
			r.drop(e)
		}
		return out
	})
	r.keys, r.authors = r.keys[:0], r.authors[:0]
	for _, e := range r.entries {
		r.keys = append(r.keys, keyOf(e.delta.ID))
		r.authors = append(r.authors, orderOf(e.delta.Author))
	}
	r.cache.version++
	r.fill()
	return count - len(r.entries)
}

// thin forgets the entries for which there is no room, except those of one author, and
// returns their ids: of those that overflow the last, and of the headers without
// payloads the oldest, first of those that nobody vouches for.
func (r *round) thin(self outer.Author) (ids []outer.ID) {
	for _, room := range r.rooms() {
		overflow := func(e entry) bool { return e.overflow && e.delta.Author != self && r.roomFor(e.delta) == room }
		for room.overflow > room.mostOverflow {
			id, found := r.forget(overflow, func(a, b entry) int { return b.priority.Compare(a.priority) })
			if !found {
				break // what is left is its own
			}
			ids = append(ids, id)
		}
	}
	for len(r.entries)-r.have()-r.members.overflow-r.guests.overflow > maxAwaited {
		id, found := r.forget(func(e entry) bool { return !e.held && e.delta.Author != self }, oldestFirst)
		if !found {
			break
		}
		ids = append(ids, id)
	}
	return ids
}

// vouched is 1 for an entry whose payload most likely exists.
func (e entry) vouched() int {
	if e.trusted || e.repaired || e.delta.Revocation() {
		return 1
	}
	return 0
}

// oldestFirst orders headers without payloads as they are forgotten: first those that nobody vouches for.
func oldestFirst(a, b entry) int {
	return cmp.Or(cmp.Compare(a.vouched(), b.vouched()), cmp.Compare(a.met, b.met))
}

// forget forgets the first of some entries, if there is one.
func (r *round) forget(pick func(entry) bool, order func(a, b entry) int) (id outer.ID, found bool) {
	e := r.first(pick, order)
	if e == nil {
		return id, false
	}
	id = e.delta.ID
	r.leaveOut(func(e entry) bool { return e.delta.ID == id })
	return id, true
}

// set is what a fold of the round sees: of the deltas whose payload is held, those of
// the first priorities.
func (r *round) set() []outer.Delta {
	if r.held() == 0 {
		return nil
	}
	out := make([]outer.Delta, 0, r.have())
	for _, e := range r.entries {
		if e.held && !e.overflow {
			out = append(out, e.delta)
		}
	}
	return out
}
