package gossip

import (
	"errors"

	"atoll/gossip/wire"
)

// A Limiter drops messages before they are passed on: what one author says more often than an honest
// one does, what strangers say beyond a share of theirs, and what is too old to be of use, such as a
// recording. The network side asks it, and a Core tells it what the run is like. It delays only: repair
// brings the deltas that it drops. Evidence always passes. It is not safe for concurrent use.
type Limiter struct {
	cfg      Config
	begun    bool                   // something was folded
	closed   []uint32               // rounds, by fragment
	pace     float64                // rounds closed per ms, of all fragments, at least leastPace each
	since    Time                   // when counting them began
	counted  uint64                 // rounds closed then
	known    map[wire.PeerID]bool   // who is more than a key, or was here before the run began
	recent   map[wire.PeerID]*meter // of authors
	earlier  map[wire.PeerID]*meter // likewise, not heard since recent was begun
	stranger bucket                 // beats of all strangers
}

// meter is what was heard of one author.
type meter struct {
	beats, headers bucket
	others         bucket // beats of earlier processes, which may be recordings
	incarnation    int64  // of its last process
	seq            uint64 // the highest of that
}

// bucket is a token bucket: it holds what may come at once.
type bucket struct {
	at    Time
	spent float64
}

// spend takes one out of a bucket of this size, into which so many come each ms.
func (b *bucket) spend(now Time, perMs, size float64) bool {
	now = max(now, b.at)
	b.spent = max(0, b.spent-float64(now-b.at)*perMs)
	b.at = now
	if b.spent+1 > size {
		return false
	}
	b.spent++
	return true
}

// ErrHeldBack says that a message is not passed on. Nobody is to blame: it may be a late copy.
var ErrHeldBack = errors.New("one message too many, or too old")

// NewLimiter returns the limiter of a node, for Config.Limiter of its Core. Of cfg it reads what the
// Core does.
func NewLimiter(cfg Config) *Limiter {
	return &Limiter{cfg: cfg.withDefaults(), known: map[wire.PeerID]bool{}, recent: map[wire.PeerID]*meter{}}
}

// Check returns ErrHeldBack for a message, which is verified, that goes no further. Times are of one
// clock, which may be another than that of the Core. A nil Limiter lets all pass.
func (l *Limiter) Check(now Time, m wire.Message) error {
	if l == nil || l.passes(now, m) {
		return nil
	}
	return ErrHeldBack
}

func (l *Limiter) passes(now Time, m wire.Message) bool {
	switch {
	case m.Beat != nil && m.Beat.Author != l.cfg.Self:
		return l.beat(now, m.Beat)
	case m.Header != nil && m.Header.Header.Author != l.cfg.Self:
		return l.header(now, m.Header.Header)
	}
	return true
}

// beat drops what is older than what its author's process said since, unless a longer way may have
// made it late. Beats of earlier processes, one of which may be at work still, have a bucket of their
// own: recordings of them must take nothing from the last one.
func (l *Limiter) beat(now Time, b *wire.Beat) bool {
	x := l.meterOf(b.Author)
	perMs, from := beatsOfPeriod/float64(l.cfg.BeatMinMs), &x.beats
	switch {
	case b.Incarnation == x.incarnation && b.Seq+lateBeats < x.seq:
		return false
	case b.Incarnation < x.incarnation:
		from = &x.others
	}
	if !from.spend(now, perMs, beatsAtOnce) {
		return false
	}
	if l.begun && !l.knows(b.Author) && !l.stranger.spend(now, strangersBeats*perMs/beatsOfPeriod, strangersBeats) {
		return false
	}
	if b.Incarnation > x.incarnation {
		x.incarnation, x.seq = b.Incarnation, 0
	}
	if b.Incarnation == x.incarnation {
		x.seq = max(x.seq, b.Seq)
	}
	return true
}

// header drops those of rounds that gossip brings nobody who is not far behind, and more of an author
// than the rounds take: also where somebody else shows recordings of all that are left.
func (l *Limiter) header(now Time, h wire.Header) bool {
	switch {
	case h.Revocation() && l.cfg.Members != nil:
		return true // an owner's, whose signature stands for it: there is no pace to hold it to
	case !l.begun:
		return true
	case int(h.Fragment) >= len(l.closed):
		return false // the run has no such fragment
	}
	if uint64(h.Round)+oldWindows*uint64(l.cfg.WindowAccept) < uint64(l.closed[h.Fragment]) {
		return false
	}
	size := float64(len(l.closed)) * headersOfRound * float64((oldWindows+1)*l.cfg.WindowAccept+2)
	return l.meterOf(h.Author).headers.spend(now, paceTimes*l.pace, size)
}

// knows reports whether an author is more than a key.
func (l *Limiter) knows(id wire.PeerID) bool {
	return l.known[id] || id == l.cfg.Self || !l.cfg.Members.Guest(id) && (l.cfg.trusts(id) || l.cfg.Members != nil)
}

// meterOf is the meter of an author. Those that were not heard for longest are forgotten.
func (l *Limiter) meterOf(id wire.PeerID) *meter {
	if x := l.recent[id]; x != nil {
		return x
	}
	if len(l.recent) >= maxPeers {
		l.earlier, l.recent = l.recent, map[wire.PeerID]*meter{}
	}
	x := l.earlier[id]
	if x == nil {
		x = &meter{}
	}
	delete(l.earlier, id)
	l.recent[id] = x
	return x
}

// Know says that an author is more than a key.
func (l *Limiter) Know(id wire.PeerID) {
	if len(l.known) < 2*maxPeers { // as many contributors, and founders
		l.known[id] = true
	}
}

// Tick says whether anything was folded, and up to which rounds this node has closed, by fragment.
func (l *Limiter) Tick(now Time, begun bool, closed []uint32) {
	all := uint64(0)
	for _, round := range closed {
		all += uint64(round)
	}
	if l.closed == nil || all < l.counted {
		l.since, l.counted = now, all
	}
	l.begun, l.closed = begun, closed
	least := leastPace * float64(len(closed))
	if took := now - l.since; took >= paceMs {
		l.pace = float64(all-l.counted) / float64(took)
		l.since, l.counted = now, all
	}
	l.pace = max(l.pace, least)
}

// Told is a Limiter as a Core sees it. Where the network side asks the Limiter on goroutines of its
// own, this one takes turns with them.
type Told interface {
	Know(author wire.PeerID)
	Tick(now Time, begun bool, closed []uint32)
}

// Contributed says that a delta of an author was folded.
func (c *Core) Contributed(author wire.PeerID) { c.knows(author) }

// knows tells the limiter, if there is one, that an author is more than a key.
func (e *env) knows(author wire.PeerID) {
	if e.cfg.Limiter != nil {
		e.cfg.Limiter.Know(author)
	}
}
