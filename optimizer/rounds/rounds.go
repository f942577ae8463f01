package rounds

import (
	"encoding/binary"
	"slices"

	"atoll/optimizer/outer"
)

// Machine is the state machine that decides, for every fragment, when a round
// opens, is answered and closes, and which deltas each closed round folds.
// It holds metadata only: tensors live in Learner and Fold. Inputs are method
// calls that carry the time; outputs are effects, drained with Effects. What
// it decides from clocks and rosters may only delay: the bits of a tip follow
// from the set of deltas alone.
type Machine struct {
	p       outer.Params
	self    outer.Author
	learner bool
	live    []outer.Author // learners that can be heard, sorted
	idle    []outer.Author // those of them that have nothing to publish, sorted
	seats   []outer.Author // the others, sorted: they answer bells, in turns
	frags   []*fragment
	out     []Effect
	late    lateness
	steps   stepClock
	slept   Time // what the clock left out
	hold    bool // publish nothing
	flush   bool // publish whatever is unpublished, H or not
	roster  int  // counts the changes of seats

	elsewhere func(fragment int, rnd uint32) bool // see SetElsewhere
	barred    map[outer.Author]bool
}

// fragment is the round state of one fragment.
type fragment struct {
	index    int
	closed   uint32                    // last closed round
	base     uint32                    // oldest round with a kept tip: nothing at or below it can be refolded
	links    []outer.Link              // links[i] is round first+i; the last one is round closed
	first    uint32                    // round of links[0]
	rounds   map[uint32]*round         // deltas known for rounds above base
	barred   map[outer.Author][]uint32 // rounds for which there is evidence against an author
	bell     Time                      // when the open round rang; 0 = not yet
	closedAt Time                      // when the last round was closed here
	target   uint32                    // a peer closed this far and its deltas are held
	bases    []uint32                  // rounds with kept tips, ascending
	tip      *outer.Tip                // newest folded tip
	folding  *foldJob
	dirty    uint32 // lowest closed round whose set changed since it was folded; 0 = none
	foldAt   Time   // when the last fold was asked for
	retryAt  Time   // no fold before: one failed
	check    uint32 // the first round to be folded again and compared with the state recorded; 0 = none
	reload   bool   // the tip is damaged and there is no older base to fold it from
	heal     bool   // the tip that was adopted last is damaged
	jobs     uint64 // folds asked for

	since    int    // steps since the last own delta, staggered at the start
	opened   int    // own steps since the open round was, likewise
	pending  uint32 // steps not yet published
	unsent   uint64 // tokens not yet published
	stepped  uint32 // rounds closed when the last of them was made
	givenUp  bool   // the learner was told to give them up
	stuckAt  Time   // since when it waits, at rest, for a round that it may sign; 0 = it does not
	drafting bool   // a draft was asked for and is not yet durable
	draftAt  Time   // no draft before: one could not be made durable
	mark     uint32 // highest round ever signed
	own      []ownRound
	common   uint32 // the last round up to which others are known to have folded the same
	left     uint32 // up to here, the chain left last differs from that of the tip
	called   called
	memo     fragmentMemo
}

// fragmentMemo changes nothing but the time that things take.
type fragmentMemo struct {
	rounds  uint64 // made so far, for their versions
	missing int    // place of the answerer that the open round waited for last
}

// round is what is known of one round.
type round struct {
	entries []entry  // sorted by author, then id
	keys    []uint64 // the first bytes of the ids of entries, to find one among hundreds
	authors []uint64 // the first bytes of their authors, ascending as they are
	have    int      // entries whose payload is held
	out     int      // left out, as there is evidence against their authors
	rang    Time     // when a header rang first, 0 = not yet
	parked  bool     // that was ahead of the open round
	memo    uint64   // another number after each change of the entries, see Version
}

// entry is one delta of a round.
type entry struct {
	delta    outer.Delta
	held     bool // its payload is verified and stored
	vouched  bool // its header is believed before that
	repaired bool // its header came by repair, or its payload by one
}

// ownRound is an own delta that is not final.
type ownRound struct {
	at     Time // when it was published
	seq    uint64
	id     outer.ID
	round  uint32
	steps  uint32
	tokens uint64
	folded bool // in the tip last adopted
	gone   bool // from theta, as tips were taken whole that did not fold it
	handed bool // some peer has it
}

// foldJob is a fold under way.
type foldJob struct {
	id    uint64
	start uint32
	links []outer.Link // rounds start+1..to
	keep  []uint32
	check bool // the states are to be those recorded
}

// New returns the machine of a node that holds only genesis tips. An
// observer passes learner false: it folds and never publishes.
func New(p outer.Params, self outer.Author, learner bool, tips []*outer.Tip) *Machine {
	m := &Machine{p: p, self: self, learner: learner, barred: map[outer.Author]bool{}, late: lateness{self: self}}
	for i, t := range tips {
		f := &fragment{index: i, rounds: map[uint32]*round{}, barred: map[outer.Author][]uint32{}}
		f.reset(t, []outer.Link{{Round: t.Round, Chain: t.Chain, State: t.State, Tokens: t.Tokens, EndRound: t.EndRound}})
		f.since = i * p.H / p.Fragments
		f.opened = f.since
		m.frags = append(m.frags, f)
	}
	return m
}

// reset starts the fragment from a tip and the links that lead to it.
func (f *fragment) reset(t *outer.Tip, links []outer.Link) {
	f.tip, f.links, f.first = t, links, links[0].Round
	f.closed, f.base, f.bases = t.Round, t.Round, []uint32{t.Round}
	f.folding, f.dirty, f.target, f.opened = nil, 0, 0, 0
	f.stepped, f.givenUp = min(f.stepped, t.Round), false
	f.check, f.reload = 0, false
	for r := range f.rounds {
		if r <= f.base {
			delete(f.rounds, r)
		}
	}
	f.reopen()
}

// reopen sets the bell of the open round from the deltas known already.
func (f *fragment) reopen() {
	f.bell = 0
	for _, rnd := range []uint32{f.closed + 1, f.closed + 2} {
		if r := f.rounds[rnd]; f.bell == 0 && r != nil && len(r.entries) > 0 {
			f.bell = r.rang
		}
	}
}

// Effects drains what the machine wants done, in order.
func (m *Machine) Effects() []Effect {
	out := m.out
	m.out = nil
	return out
}

func (m *Machine) emit(e Effect) { m.out = append(m.out, e) }

// SetLive names the learners that can be expected to answer a bell. Local
// knowledge: it may only delay a close.
func (m *Machine) SetLive(live []outer.Author) {
	sorted := slices.Clone(live)
	slices.SortFunc(sorted, outer.CompareAuthors)
	if slices.Equal(sorted, m.live) {
		return
	}
	m.live = sorted
	m.late.forgetAllBut(m.isLive)
	m.seat()
}

// others is the number of learners that can be expected to answer beside this one.
func (m *Machine) others() int {
	if m.isLive(m.self) {
		return len(m.live) - 1
	}
	return len(m.live)
}

// SetElsewhere says how to ask whether most peers have closed a round. Local
// knowledge: a round that they closed is not too early for this node's clock.
func (m *Machine) SetElsewhere(closed func(fragment int, rnd uint32) bool) { m.elsewhere = closed }

// SetIdle names the learners that say they have nothing to publish: no round waits
// for them, calls them, nor counts them in its quorum. This node is one of them from
// when it says so, or it would call others than they call themselves.
func (m *Machine) SetIdle(idle []outer.Author) {
	m.idle = slices.Clone(idle)
	slices.SortFunc(m.idle, outer.CompareAuthors)
	m.seat()
}

// seat works out who answers bells.
func (m *Machine) seat() {
	seats := slices.DeleteFunc(slices.Clone(m.live), m.isIdle)
	if !slices.Equal(seats, m.seats) {
		m.seats = seats
		m.roster++
	}
}

func (m *Machine) isIdle(a outer.Author) bool {
	_, ok := slices.BinarySearchFunc(m.idle, a, outer.CompareAuthors)
	return ok
}

func (m *Machine) isLive(a outer.Author) bool {
	_, ok := slices.BinarySearchFunc(m.live, a, outer.CompareAuthors)
	return ok
}

// SetCommon says up to which round of each fragment others are known to have
// folded the same. Local knowledge: it only tells what is lost with a chain.
func (m *Machine) SetCommon(common []uint32) {
	for i, f := range m.frags {
		f.common = common[i]
	}
}

// SetFlush makes the learner publish all that is unpublished, however few
// steps it is: the budget is reached, or the node leaves.
func (m *Machine) SetFlush(now Time, on bool) {
	if on == m.flush {
		return // every other input runs the rules by itself
	}
	m.flush = on
	m.each(now)
}

// Tick lets time pass: grace may be over, a refold may be due.
func (m *Machine) Tick(now Time) { m.each(now) }

// Slept says that the clock left out so many milliseconds, in which the whole
// node was asleep.
func (m *Machine) Slept(ms int64) { m.slept += max(ms, 0) }

func (m *Machine) each(now Time) {
	for _, f := range m.frags {
		m.advance(now, f)
	}
}

// advance runs every rule of one fragment until none applies.
func (m *Machine) advance(now Time, f *fragment) {
	for m.mayClose(now, f) {
		m.close(now, f)
	}
	m.unstickAtRest(now, f)
	m.giveUpLate(f)
	m.askDraft(now, f)
	m.askFold(now, f)
}

// Offer takes a verified header, its payload not yet held. The error says why
// its payload is not wanted. repair says that a peer holds it in its set: what
// one node took before evidence reached it, all must take, or their sets would
// never be equal.
func (m *Machine) Offer(now Time, d outer.Delta, repair bool) error {
	if err := m.p.Check(d); err != nil {
		return err
	}
	f := m.frags[d.Fragment]
	if err := m.admits(f, d, repair); err != nil {
		return err
	}
	r := f.round(d.Round)
	if e := r.find(d.ID); e != nil {
		e.repaired = e.repaired || repair && !e.held
		return nil
	}
	if r.by(d.Author) {
		return ErrTwice
	}
	vouched := m.vouched(f, d)
	if d.Author != m.self && (r.size() >= maxEntries || !vouched && !repair && r.hollow() >= maxHollow) {
		return ErrFull
	}
	r.insert(entry{delta: d, vouched: vouched, repaired: repair})
	if vouched {
		m.ring(now, f, d.Round)
	}
	m.advance(now, f)
	return nil
}

// vouched says whether a header is believed before its payload is held: whether
// that of the author's delta before it is. Keys are free, so a first header, and
// one after a header whose payload never came, neither rings nor counts.
func (m *Machine) vouched(f *fragment, d outer.Delta) bool {
	for back := uint32(1); back <= m.p.WindowAccept && back < d.Round; back++ {
		r := f.rounds[d.Round-back]
		if r == nil {
			continue
		}
		if of := r.of(d.Author); len(of) > 0 {
			return of[0].held
		}
	}
	return false
}

// Held says that the payload of a known delta is verified and stored.
func (m *Machine) Held(now Time, fragment int, rnd uint32, id outer.ID) {
	f := m.frags[fragment]
	r, ok := f.rounds[rnd]
	if !ok || m.final(f, rnd) {
		return
	}
	e := r.find(id)
	if e == nil || e.held {
		return
	}
	r.hold(e, true)
	m.ring(now, f, rnd)
	if m.isLive(e.delta.Author) {
		m.late.observe(e.delta.Author, now-r.rang)
		if late := now - r.rang; m.showsWay(f, r, e, late) {
			m.late.observeWay(e.delta.Author, min(late, m.p.GraceMaxMs))
		}
	}
	f.touched(rnd)
	m.advance(now, f)
}

// showsWay says whether how late a delta comes is what the links take: where its
// learner had to step first it took longer, and so it did where it comes by repair, where
// somebody rang before the round was open, or where this node catches up with the others,
// which takes a look at all peers: one that is not late needs none.
func (m *Machine) showsWay(f *fragment, r *round, e *entry, late Time) bool {
	ready := int(e.delta.Steps) > m.p.HMin && !e.repaired && !r.parked
	return ready && (2*late <= m.late.between() || !m.closedElsewhere(f.index, f.closed+1))
}

// Invalid forgets a delta whose payload does not decode: it is refused by
// every node alike.
func (m *Machine) Invalid(now Time, fragment int, rnd uint32, id outer.ID) {
	f := m.frags[fragment]
	if r, ok := f.rounds[rnd]; ok {
		r.leaveOut(func(e entry) bool { return e.delta.ID == id })
		m.advance(now, f)
	}
}

// Bar takes evidence that an author signed two deltas for one round. While the
// round can still change both are left out of it; afterwards the author's new
// deltas are.
func (m *Machine) Bar(now Time, fragment int, rnd uint32, author outer.Author) {
	f := m.frags[fragment]
	m.barred[author] = true
	if !slices.Contains(f.barred[author], rnd) {
		f.barred[author] = append(f.barred[author], rnd)
	}
	if r, ok := f.rounds[rnd]; ok && !m.final(f, rnd) {
		r.out += r.leaveOut(func(e entry) bool { return e.delta.Author == author })
		f.touched(rnd)
	}
	m.advance(now, f)
}

// CloseTo says that a peer closed this far and that all it folded is held
// here: nothing is gained by waiting longer.
func (m *Machine) CloseTo(now Time, fragment int, rnd uint32) {
	f := m.frags[fragment]
	f.target = max(f.target, rnd)
	m.advance(now, f)
}

// ring notes the first bell of a round, and that of the open round, which those
// of the next ring too.
func (m *Machine) ring(now Time, f *fragment, rnd uint32) {
	if r := f.round(rnd); r.rang == 0 {
		r.rang, r.parked = now, rnd > f.closed+2
	}
	if f.bell == 0 && (rnd == f.closed+1 || rnd == f.closed+2) {
		f.bell = now
	}
}

// final says that the set of a round cannot change any more: it is older than
// the union window, or than the oldest kept base.
func (m *Machine) final(f *fragment, rnd uint32) bool {
	return rnd <= f.base || uint64(rnd)+uint64(m.p.WindowUnion) <= uint64(f.closed)
}

// Lost says that the payload of a held delta turned out to be damaged: it is no
// longer held, until repair brings it again. That of a final round does not come
// again; where a fold needs it, this node goes on without it all the same, on a
// chain that loses to that of the others.
func (m *Machine) Lost(now Time, fragment int, rnd uint32, id outer.ID) {
	f := m.frags[fragment]
	r, ok := f.rounds[rnd]
	if !ok || rnd <= f.base || m.final(f, rnd) && !f.needs(rnd) {
		return
	}
	if e := r.find(id); e != nil && e.held {
		r.hold(e, false)
		e.repaired = true
		f.touched(rnd)
		m.advance(now, f)
	}
}

// needs says that a round is to be folded, for the first time or again.
func (f *fragment) needs(rnd uint32) bool {
	again := f.folding != nil && rnd > f.folding.start || f.dirty != 0 && rnd >= f.dirty
	return rnd > f.tip.Round || again
}

// maxParked bounds the deltas of one fragment that wait ahead of the next round, and
// maxParkedByGossip those of them that gossip brings, so that repair finds room for what
// lies between.
const (
	maxParked         = 256
	maxParkedByGossip = maxParked / 2
)

// admits is the window: a final delta cannot be folded here, and each author may park
// deltas ahead of the next round, the next one when the payload of the one before is
// held, not far, and not everybody.
func (m *Machine) admits(f *fragment, d outer.Delta, repair bool) error {
	if m.final(f, d.Round) {
		return ErrFinal
	}
	if m.barred[d.Author] && !repair || slices.Contains(f.barred[d.Author], d.Round) {
		return ErrBarred
	}
	if d.Round <= f.closed+2 {
		return nil
	}
	if !repair && d.Round > f.closed+m.p.WindowAccept || d.Round > f.closed+m.p.WindowUnion {
		return ErrParked
	}
	parked, most := 0, maxParked
	if !repair {
		most = maxParkedByGossip
	}
	for r, known := range f.rounds {
		if r <= f.closed+2 {
			continue
		}
		parked += known.size()
		if r != d.Round && known.waits(d.Author) && !repair || parked >= most {
			return ErrParked
		}
	}
	return nil
}

// Barred says that there is evidence against an author, so that its new deltas
// are not taken.
func (m *Machine) Barred(a outer.Author) bool { return m.barred[a] }

// maxEntries bounds what one round may hold in memory: C answer a round, and
// ringers beyond them are few; a thousand is far above both. What evidence left out
// counts, or keys that sign twice would make room for others without end.
const maxEntries = 1024

// size is what counts towards maxEntries.
func (r *round) size() int { return len(r.entries) + r.out }

// maxHollow bounds how many of them may be headers of authors that nothing came
// of yet, so that a flood of fresh keys leaves room for the others. All learners
// of a large run are such in its first round.
const maxHollow = maxEntries / 2

// touched marks a closed round as changed since it was folded.
func (f *fragment) touched(rnd uint32) {
	if rnd > f.closed {
		return
	}
	if f.dirty == 0 || rnd < f.dirty {
		f.dirty = rnd
	}
}

func (f *fragment) round(rnd uint32) *round {
	r, ok := f.rounds[rnd]
	if !ok {
		f.memo.rounds++
		r = &round{memo: f.memo.rounds << 32}
		f.rounds[rnd] = r
	}
	return r
}

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

// waits says whether a payload of an author is yet to come.
func (r *round) waits(a outer.Author) bool {
	return slices.ContainsFunc(r.of(a), func(e entry) bool { return !e.held })
}

// hollow counts the entries whose payload is not held and may never come, and what
// evidence left out, where there is so much of both that it matters.
func (r *round) hollow() (n int) {
	if r.size() < maxHollow {
		return 0
	}
	n = r.out
	for _, e := range r.entries {
		if !e.held && !e.vouched {
			n++
		}
	}
	return n
}

func (r *round) insert(e entry) {
	i, _ := slices.BinarySearchFunc(r.entries, e, compareEntries)
	r.entries = slices.Insert(r.entries, i, e)
	r.keys = slices.Insert(r.keys, i, keyOf(e.delta.ID))
	r.authors = slices.Insert(r.authors, i, orderOf(e.delta.Author))
	if e.held {
		r.have++
	}
	r.memo++
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
	r.memo++
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
	r.memo++
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
