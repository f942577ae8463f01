package core

import (
	"math"

	"atoll/gossip/wire"
)

// maxHeard bounds how many authors' deltas are counted, and how many are believed; a peer
// list is smaller.
const maxHeard = 4096

// heard is what was heard of authors: what their deltas fall short of their heartbeats, and
// whether their claims count. Each of the two is of at most maxHeard authors.
type heard struct {
	fragments int
	authors   map[wire.PeerID]heardAuthor
	counted   int // authors whose deltas are counted
	believed  int
	weighed   bool // claims count for what deltas bear out only
}

// heardAuthor is what was heard of one author.
type heardAuthor struct {
	heartbeat *wire.Heartbeat // the newest that was counted
	at        Time            // when it came
	made      uint64          // the most tokens that a heartbeat said
	owed      []int64         // tokens by fragment that heartbeats say are published, and that came in no delta; nil = not counted
	least     []int64         // the least of that since a time
	since     Time            // that time
	early     []int64         // tokens of deltas that came and may be newer than the heartbeat
	newest    []uint32        // the last round that these are of
	believed  bool            // a delta came since peers were last doubted
	worth     uint64          // tokens of its largest delta, halved with each later one
}

func newHeard(fragments int) heard {
	return heard{fragments: fragments, authors: map[wire.PeerID]heardAuthor{}}
}

func (h *heard) of(a wire.PeerID) heardAuthor { return h.authors[a] }

// set keeps what is worth keeping.
func (h *heard) set(a wire.PeerID, x heardAuthor) {
	if x.believed || x.owed != nil {
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

// trustTimes is how many times the tokens that an author last put into a delta its claims
// count for once claims are weighed. An honest peer mostly has about as many unpublished
// tokens as it publishes next. A node that stops stepping for an empty claim gets a few
// deltas of the claimant instead, and each makes the claim worth less.
const trustTimes = 2

// most are the tokens that an author's claims count for at most.
func (h *heard) most(x heardAuthor) uint64 {
	if !h.weighed {
		return math.MaxUint64
	}
	return trustTimes * x.worth
}

// doubt believes nobody any more, nor that anybody owes anything.
func (h *heard) doubt() {
	if h.believed == 0 {
		return
	}
	h.believed = 0
	for a, x := range h.authors {
		x.believed = false
		h.set(a, x)
	}
	h.forget()
}

// says takes the newest heartbeat of an author. What it made since the heartbeat before and has not
// unpublished any more is in deltas, and their headers may be lost, late, or here before the
// heartbeat. So what an author owes lasts until they come, or for so long: then they never will, as
// where it left a chain. In a new process, or if it was not heard for that long, it may have
// lost something, and owes nothing. One that observes publishes nothing.
func (h *heard) says(now Time, a wire.PeerID, b *wire.Heartbeat, long Time) {
	x := h.authors[a]
	if x.owed == nil {
		if h.counted >= maxHeard {
			h.forget()
		}
		h.counted++
		x.counts(h.fragments)
	}
	last, made := x.heartbeat, b.Tokens-min(b.Tokens, x.made)
	gap := last == nil || last.Incarnation != b.Incarnation || now-x.at > long || b.State == wire.Observing
	x.heartbeat, x.at, x.made = b, now, max(x.made, b.Tokens)
	if gap {
		x.counts(h.fragments)
		x.since, x.made = now, b.Tokens
	} else {
		x.publishes(last, made)
	}
	if now-x.since > long {
		x.since = now
		x.writeOff()
	}
	h.set(a, x)
}

// counts begins to count.
func (x *heardAuthor) counts(fragments int) {
	x.owed, x.least = make([]int64, fragments), make([]int64, fragments)
	x.early, x.newest = make([]int64, fragments), make([]uint32, fragments)
}

// writeOff forgets what was owed all the time.
func (x heardAuthor) writeOff() {
	for p := range x.owed {
		x.owed[p] -= max(0, x.least[p])
		x.least[p] = x.owed[p]
	}
}

// publishes counts what was published between a heartbeat and the newest one. Where that says that
// the rounds of all early deltas are closed, it has counted them as published.
func (x heardAuthor) publishes(last *wire.Heartbeat, made uint64) {
	for p := range min(len(x.owed), len(x.heartbeat.Unpublished), len(last.Unpublished), len(x.heartbeat.Closed)) {
		x.owed[p] = max(0, min(x.owed[p]+published(last.Unpublished[p], made, x.heartbeat.Unpublished[p]), mostCounted))
		if x.newest[p] <= x.heartbeat.Closed[p] {
			x.owed[p], x.early[p] = max(0, x.owed[p]-x.early[p]), 0
		}
		x.least[p] = min(x.least[p], x.owed[p]-x.early[p])
	}
}

// owedHeartbeats is for how many heartbeat periods what an author owes is waited for, at least: two
// unequal heartbeats begin a repair, which brings the header. Over thin links it takes longer.
const owedHeartbeats = 4

// mostCounted is the most tokens that one count adds: more than a run of years has, and so few
// that no sum of them overflows. What an author owes is bounded by it on both sides.
const mostCounted = 1 << 52

// published is how many tokens of a fragment went into deltas between two heartbeats, where so
// many were unpublished before, made meanwhile and unpublished after. It is negative where
// tokens were returned to their author.
func published(before, made, after uint64) int64 {
	return int64(min(before, mostCounted)+min(made, mostCounted)) - int64(min(after, mostCounted))
}

// delta counts the tokens of a delta that came. One of a round that its author's last heartbeat
// says is closed is older than the heartbeat, and pays no more than what is owed.
func (h *heard) delta(d wire.Header) {
	x, p, tokens := h.authors[d.Author], int(d.Fragment), int64(min(d.Tokens, mostCounted))
	switch {
	case x.owed == nil || d.Revocation():
	case d.Round <= x.heartbeat.Closed[p]:
		x.owed[p] = max(0, x.owed[p]-tokens)
		x.least[p] = min(x.least[p], x.owed[p])
	default:
		x.early[p] = min(x.early[p]+tokens, mostCounted)
		x.newest[p] = max(x.newest[p], d.Round)
	}
}

// unpublished are the tokens of a fragment that an author has in no delta that came, by its
// last heartbeat.
func (x heardAuthor) unpublished(b *wire.Heartbeat, p int) uint64 {
	said := min(b.Unpublished[p], mostCounted)
	if x.owed == nil || x.heartbeat != b {
		return said
	}
	return uint64(max(0, int64(said)+x.owed[p]-x.early[p]))
}

// forget says that nobody owes anything, as a snapshot was taken or more authors are
// heard than are counted.
func (h *heard) forget() {
	h.counted = 0
	for a, x := range h.authors {
		x.heartbeat, x.owed, x.least, x.early, x.newest = nil, nil, nil, nil, nil
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
