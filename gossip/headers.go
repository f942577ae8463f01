package gossip

import (
	"fmt"

	"atoll/gossip/wire"
)

// headers sorts the headers that arrive, by gossip or by repair: known, old,
// an equivocation proof, or new.
type headers struct {
	*env
	seen         seen
	equivocation *equivocation
}

// verdict on a header that was met.
type verdict uint8

const (
	fresh    verdict = iota // first met now
	known                   // met before
	refused                 // no header of this run; its author was marked
	conflict                // the second of its author for this round: now an equivocation proof
)

// classify classes a verified header, remembers it and turns a second one for a
// slot into an equivocation proof.
func (h *headers) classify(s *wire.SignedHeader) (wire.Digest, verdict) {
	id := s.Header.ID(h.cfg.Run)
	if h.seen.find(id) != nil {
		return id, h.repeated(id, s)
	}
	if reason := h.unfit(s.Header); reason != "" {
		h.Misbehaved(s.Header.Author, reason)
		return id, refused
	}
	other := h.other(id, s.Header)
	h.seen.add(id, s, h.cfg.Members.Binds(s.Header))
	if other != nil {
		h.equivocation.found(*other, *s)
		return id, conflict
	}
	if h.chain.Has(id) {
		return id, known
	}
	return id, fresh
}

// repeated tells a header met before from the second of a pair met before.
func (h *headers) repeated(id wire.Digest, s *wire.SignedHeader) verdict {
	if first := h.seen.filled(slotOf(s.Header)); first != nil && first.id != id && !s.Header.Revocation() && h.cfg.Members.Binds(s.Header) {
		return conflict
	}
	return known
}

// unfit says what no delta of this run has, "" if the header fits.
func (h *headers) unfit(d wire.Header) string {
	switch {
	case !h.fragmentOf(d.Fragment):
		return fmt.Sprintf("header for fragment %d in a run of %d", d.Fragment, h.chain.Fragments())
	case d.Size > h.cfg.MaxPayload:
		return fmt.Sprintf("header for a payload of %d bytes, the run's largest is %d", d.Size, h.cfg.MaxPayload)
	}
	return ""
}

// other finds a different header of the same author for the same round, which one of the two is
// too many. Revocations are never too many, nor is what binds nobody.
func (h *headers) other(id wire.Digest, d wire.Header) *wire.SignedHeader {
	if d.Revocation() || !h.cfg.Members.Binds(d) {
		return nil
	}
	if v := h.seen.filled(slotOf(d)); v != nil && v.id != id {
		return v.header
	}
	for _, s := range h.chain.SignedBy(int(d.Fragment), d.Round, d.Author) {
		if s.Header.ID(h.cfg.Run) != id && !s.Header.Revocation() && h.cfg.Members.Binds(s.Header) {
			return &s
		}
	}
	return nil
}

// old reports whether gossip no longer brings the delta: it is older than the
// accept window, and only repair takes it.
func (h *headers) old(d wire.Header) bool {
	return uint64(d.Round)+uint64(h.cfg.WindowAccept) < uint64(h.chain.Closed(int(d.Fragment)))
}

// farAhead reports whether a header is too new to be pulled yet: parking it
// is the outer side's choice, and repair brings what lies between.
func (h *headers) farAhead(d wire.Header) bool {
	return uint64(d.Round) > uint64(h.chain.Closed(int(d.Fragment)))+uint64(h.cfg.WindowAccept)
}

// ahead reports whether a header shows that this node missed a round.
func (h *headers) ahead(d wire.Header) bool {
	return uint64(d.Round) > uint64(h.chain.Closed(int(d.Fragment)))+2
}
