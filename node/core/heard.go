package core

import (
	"math"

	"atoll/gossip/wire"
)

// maxHeard bounds how many authors' deltas are counted between two beats; a
// roster is smaller.
const maxHeard = 4096

// heard is what was heard of authors: deltas since their last beats, and whether
// their word counts. Each of the two is of at most maxHeard authors.
type heard struct {
	fragments int
	authors   map[wire.PeerID]heardAuthor
	counted   int // authors whose deltas are counted
	believed  int
	weighed   bool // words count for what deltas bear out only
}

// heardAuthor is what was heard of one author.
type heardAuthor struct {
	after    *wire.Beat // the newest when deltas were last counted
	tokens   []uint64   // by fragment, in deltas that came after it; nil = none
	believed bool       // a delta came since peers were last doubted
	worth    uint64     // tokens of its largest delta, halved with each later one
}

// since are the tokens by fragment in the deltas that came after a beat.
func (x heardAuthor) since(b *wire.Beat) []uint64 {
	if x.after != b {
		return nil
	}
	return x.tokens
}

func newHeard(fragments int) heard {
	return heard{fragments: fragments, authors: map[wire.PeerID]heardAuthor{}}
}

func (h *heard) of(a wire.PeerID) heardAuthor { return h.authors[a] }

// set keeps what is worth keeping.
func (h *heard) set(a wire.PeerID, x heardAuthor) {
	if x.believed || x.tokens != nil {
		h.authors[a] = x
	} else {
		delete(h.authors, a)
	}
}

// delivered says that a delta of so many tokens came.
func (h *heard) delivered(a wire.PeerID, tokens uint64) {
	h.believe(a, max(tokens, h.authors[a].worth/2))
}

// had says that such a delta was there at the start: in which order they came is not
// known.
func (h *heard) had(a wire.PeerID, tokens uint64) {
	h.believe(a, max(tokens, h.authors[a].worth))
}

func (h *heard) believe(a wire.PeerID, worth uint64) {
	x := h.authors[a]
	if !x.believed && h.believed >= maxHeard {
		return
	}
	h.believed += one(!x.believed)
	x.believed, x.worth = true, worth
	h.set(a, x)
}

// trustTimes is how many times the tokens that an author last put into a delta its word
// counts for once words are weighed. An honest peer mostly has about as many unpublished
// tokens as it publishes next. A node that stops stepping for an empty claim gets a few
// deltas of the claimant instead, and each makes the claim worth less.
const trustTimes = 2

// most are the tokens that an author's word counts for at most.
func (h *heard) most(x heardAuthor) uint64 {
	if !h.weighed {
		return math.MaxUint64
	}
	return trustTimes * x.worth
}

// doubt believes nobody any more.
func (h *heard) doubt() {
	if h.believed == 0 {
		return
	}
	h.believed = 0
	for a, x := range h.authors {
		x.believed = false
		h.set(a, x)
	}
}

// delta counts the tokens of a delta that came after its author's beat. A beat of
// which none came says nothing that they would have to be taken from.
func (h *heard) delta(d wire.Header, after *wire.Beat) {
	if after == nil {
		return
	}
	x := h.authors[d.Author]
	if x.since(after) == nil {
		if x.tokens == nil && h.counted >= maxHeard {
			h.forget()
		}
		h.counted += one(x.tokens == nil)
		x.after, x.tokens = after, make([]uint64, h.fragments)
		h.set(d.Author, x)
	}
	x.tokens[d.Fragment] += d.Tokens
}

// forget counts anew: claims are too high by what is forgotten until the next beats.
func (h *heard) forget() {
	h.counted = 0
	for a, x := range h.authors {
		x.after, x.tokens = nil, nil
		h.set(a, x)
	}
}

// one counts what holds.
func one(holds bool) int {
	if holds {
		return 1
	}
	return 0
}
