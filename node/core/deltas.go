package core

import (
	"errors"
	"fmt"
	"slices"

	"atoll/gossip"
	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
	"atoll/tensor/codec"
)

// DeltaOf is what the outer step sees of a header, whose certificate is one of members.
func DeltaOf(id wire.Digest, h wire.Header, members *member.Table) outer.Delta {
	d := outer.Delta{
		ID: outer.ID(id), Author: outer.Author(h.Author), Fragment: int(h.Fragment),
		Round: h.Round, Base: h.Base, Steps: h.Steps, Tokens: h.Tokens,
		Codec: codec.Kind(h.Codec), Size: int(h.Size),
	}
	if h.Revocation() {
		d.Revokes = h.Certificate
		return d
	}
	c, _ := members.Find(h.Certificate)
	d.Invite, d.Uses, d.Guest = c.Invite.Key, c.Invite.Uses, c.Invite.Guests
	return d
}

// worth is how many tokens of a delta with this header count at most, whatever else is in its round.
func (m *Machine) worth(h wire.Header) uint64 {
	d := m.deltaOf(wire.Digest{}, h)
	if d.Guest || d.Revocation() {
		return 0
	}
	return m.cfg.Params.Claimed(d)
}

func (m *Machine) deltaOf(id wire.Digest, h wire.Header) outer.Delta {
	return DeltaOf(id, h, m.cfg.Gossip.Members)
}

// offer hands a header to the rounds. What breaks the run's rules is refused
// for good and never fetched; what merely came too late or too early is not
// wanted now.
func (m *Machine) offer(now Time, id wire.Digest, sh *wire.SignedHeader, repair bool) {
	d := m.deltaOf(id, sh.Header)
	err := m.check(sh.Header)
	if err == nil && m.isOwn(d) {
		m.signedBefore(id, sh.Header)
	}
	if err == nil && !repair && m.tooLate(now, d) {
		err = rounds.ErrLate
	}
	if err == nil {
		err = m.rounds.Offer(now, d, repair)
	}
	if err != nil {
		m.refuse(now, id, sh.Header, err)
		return
	}
	if _, known := m.headers[id]; !known {
		m.headers[id] = sh
		m.heard.delta(sh.Header)
	}
}

// check tells whether a delta keeps the run's rules, from its header alone.
func (m *Machine) check(h wire.Header) error {
	if err := m.cfg.Gossip.Members.CheckHeader(h); err != nil {
		return err
	}
	d := m.deltaOf(wire.Digest{}, h)
	if err := m.cfg.Params.Check(d); err != nil {
		return err
	}
	if d.Revocation() {
		return nil // it has no values
	}
	return m.cfg.Params.CheckSize(m.cfg.Plan[d.Fragment], d.Size)
}

// refuse tells the gossip core not to fetch what no node will fold. What
// came at a bad time may be offered again by repair.
func (m *Machine) refuse(now Time, id wire.Digest, h wire.Header, err error) {
	for _, passing := range []error{member.ErrUnknown, rounds.ErrParked, rounds.ErrFinal, rounds.ErrFull, rounds.ErrLate, rounds.ErrExcluded, rounds.ErrTwice, rounds.ErrRevoked} {
		if errors.Is(err, passing) {
			m.gossip.Complete(now, id, gossip.ErrUnwanted)
			return
		}
	}
	m.refused++
	m.emit(Refused{ID: id, Header: h, Reason: err})
	m.gossip.Complete(now, id, err)
}

// fetched takes a payload whose hash fits. Its header may have been parked
// when it first came.
func (m *Machine) fetched(now Time, e gossip.Fetched) {
	id := e.ID
	if m.check(e.Header.Header) != nil {
		return // refused when the header came; its payload came along
	}
	if _, known := m.headers[id]; !known {
		m.offer(now, id, e.Header, false)
	}
	if _, known := m.headers[id]; !known {
		m.gossip.Complete(now, id, gossip.ErrUnwanted)
		return
	}
	m.emit(StoreDelta{ID: id, Header: e.Header, Payload: e.Payload})
}

// Stepped counts an inner step of the own learner.
func (m *Machine) Stepped(now Time, tokens uint64) {
	m.steppedPaused(now)
	m.stepTokens, m.end.stepped = tokens, now
	m.learning.steps++
	m.learning.tokens += tokens
	m.rounds.Stepped(now, tokens)
	m.tickEnd(now)
	m.announceStep(now)
	m.pump(now)
}

// errReturned is what the rounds are told of a draft that is not published.
var errReturned = errors.New("the draft was returned")

// SignDraft takes what came of a WantDraft. A copy of the learner's progress gets its
// round, is signed and goes to disk. If that round must not be signed, it goes back to
// the learner. Where there is none, err may say that global parameters or an own delta are
// damaged; then the fragment is repaired.
func (m *Machine) SignDraft(now Time, fragment int, d outer.Draft, err error) {
	if err != nil {
		m.draftFailed(now, fragment, err)
		return
	}
	round, may := m.rounds.RoundOfDraft(fragment)
	if !may {
		m.returnDraft(now, fragment, outer.Own{Seq: d.Seq, Base: d.Base, Steps: d.Steps, Tokens: d.Tokens})
		return
	}
	h := wire.Header{
		Author: m.self, Fragment: uint16(fragment), Round: round,
		Base:  min(d.Base, round-1), // a snapshot may be older than what the steps began on
		Steps: d.Steps, Tokens: d.Tokens, Codec: uint8(m.cfg.Params.Codec),
		Size: uint32(len(d.Payload)), Payload: wire.Sum(d.Payload), Certificate: m.cfg.Certificate,
	}
	sh := wire.SignHeader(m.cfg.Key, m.cfg.Run, h)
	m.emit(StoreOwn{ID: sh.Header.ID(m.cfg.Run), Header: sh, Payload: d.Payload, Seq: d.Seq})
	m.pump(now)
}

func (m *Machine) draftFailed(now Time, fragment int, err error) {
	m.rounds.SettleDraft(now, fragment, rounds.OwnDelta{}, rounds.ErrNoDraft)
	switch {
	case errors.Is(err, outer.ErrDamaged):
		m.rounds.Damaged(now, fragment, rounds.DamagedTip, 0)
	case errors.Is(err, outer.ErrUnread):
		m.rounds.Damaged(now, fragment, rounds.DamagedOwn, 0)
	}
	m.pump(now)
}

func (m *Machine) returnDraft(now Time, fragment int, o outer.Own) {
	m.rounds.SettleDraft(now, fragment, rounds.OwnDelta{}, errReturned)
	m.emit(ReturnDraft{Fragment: fragment, Own: o})
	m.pump(now)
}

// StoredOwn says that an own delta is durable: now it may be seen. If it could not be
// made durable, nothing of it has left, so its work goes back to the learner and is
// published later.
func (m *Machine) StoredOwn(now Time, e StoreOwn, err error) {
	if err != nil {
		h := e.Header.Header
		m.returnDraft(now, int(h.Fragment), outer.Own{Seq: e.Seq, Base: h.Base, Steps: h.Steps, Tokens: h.Tokens})
		return
	}
	h := e.Header // a pointer into e would hold the payload as long as the header
	m.headers[e.ID] = &h
	m.end.announced = now
	m.rounds.SettleDraft(now, int(h.Header.Fragment), rounds.OwnDelta{Seq: e.Seq, Delta: m.deltaOf(e.ID, h.Header)}, nil)
	m.gossip.Announce(now, e.Header, e.Payload)
	m.gossip.Complete(now, e.ID, nil)
	if len(e.Payload) <= wire.MaxInline {
		m.rounds.HandedOver(now, int(e.Header.Header.Fragment), outer.ID(e.ID))
	}
	m.pump(now)
}

// forgot drops what is kept of a delta that its round has no place for any more. The disk keeps own ones: by them
// a learner knows after a restart what it published, also where a revocation put them out.
func (m *Machine) forgot(id wire.Digest) {
	h, known := m.headers[id]
	delete(m.headers, id)
	if !known || h.Header.Author != m.self {
		m.emit(ForgetDelta{ID: id})
	}
}

// StoredDelta says that another's payload is verified and stored. One that could not be
// stored counts as missing until repair brings it again.
func (m *Machine) StoredDelta(now Time, id wire.Digest, err error) {
	if err != nil {
		m.gossip.Complete(now, id, gossip.ErrNotStored)
		m.pump(now)
		return
	}
	h, ok := m.headers[id]
	if !ok { // its round had no room for it any more
		m.emit(ForgetDelta{ID: id})
		m.gossip.Complete(now, id, gossip.ErrUnwanted)
		m.pump(now)
		return
	}
	p, r := int(h.Header.Fragment), h.Header.Round
	if r <= m.rounds.Fragment(p).Closed() {
		m.late++
	}
	m.end.came, m.end.doubted = now, false
	m.heard.delivered(h.Header.Author, m.worth(h.Header))
	m.attendance.attended(h.Header.Author)
	m.rounds.Payload(now, p, r, outer.ID(id), rounds.PayloadHeld)
	m.gossip.Complete(now, id, nil)
	m.pump(now)
}

// Invalid says that a payload does not decode: the delta is refused by every
// node alike.
func (m *Machine) Invalid(now Time, id wire.Digest, reason error) {
	if h, ok := m.headers[id]; ok {
		m.rounds.Payload(now, int(h.Header.Fragment), h.Header.Round, outer.ID(id), rounds.PayloadInvalid)
		m.refuse(now, id, h.Header, reason)
		delete(m.headers, id)
	}
	m.pump(now)
}

// FoldDone takes what came of a WantFold. One that came to nothing for now is asked for
// again. The error is from a fold that contradicts the chain.
func (m *Machine) FoldDone(now Time, res rounds.FoldResult) error {
	switch err := m.rounds.TakeFold(now, res); {
	case res.Err != nil: // there is nothing to compare
	case err != nil:
		return err
	default:
		m.tickEnd(now)
	}
	m.pump(now)
	return nil
}

// Lost says that the stored payload of a delta is damaged: it is fetched again.
func (m *Machine) Lost(now Time, id wire.Digest) {
	if h, ok := m.headers[id]; ok {
		m.rounds.Payload(now, int(h.Header.Fragment), h.Header.Round, outer.ID(id), rounds.PayloadLost)
	}
	m.pump(now)
}

// Damaged says that a kept base of some round, or the newest tip, is not what its
// digest says.
func (m *Machine) Damaged(now Time, fragment int, what rounds.Damage, round uint32) {
	m.rounds.Damaged(now, fragment, what, round)
	m.pump(now)
}

// Repaired says what a damaged tip or own delta cost the learner.
func (m *Machine) Repaired(now Time, fragment int, loss outer.Loss) {
	m.rounds.Repaired(now, fragment, loss)
	m.pump(now)
}

// Equivocation takes proof that this node kept from before a restart.
func (m *Machine) Equivocation(now Time, e wire.Equivocation) {
	m.exclude(now, e, true)
	m.pump(now)
}

// exclude leaves out both deltas of an equivocator. Where no more proofs are kept, a key that
// nothing is known of is let be: there is nothing to leave out. What was stored was of use. It
// reports whether this proof is of use, and was not known: then it is to be stored. What a store
// has of guests, or of certificates that are not known, proves nothing.
func (m *Machine) exclude(now Time, e wire.Equivocation, stored bool) bool {
	p, r := int(e.A.Header.Fragment), e.A.Header.Round
	if p >= m.rounds.Fragments() || !m.cfg.Gossip.Members.Proves(e) {
		return false
	}
	key := roundKey{p, r}
	a, b := e.A.Header.ID(m.cfg.Run), e.B.Header.ID(m.cfg.Run)
	kept := m.equivocation[key]
	switch {
	case slices.ContainsFunc(kept, func(h wire.SignedHeader) bool { return h.Header.Author == e.A.Header.Author }):
		return false // handed up once more, after a restart or a flood
	case len(kept) < maxEquivocation && (kept != nil || len(m.equivocation) < maxEquivocationRounds):
		m.equivocation[key] = append(kept, e.A, e.B)
	case !stored && !m.knows(a) && !m.knows(b):
		return false
	}
	m.rounds.Exclude(now, p, r, outer.Author(e.A.Header.Author))
	for _, id := range []wire.Digest{a, b} {
		if known, _ := m.rounds.Fragment(p).Known(r, outer.ID(id)); m.knows(id) && !known {
			delete(m.headers, id)
			m.gossip.Complete(now, id, gossip.ErrUnwanted)
		}
	}
	return true
}

func (m *Machine) knows(id wire.Digest) bool {
	_, known := m.headers[id]
	return known
}

// maxEquivocation bounds the headers kept as equivocation proofs for one round: each pair
// excludes its author from the run, so there are few.
const maxEquivocation = 64

// maxEquivocationRounds bounds the rounds for which equivocation proofs are kept: keys are free
// to make, memory is not.
const maxEquivocationRounds = 4096

// forgetHeaders drops the headers of rounds that left the union window. They
// stay in the ledger. Rounds above the oldest kept base are still of use,
// however far the window is: the rounds hold their deltas, and a snapshot may put
// them inside of the window again.
func (m *Machine) forgetHeaders(fragment int) {
	closed, union := m.rounds.Fragment(fragment).Closed(), m.cfg.Params.WindowUnion
	if closed <= union || closed%forgetEvery != 0 {
		return
	}
	final := min(closed-union, m.rounds.Fragment(fragment).Base())
	for id, h := range m.headers {
		if int(h.Header.Fragment) == fragment && h.Header.Round <= final {
			delete(m.headers, id)
		}
	}
	for key := range m.equivocation {
		if key.fragment == fragment && key.round <= final {
			delete(m.equivocation, key)
		}
	}
	for key := range m.cache.sets {
		if key.fragment == fragment && key.round <= closed-union {
			delete(m.cache.sets, key)
		}
	}
}

// forgetEvery is how many rounds pass between two sweeps over the headers.
const forgetEvery = 16

// Restore puts one fragment back to what the disk holds, with the headers of
// the deltas in it.
func (m *Machine) Restore(now Time, fragment int, s rounds.Restored, headers map[wire.Digest]wire.SignedHeader) (folded []uint64, err error) {
	for id, h := range headers {
		if int(h.Header.Fragment) != fragment {
			return nil, fmt.Errorf("restore fragment %d: delta %v is of fragment %d", fragment, id, h.Header.Fragment)
		}
		m.headers[id] = &h
		m.heard.had(h.Header.Author, m.worth(h.Header))
		m.attendance.attended(h.Header.Author)
		m.gossip.Complete(now, id, nil)
	}
	for _, l := range s.History {
		m.credit(l)
	}
	folded = m.rounds.Restore(now, fragment, s)
	m.join.restored = true
	m.pump(now)
	return folded, nil
}
