package headers

import (
	"fmt"

	"atoll/gossip/effect"
	"atoll/gossip/limit"
	"atoll/gossip/wire"
)

// maxEquivocation bounds the equivocation proofs remembered; what falls out may be handed
// up twice, which does no harm.
const maxEquivocation = 4096

// equivocation hands up each proof that an author signed two deltas for one round,
// and spreads those that this node found itself.
type equivocation struct {
	*base
	known  map[slot]bool
	ring   []slot // the keys of known, oldest at next once it is full
	next   int
	counts map[wire.PeerID]int // per author, of what known holds
}

func newEquivocation(b *base) equivocation {
	return equivocation{base: b, known: map[slot]bool{}, counts: map[wire.PeerID]int{}}
}

// found takes two different verified headers for one slot, met here, and
// publishes them.
func (v *equivocation) found(a, b wire.SignedHeader) {
	if !v.far(a.Header) && v.remember(slotOf(a.Header)) {
		v.report(wire.Equivocation{A: a, B: b})
		v.Emit(effect.Publish{Bytes: wire.EncodeEquivocation(wire.Equivocation{A: a, B: b})})
	}
}

// received takes a verified equivocation proof from gossip, a bounded amount per author.
func (v *equivocation) received(e wire.Equivocation) {
	h := e.A.Header
	if !v.ofRun(h.Fragment) || v.far(h) || !v.Config.Members.Proves(e) || v.counts[h.Author] >= limit.MaxEquivocationPerAuthor {
		return
	}
	if v.remember(slotOf(h)) {
		v.report(e)
	}
}

// far says that a round is beyond what repair reconciles. What is proved of it now
// can be proved again when it comes; until then it would only cost memory.
func (v *equivocation) far(h wire.Header) bool {
	return uint64(h.Round) > uint64(v.chain.Closed(int(h.Fragment)))+uint64(v.WindowUnion)
}

func (v *equivocation) report(e wire.Equivocation) {
	h := e.A.Header
	v.Emit(effect.EquivocationFound{Equivocation: e})
	v.Event(effect.EventEquivocation, h.Author, fmt.Sprintf("signed two deltas for fragment %d round %d", h.Fragment, h.Round))
}

// against says for people what is proved of an author, "" for nothing.
func (v *equivocation) against(author wire.PeerID) string {
	if v.counts[author] == 0 {
		return ""
	}
	return "signed two deltas for one round"
}

// remember notes a slot and reports whether it is new.
func (v *equivocation) remember(k slot) bool {
	if v.known[k] {
		return false
	}
	if len(v.ring) < maxEquivocation {
		v.ring = append(v.ring, k)
	} else {
		v.forget(v.ring[v.next])
		v.ring[v.next] = k
		v.next = (v.next + 1) % maxEquivocation
	}
	v.known[k] = true
	v.counts[k.author]++
	return true
}

func (v *equivocation) forget(k slot) {
	delete(v.known, k)
	if v.counts[k.author]--; v.counts[k.author] == 0 {
		delete(v.counts, k.author)
	}
}
