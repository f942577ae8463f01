package core

import (
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// chain is what the gossip core sees of rounds and ledger.
type chain struct{ m *Machine }

func (c chain) Fragments() int      { return c.m.rounds.Fragments() }
func (c chain) Closed(f int) uint32 { return c.m.rounds.Fragment(f).Closed() }
func (c chain) Base(f int) uint32   { return c.m.rounds.Fragment(f).Base() }

// SignedBy is asked for each header that comes, so it does not list the round.
func (c chain) SignedBy(f int, r uint32, author wire.PeerID) (out []wire.SignedHeader) {
	for _, d := range c.m.rounds.Fragment(f).By(r, outer.Author(author)) {
		if h, ok := c.m.headers[wire.Digest(d.ID)]; ok {
			out = append(out, *h)
		}
	}
	for _, h := range c.m.equivocation[roundKey{f, r}] {
		if h.Header.Author == author {
			out = append(out, h)
		}
	}
	return out
}

// Newest looks through the headers of the window: what is older is final, and
// below any round that is still open.
func (c chain) Newest(author wire.PeerID) []wire.SignedHeader {
	newest := map[uint16]wire.SignedHeader{}
	for _, h := range c.m.headers {
		if at := h.Header.Fragment; h.Header.Author == author && h.Header.Round > newest[at].Header.Round {
			newest[at] = *h
		}
	}
	out := make([]wire.SignedHeader, 0, len(newest))
	for f := range c.Fragments() {
		if h, ok := newest[uint16(f)]; ok {
			out = append(out, h)
		}
	}
	return out
}

func (c chain) Bases(f int) []uint32 { return c.m.rounds.Fragment(f).Bases() }
func (c chain) FoldedTokens() uint64 { return c.m.View().FoldedTokens() }

// Contributed is no for a guest, also if it was credited as a member and is none any more.
func (c chain) Contributed(author wire.PeerID) bool {
	return c.m.contributed[author] && !c.m.guest(author)
}

func (c chain) TokensAt(rounds []uint32) (uint64, bool) {
	missing := false
	mean := c.m.cfg.Plan.Mean(func(p int) uint64 {
		l, known := c.m.rounds.Fragment(p).Link(rounds[p])
		missing = missing || !known
		return l.Tokens
	})
	if missing {
		return 0, false
	}
	return uint64(mean), true
}

func (c chain) Has(id wire.Digest) bool {
	h, ok := c.m.headers[id]
	if !ok {
		return false
	}
	_, held := c.m.rounds.Fragment(int(h.Header.Fragment)).Known(h.Header.Round, outer.ID(id))
	return held
}

func (c chain) ChainDigest(f int, r uint32) (wire.Digest, bool) {
	l, ok := c.m.rounds.Fragment(f).Link(r)
	return wire.Digest(l.Chain), ok
}

// StateDigest is known once the round is folded.
func (c chain) StateDigest(f int, r uint32) (wire.Digest, bool) {
	l, ok := c.m.rounds.Fragment(f).Link(r)
	return wire.Digest(l.State), ok && l.State != outer.Digest{}
}

// SetDigest covers the ids held for a round, equivocation proofs included. For a round
// below the snapshot that a joiner took it knows the ids folded.
func (c chain) SetDigest(f int, r uint32) (wire.Digest, bool) {
	key := roundKey{f, r}
	version := c.m.rounds.Fragment(f).Version(r)
	if version == 0 || len(c.m.equivocation[key]) > 0 {
		return c.setDigest(f, r)
	}
	if s := c.m.cache.sets[key]; s.version == version {
		return s.digest, true
	}
	digest, ok := c.setDigest(f, r)
	c.m.cache.sets[key] = setSeen{version, digest}
	return digest, ok
}

func (c chain) setDigest(f int, r uint32) (wire.Digest, bool) {
	ids := c.ids(f, r)
	if ids == nil && r <= c.m.rounds.Fragment(f).Closed() {
		l, ok := c.m.rounds.Fragment(f).Link(r)
		if !ok {
			return wire.Digest{}, false
		}
		for _, id := range l.Folded {
			ids = append(ids, wire.Digest(id))
		}
	}
	return wire.SetDigest(ids), true
}

func (c chain) ids(f int, r uint32) []wire.Digest {
	var ids []wire.Digest
	for _, d := range c.m.rounds.Fragment(f).Set(r) {
		ids = append(ids, wire.Digest(d.ID))
	}
	for _, h := range c.m.equivocation[roundKey{f, r}] {
		ids = append(ids, h.Header.ID(c.m.cfg.Run))
	}
	return ids
}

// Signed are the headers held for a round. For a round below the tips that a
// joiner took they are the headers of the folded deltas, once it has fetched
// them.
func (c chain) Signed(f int, r uint32) []wire.SignedHeader {
	var out []wire.SignedHeader
	for _, d := range c.m.rounds.Fragment(f).Set(r) {
		if h, ok := c.m.headers[wire.Digest(d.ID)]; ok {
			out = append(out, *h)
		}
	}
	if l, ok := c.m.rounds.Fragment(f).Link(r); ok && len(out) == 0 && r <= c.m.rounds.Fragment(f).Base() {
		for _, id := range l.Folded {
			if h, ok := c.m.headers[wire.Digest(id)]; ok {
				out = append(out, *h)
			}
		}
	}
	return append(out, c.m.equivocation[roundKey{f, r}]...)
}
