package gossip

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"

	"atoll/gossip/wire"
)

// fakeChain is an outer side that folds nothing. As in a node, its chain
// digests follow from the sets that it holds.
type fakeChain struct {
	run          wire.RunID
	closed       []uint32
	base         []uint32
	baseChain    []wire.Digest // chain digest at base
	held         map[wire.Digest]wire.SignedHeader
	payloads     map[wire.Digest][]byte
	rounds       []map[uint32][]wire.Digest // ids held, sorted
	equivocation map[slot]wire.Equivocation
	boast        uint64                   // tokens that it only says it folded
	first        []map[wire.PeerID]uint32 // the first round with a delta of an author
	chains       []map[uint32]wire.Digest // cache, dropped when a set changes
	tokens       []map[uint32]uint64      // likewise: folded up to a round
	bases        [][]uint32               // kept, unless nil
	contributed  map[wire.PeerID]bool     // who did, beside the authors of the deltas held
	wrong        map[int]uint32           // by fragment: from which round on states are miscalculated
}

// slot is what an author may fill once.
type slot struct {
	author   wire.PeerID
	fragment uint16
	round    uint32
}

func slotOf(h wire.Header) slot { return slot{h.Author, h.Fragment, h.Round} }

func newFakeChain(run wire.RunID, fragments int) *fakeChain {
	c := &fakeChain{
		run: run, closed: make([]uint32, fragments), base: make([]uint32, fragments),
		baseChain: make([]wire.Digest, fragments), held: map[wire.Digest]wire.SignedHeader{},
		payloads: map[wire.Digest][]byte{}, equivocation: map[slot]wire.Equivocation{},
	}
	for range fragments {
		c.rounds = append(c.rounds, map[uint32][]wire.Digest{})
		c.chains = append(c.chains, map[uint32]wire.Digest{})
		c.first = append(c.first, map[wire.PeerID]uint32{})
		c.tokens = append(c.tokens, map[uint32]uint64{})
	}
	return c
}

func (c *fakeChain) Fragments() int      { return len(c.closed) }
func (c *fakeChain) Closed(f int) uint32 { return c.closed[f] }
func (c *fakeChain) Base(f int) uint32   { return c.base[f] }

func (c *fakeChain) Bases(f int) []uint32 {
	if c.bases != nil {
		return c.bases[f]
	}
	return []uint32{c.base[f]}
}

func (c *fakeChain) ChainDigest(f int, r uint32) (wire.Digest, bool) {
	if r < c.base[f] || r > c.closed[f] {
		return wire.Digest{}, false
	}
	if r == c.base[f] {
		return c.baseChain[f], true
	}
	if d, ok := c.chains[f][r]; ok {
		return d, true
	}
	d, _ := c.ChainDigest(f, r-1)
	b := append([]byte("chain"), d[:]...)
	for _, id := range c.folded(f, r) {
		b = append(b, id[:]...)
	}
	c.chains[f][r] = wire.Sum(b)
	return c.chains[f][r], true
}

func (c *fakeChain) StateDigest(f int, r uint32) (wire.Digest, bool) {
	d, ok := c.ChainDigest(f, r)
	if from := c.wrong[f]; from > 0 && r >= from {
		d[0] ^= 1
	}
	return wire.Sum(d[:]), ok
}

// folded are the ids held whose author did not sign two.
func (c *fakeChain) folded(f int, r uint32) []wire.Digest {
	return slices.DeleteFunc(slices.Clone(c.rounds[f][r]), func(id wire.Digest) bool {
		_, bad := c.equivocation[slotOf(c.held[id].Header)]
		return bad
	})
}

func (c *fakeChain) SetDigest(f int, r uint32) (wire.Digest, bool) {
	ids := c.folded(f, r)
	for k := range c.equivocation {
		if int(k.fragment) == f && k.round == r {
			ids = append(ids, wire.Sum(k.author[:]))
		}
	}
	return wire.SetDigest(ids), true
}

func (c *fakeChain) Signed(f int, r uint32) []wire.SignedHeader {
	var out []wire.SignedHeader
	for _, id := range c.folded(f, r) {
		out = append(out, c.held[id])
	}
	for k, e := range c.equivocation {
		if int(k.fragment) == f && k.round == r {
			out = append(out, e.A, e.B)
		}
	}
	slices.SortFunc(out, func(a, b wire.SignedHeader) int {
		return a.Header.ID(c.run).Compare(b.Header.ID(c.run))
	})
	return out
}

func (c *fakeChain) SignedBy(f int, r uint32, author wire.PeerID) []wire.SignedHeader {
	return slices.DeleteFunc(c.Signed(f, r), func(h wire.SignedHeader) bool { return h.Header.Author != author })
}

func (c *fakeChain) Newest(author wire.PeerID) (out []wire.SignedHeader) {
	for f := range c.closed {
		for r := c.closed[f] + 20; r > 0; r-- {
			own := slices.DeleteFunc(c.Signed(f, r), func(h wire.SignedHeader) bool { return h.Header.Author != author })
			if len(own) > 0 {
				out = append(out, own[0])
				break
			}
		}
	}
	return out
}

func (c *fakeChain) Contributed(author wire.PeerID) bool {
	if c.contributed[author] {
		return true
	}
	for f, closed := range c.closed {
		if r, ok := c.first[f][author]; ok && r <= closed {
			return true
		}
	}
	return false
}

func (c *fakeChain) Has(id wire.Digest) bool { return c.payloads[id] != nil }

func (c *fakeChain) FoldedTokens() uint64 {
	n, _ := c.TokensAt(c.closed)
	return n
}

func (c *fakeChain) TokensAt(rounds []uint32) (n uint64, known bool) {
	n = c.boast
	for f := range c.closed {
		if rounds[f] > c.closed[f] || rounds[f] < c.base[f] {
			return 0, false
		}
		n += c.tokensUpTo(f, rounds[f])
	}
	return n, true
}

func (c *fakeChain) tokensUpTo(f int, r uint32) uint64 {
	if r == 0 {
		return 0
	}
	n, ok := c.tokens[f][r]
	if !ok {
		n = c.tokensUpTo(f, r-1)
		for _, id := range c.folded(f, r) {
			n += c.held[id].Header.Tokens
		}
		c.tokens[f][r] = n
	}
	return n
}

// changed drops what was computed of a fragment.
func (c *fakeChain) changed(f int) {
	clear(c.chains[f])
	clear(c.tokens[f])
}

func (c *fakeChain) store(s wire.SignedHeader, payload []byte) {
	id := s.Header.ID(c.run)
	if c.Has(id) {
		return
	}
	c.held[id], c.payloads[id] = s, payload
	f, r := int(s.Header.Fragment), s.Header.Round
	c.rounds[f][r] = append(c.rounds[f][r], id)
	slices.SortFunc(c.rounds[f][r], wire.Digest.Compare)
	if first, ok := c.first[f][s.Header.Author]; r > 0 && (!ok || r < first) {
		c.first[f][s.Header.Author] = r
	}
	c.changed(f)
}

func (c *fakeChain) convict(e wire.Equivocation) {
	c.equivocation[slotOf(e.A.Header)] = e
	c.changed(int(e.A.Header.Fragment))
}

func (c *fakeChain) close(f int, r uint32) { c.closed[f] = max(c.closed[f], r) }

// tip is a stand-in for an encoded tip: its length and bytes follow from the
// round and the chain digest.
func (c *fakeChain) tip(f int, r uint32, bytes int) []byte {
	d, _ := c.ChainDigest(f, r)
	b := make([]byte, bytes)
	_, _ = rand.NewChaCha8(wire.Sum(binary.BigEndian.AppendUint32(d[:], r))).Read(b) // never fails
	return b
}

// install replaces tips and forgets what is older, as a joiner does.
func (c *fakeChain) install(m wire.Manifest) {
	for f, fm := range m.Fragments {
		c.closed[f], c.base[f], c.baseChain[f] = fm.Round, fm.Round, fm.Chain
		c.changed(f)
	}
}
