package headers

import (
	"cmp"
	"fmt"
	"slices"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// Headers sorts the headers that arrive: known, old, an equivocation proof, or new.
type Headers struct {
	base
	seen         seen
	equivocation equivocation
}

// New returns a machine that met no header yet. chain is read during its calls only.
func New(t *peers.Table, b Bounds, chain Chain) *Headers {
	h := &Headers{base: base{Table: t, Bounds: b, chain: chain}, seen: newSeen()}
	h.equivocation = newEquivocation(&h.base)
	return h
}

// Verdict on a header that was met.
type Verdict uint8

const (
	Fresh    Verdict = iota // first met now
	Known                   // met before
	Refused                 // no header of this run; its author was marked
	Conflict                // the second of its author for this round: now an equivocation proof
)

// Classify classes a verified header, remembers it and turns a second one for a
// slot into an equivocation proof.
func (h *Headers) Classify(s *wire.SignedHeader) (wire.Digest, Verdict) {
	id := s.Header.ID(h.Config.Run)
	if h.seen.find(id) != nil {
		return id, h.repeated(id, s)
	}
	if reason := h.unfit(s.Header); reason != "" {
		h.Misbehaved(s.Header.Author, reason)
		return id, Refused
	}
	other := h.Other(id, s.Header)
	h.Add(id, s)
	if other != nil {
		h.equivocation.found(*other, *s)
		return id, Conflict
	}
	if h.chain.Has(id) {
		return id, Known
	}
	return id, Fresh
}

// repeated tells a header met before from the second of a pair met before.
func (h *Headers) repeated(id wire.Digest, s *wire.SignedHeader) Verdict {
	if first := h.seen.filled(slotOf(s.Header)); first != nil && first.ID != id && !s.Header.Revocation() && h.Config.Members.Binds(s.Header) {
		return Conflict
	}
	return Known
}

// unfit says what no delta of this run has, "" if the header fits.
func (h *Headers) unfit(d wire.Header) string {
	switch {
	case !h.ofRun(d.Fragment):
		return fmt.Sprintf("header for fragment %d in a run of %d", d.Fragment, h.chain.Fragments())
	case d.Size > h.MaxPayload:
		return fmt.Sprintf("header for a payload of %d bytes, the run's largest is %d", d.Size, h.MaxPayload)
	}
	return ""
}

// Other finds a different header of the same author for the same round, which one of the two is
// too many. Revocations are never too many, nor is what binds nobody.
func (h *Headers) Other(id wire.Digest, d wire.Header) *wire.SignedHeader {
	if d.Revocation() || !h.Config.Members.Binds(d) {
		return nil
	}
	if v := h.seen.filled(slotOf(d)); v != nil && v.ID != id {
		return v.Header
	}
	for _, s := range h.chain.SignedBy(int(d.Fragment), d.Round, d.Author) {
		if s.Header.ID(h.Config.Run) != id && !s.Header.Revocation() && h.Config.Members.Binds(s.Header) {
			return &s
		}
	}
	return nil
}

// Old reports whether gossip no longer brings the delta: it is older than the
// accept window, and only repair takes it.
func (h *Headers) Old(d wire.Header) bool {
	return uint64(d.Round)+uint64(h.WindowAccept) < uint64(h.chain.Closed(int(d.Fragment)))
}

// FarAhead reports whether a header is too new to be pulled yet: parking it
// is the outer side's choice, and repair brings what lies between.
func (h *Headers) FarAhead(d wire.Header) bool {
	return uint64(d.Round) > uint64(h.chain.Closed(int(d.Fragment)))+uint64(h.WindowAccept)
}

// Ahead reports whether a header shows that this node missed a round.
func (h *Headers) Ahead(d wire.Header) bool {
	return uint64(d.Round) > uint64(h.chain.Closed(int(d.Fragment)))+2
}

// Find is what is known of a header that was met lately, nil for nothing.
func (h *Headers) Find(id wire.Digest) *Sighting { return h.seen.find(id) }

// Add remembers a header that Find does not know.
func (h *Headers) Add(id wire.Digest, s *wire.SignedHeader) {
	h.seen.add(id, s, h.Config.Members.Binds(s.Header))
}

// Invalid reports whether the payload of id is known to be unusable.
func (h *Headers) Invalid(id wire.Digest) bool {
	v := h.seen.find(id)
	return v != nil && v.Invalid != ""
}

// Newest are the headers of an author's highest rounds that this node has met,
// one a fragment, with or without their payloads.
func (h *Headers) Newest(author wire.PeerID) []wire.SignedHeader {
	newest := h.chain.Newest(author)
	for _, v := range h.seen.ring {
		d := v.Header.Header
		if d.Author != author {
			continue
		}
		i := slices.IndexFunc(newest, func(n wire.SignedHeader) bool { return n.Header.Fragment == d.Fragment })
		switch {
		case i < 0:
			newest = append(newest, *v.Header)
		case newest[i].Header.Round < d.Round:
			newest[i] = *v.Header
		}
	}
	slices.SortFunc(newest, func(a, b wire.SignedHeader) int { return cmp.Compare(a.Header.Fragment, b.Header.Fragment) })
	return newest
}

// Equivocation takes a verified equivocation proof from gossip, a bounded amount per author.
func (h *Headers) Equivocation(e wire.Equivocation) { h.equivocation.received(e) }

// Against says for people what is proved of an author, "" for nothing.
func (h *Headers) Against(author wire.PeerID) string { return h.equivocation.against(author) }

// Sizes calls each with how much is held of what others may cause, and what bounds it.
func (h *Headers) Sizes(each func(what string, count, most int)) {
	each("headers met", len(h.seen.ring), MaxSeen)
	each("equivocation proofs", len(h.equivocation.ring), maxEquivocation)
}
