package core

import "atoll/gossip/wire"

// maxHeard bounds how many authors' deltas are counted between two beats; a
// roster is smaller.
const maxHeard = 4096

// heard is what was heard of authors: deltas since their last beats, and whether
// their word counts. Each of the three is of at most maxHeard authors.
type heard struct {
	fragments int
	authors   map[wire.PeerID]heardAuthor
	beaten    int // authors of whom a beat came
	since     int // of whom a delta came since
	believed  int
}

// heardAuthor is what was heard of one author.
type heardAuthor struct {
	beaten   bool
	at       Time     // of the last beat
	since    []uint64 // tokens by fragment in deltas since then; nil = none came
	believed bool     // a delta came since peers were last doubted
}

func newHeard(fragments int) heard {
	return heard{fragments: fragments, authors: map[wire.PeerID]heardAuthor{}}
}

func (h *heard) of(a wire.PeerID) heardAuthor { return h.authors[a] }

// set keeps what is worth keeping.
func (h *heard) set(a wire.PeerID, x heardAuthor) {
	if x.beaten || x.believed || x.since != nil {
		h.authors[a] = x
	} else {
		delete(h.authors, a)
	}
}

func (h *heard) beat(now Time, a wire.PeerID) {
	x := h.authors[a]
	if x.beaten || h.beaten < maxHeard {
		h.beaten += one(!x.beaten)
		x.beaten, x.at = true, now
	}
	h.since -= one(x.since != nil)
	x.since = nil
	h.set(a, x)
}

func (h *heard) believe(a wire.PeerID) {
	x := h.authors[a]
	if h.believed < maxHeard && !x.believed {
		h.believed++
		x.believed = true
		h.set(a, x)
	}
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

func (h *heard) delta(d wire.Header) {
	x := h.authors[d.Author]
	if x.since == nil {
		if h.since >= maxHeard {
			return
		}
		h.since++
		x.since = make([]uint64, h.fragments)
		h.set(d.Author, x)
	}
	x.since[d.Fragment] += d.Tokens
}

// one counts what holds.
func one(holds bool) int {
	if holds {
		return 1
	}
	return 0
}
