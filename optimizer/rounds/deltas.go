package rounds

import (
	"errors"
	"slices"

	"atoll/optimizer/outer"
)

// Why a header is not taken.
var (
	ErrFinal    = errors.New("the round is final here: older than the window or than the oldest kept base")
	ErrExcluded = errors.New("the author signed two deltas for one round")
	ErrRevoked  = errors.New("an owner of the run revoked the author")
	ErrTwice    = errors.New("the author already has another delta in this round")
	ErrLate     = errors.New("the round is closed here: a delta of a guest, or one after the end, comes by repair alone")
	ErrFull     = errors.New("the round already has the most deltas that it takes, all of higher priority, or too many headers without payloads")
	ErrParked   = errors.New("ahead of the open round: too far, too many, or the payload of the author's delta before is yet to come")
)

// deltas are the deltas known of rounds above the base, and what equivocation proofs say of their authors.
type deltas struct {
	rounds   map[uint32]*round
	excluded map[outer.Author][]uint32 // rounds for which there is an equivocation proof against an author
	most     int                       // deltas of members that a fold of one round takes
	guests   int                       // and of guests
	// revoked are the names that the tip of the base and the sets above it revoke, ordered.
	revoked []outer.Revoked
	cache   struct {
		rounds uint64 // made so far, for their versions
		newest uint32 // no round above has ever been in rounds
	}
}

func (d *deltas) round(rnd uint32) *round {
	r, ok := d.rounds[rnd]
	if !ok {
		d.cache.rounds++
		r = newRound(d.most, d.guests)
		r.cache.version = d.cache.rounds << 32
		d.rounds[rnd] = r
		d.cache.newest = max(d.cache.newest, rnd)
	}
	return r
}

// Offer takes a verified header, its payload not yet held. The error says why
// its payload is not wanted. repair says that a peer holds it in its set: what
// one node took before an equivocation proof reached it, all must take, or their sets would
// never be equal.
func (m *Machine) Offer(now Time, d outer.Delta, repair bool) error {
	if err := m.p.Check(d); err != nil {
		return err
	}
	f := m.frags[d.Fragment]
	if err := m.admits(f, d, repair); err != nil {
		return err
	}
	r := f.deltas.round(d.Round)
	if e := r.find(d.ID); e != nil {
		e.repaired = e.repaired || repair && !e.held
		return nil
	}
	if r.by(d.Author) && !d.Revocation() && !d.Guest {
		return ErrTwice
	}
	e := entry{delta: d, priority: outer.PriorityOf(m.run, d), trusted: m.trusts(f, d), repaired: repair}
	if d.Author != m.self && (r.roomFor(d).beyond(e.priority) || r.crowded(e)) {
		return ErrFull
	}
	if d.Guest && !repair {
		r.tried++
	}
	r.insert(e)
	m.forgetGuests(f, r, d.Round)
	m.thin(f, r, d.Round)
	if e.trusted {
		m.propose(now, f, d.Round)
	}
	m.advance(now, f)
	return nil
}

// guestTries is how many headers of guests gossip may bring to a round, in units of its room for them. Whoever makes keys
// without end can have each come before those that came, and every one costs a payload.
const guestTries = 4

// crowded says that gossip brought too many headers for another of an author that nothing came of yet, or for another of a
// guest. What a member brings by repair is never too much: all must take what one took.
func (r *round) crowded(e entry) bool {
	if e.delta.Guest {
		return !e.repaired && (r.tried >= r.mostGuests() || r.awaitsGuests() >= r.mostGuests())
	}
	return e.vouched() == 0 && r.missing() >= maxMissing
}

// mostGuests is how many headers of guests gossip may bring, and how many of them wait for their payloads.
func (r *round) mostGuests() int { return guestTries * r.guests.most }

// forgetGuests forgets the oldest headers of guests without payloads where there are too many.
func (m *Machine) forgetGuests(f *fragment, r *round, rnd uint32) {
	for r.awaitsGuests() > r.mostGuests() {
		id, found := r.forget(func(e entry) bool { return e.delta.Guest && !e.held && e.delta.Author != m.self }, oldestFirst)
		if !found {
			return
		}
		m.emit(Forgot{Fragment: f.index, Round: rnd, ID: id})
	}
}

// thin forgets what the round has no room for.
func (m *Machine) thin(f *fragment, r *round, rnd uint32) {
	for _, id := range r.thin(m.self) {
		m.emit(Forgot{Fragment: f.index, Round: rnd, ID: id})
	}
}

// trusts says whether a header is believed before its payload is held: whether
// the payload of the author's delta before it is held. Keys are free, so a first
// header, and one after a header whose payload never came, neither proposes
// nor counts. That of a guest never does.
func (m *Machine) trusts(f *fragment, d outer.Delta) bool {
	if d.Guest {
		return false
	}
	for back := uint32(1); back <= m.p.WindowAccept && back < d.Round; back++ {
		r := f.deltas.rounds[d.Round-back]
		if r == nil {
			continue
		}
		if r.by(d.Author) {
			return r.holds(d.Author)
		}
	}
	return false
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
// held, not far, and not everybody. Guests propose no round, so gossip brings theirs for the two that are open alone:
// each that came late would have all fold again.
func (m *Machine) admits(f *fragment, d outer.Delta, repair bool) error {
	if m.final(f, d.Round) {
		return ErrFinal
	}
	excluded := m.excluded[d.Author] && !repair || slices.Contains(f.deltas.excluded[d.Author], d.Round)
	if excluded && !d.Revocation() && !d.Guest {
		return ErrExcluded
	}
	if f.keptOut(d) {
		return ErrRevoked
	}
	if d.Round <= f.chain.closed && d.Guest && !repair {
		return ErrLate
	}
	if d.Round <= f.chain.closed+2 {
		return nil
	}
	if d.Guest && !repair {
		return ErrParked
	}
	if !repair && d.Round > f.chain.closed+m.p.WindowAccept || d.Round > f.chain.closed+m.p.WindowUnion {
		return ErrParked
	}
	parked, most := 0, maxParked
	if !repair {
		most = maxParkedByGossip
	}
	for r, known := range f.deltas.rounds {
		if r <= f.chain.closed+2 {
			continue
		}
		if d.Guest {
			parked += known.guests.known
		} else {
			parked += known.size()
		}
		if r != d.Round && known.waits(d.Author) && !repair || parked >= most {
			return ErrParked
		}
	}
	return nil
}

// Payload is what became of the payload of a known delta.
type Payload uint8

const (
	PayloadHeld    Payload = iota // it is verified and stored
	PayloadLost                   // it was held, and turned out to be damaged
	PayloadInvalid                // it does not decode: every node refuses the delta
)

// Payload takes what became of the payload of a known delta.
func (m *Machine) Payload(now Time, fragment int, rnd uint32, id outer.ID, is Payload) {
	f := m.frags[fragment]
	r, ok := f.deltas.rounds[rnd]
	if !ok {
		return
	}
	switch is {
	case PayloadHeld:
		m.held(now, f, r, rnd, id)
	case PayloadLost:
		m.lost(now, f, r, rnd, id)
	case PayloadInvalid:
		r.leaveOut(func(e entry) bool { return e.delta.ID == id })
		m.advance(now, f)
	}
}

// held says that the payload of a known delta is verified and stored.
func (m *Machine) held(now Time, f *fragment, r *round, rnd uint32, id outer.ID) {
	if m.final(f, rnd) {
		return
	}
	e := r.find(id)
	if e == nil || e.held {
		return
	}
	changed := r.hold(e)
	if !e.delta.Guest {
		m.arrived(now, f, r, e)
	}
	m.thin(f, r, rnd)
	if changed {
		f.touched(rnd)
	}
	if e.delta.Revocation() {
		m.revoke(f)
	}
	m.advance(now, f)
}

// arrived records when a held delta came: it proposes the round, if none did before, and shows how late its author's are.
func (m *Machine) arrived(now Time, f *fragment, r *round, e *entry) {
	r.blind = r.blind || r.proposed == 0
	m.propose(now, f, e.delta.Round)
	if !m.peerList.isLive(e.delta.Author) || r.blind {
		return
	}
	late := now - r.proposed
	m.late.observe(e.delta.Author, late)
	if m.showsWay(f, r, e, late) {
		m.late.observeWay(e.delta.Author, min(late, m.p.GraceMaxMs))
	}
}

// showsWay says whether how late a delta comes is what the links take: where its
// learner had to step first it took longer, and so it did where it comes by repair, where
// somebody proposed it before it was open, or where this node catches up with the others,
// which takes a look at all peers: one that is not late needs none.
func (m *Machine) showsWay(f *fragment, r *round, e *entry, late Time) bool {
	ready := int(e.delta.Steps) > m.p.HMin && !e.repaired && !r.parked
	return ready && (2*late <= m.late.between() || !m.closedElsewhere(f.index, f.chain.closed+1))
}

// lost says that the payload of a held delta turned out to be damaged: it is no
// longer held, until repair brings it again. That of a final round does not come
// again; where a fold needs it, this node goes on without it all the same, on a
// chain that loses to that of the others.
func (m *Machine) lost(now Time, f *fragment, r *round, rnd uint32, id outer.ID) {
	if rnd <= f.chain.base || m.final(f, rnd) && !f.needs(rnd) {
		return
	}
	if e := r.find(id); e != nil && e.held {
		e.repaired = true
		if r.unhold(e) {
			f.touched(rnd)
		}
		if e.delta.Revocation() {
			m.revoke(f) // others bring back what it kept out, and then it
		}
		m.advance(now, f)
	}
}

// Exclude takes an equivocation proof that an author signed two deltas for one round. While the
// round can still change both are left out of it; afterwards the author's new
// deltas are. Nothing else decides it, as what is left out must be the same everywhere:
// not how many were left out before, nor whether a payload came first.
func (m *Machine) Exclude(now Time, fragment int, rnd uint32, author outer.Author) {
	f := m.frags[fragment]
	m.excluded[author] = true
	if !slices.Contains(f.deltas.excluded[author], rnd) {
		f.deltas.excluded[author] = append(f.deltas.excluded[author], rnd)
	}
	if r, ok := f.deltas.rounds[rnd]; ok && !m.final(f, rnd) {
		r.out += r.leaveOut(func(e entry) bool { return e.delta.Author == author && !e.delta.Revocation() && !e.delta.Guest })
		f.touched(rnd)
	}
	m.advance(now, f)
}
