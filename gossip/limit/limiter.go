package limit

import (
	"errors"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/member"
	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// A Limiter drops messages before they are passed on: what one author says more often than an honest one does,
// and what the authors of one invite, or strangers, say beyond their share, which is one of the uplink as well.
// It drops what is too old to be of use as well, such as a recording. The network side asks it, and a Core tells
// it what the run is like. It delays only: repair brings the deltas and the equivocation proofs that it drops.
// It is not safe for concurrent use.
//
// A signature takes longer to check than all else about a message. So Spares is asked before, and
// Check after it. Spares takes nothing from an author, and remembers none, as anybody can write that author's name.
type Limiter struct {
	cfg       Config
	begun     bool                   // something was folded
	closed    []uint32               // rounds, by fragment
	pace      float64                // rounds closed per ms, of all fragments, at least leastPace each
	since     effect.Time            // when counting them began
	counted   uint64                 // rounds closed then
	known     map[wire.PeerID]bool   // who is more than a key, or was here before the run began
	folded    map[wire.PeerID]bool   // who has made a delta that was folded
	meters    recent[meter]          // of authors
	unknown   recent[bucket]         // of peers that bring messages of nobody that is known here
	shares    map[wire.PeerID]*share // by the key of an invite
	strangers bucket                 // heartbeats of all strangers
	most      float64                // so many of them pass in the shortest period
	usual     int                    // bytes of a heartbeat that counts as one of them; 0 = any
	tolls     []toll                 // reused
}

// Kinds of messages that authors have a rate for, each.
const (
	heartbeatKind = iota
	headerKind
	equivocationKind
	kinds
)

// meter is what was heard of one author.
type meter struct {
	of          [kinds]bucket
	others      bucket // heartbeats of earlier processes, which may be recordings
	incarnation int64  // of its last process
	seq         uint64 // the highest of that
}

// ErrHeldBack says that a message is not passed on. Nobody is to blame: it may be a late copy.
var ErrHeldBack = errors.New("one message too many, or too old")

// Config is what a limiter goes by.
type Config struct {
	Self           wire.PeerID
	Trusted        []wire.PeerID // peers named in the join link
	Members        *member.Table // nil where everybody is admitted
	HeartbeatMinMs int64         // shortest heartbeat period
	WindowAccept   uint32        // rounds behind closed that gossip still brings
}

// New returns the limiter of a node, for Config.Limiter of its Core.
func New(cfg Config) *Limiter {
	return &Limiter{cfg: cfg, most: StrangersHeartbeats, known: map[wire.PeerID]bool{}, folded: map[wire.PeerID]bool{}, shares: map[wire.PeerID]*share{}}
}

// Spares returns ErrHeldBack for a message that a peer brings if it goes no further whatever its
// signature is. Those of authors that nobody here knows to be admitted have a bound for each peer that
// brings them: an honest one brings few, and each takes a signature and a question. A nil Limiter lets
// all pass.
func (l *Limiter) Spares(now effect.Time, from wire.PeerID, m wire.Message) error {
	switch {
	case l == nil || from == l.cfg.Self:
		return nil
	case l.isUnknown(m):
		if !l.unknown.of(from).spend(now, UnknownPerSecond/1000., UnknownAtOnce) {
			return ErrHeldBack
		}
		return nil
	}
	_, err := l.due(now, m)
	return err
}

// Check returns ErrHeldBack for a message, which is verified, that goes no further, and counts one that
// does. What this node says passes, also of others. Times are of one clock, which may be another than that
// of the Core. A nil Limiter lets all pass.
func (l *Limiter) Check(now effect.Time, from wire.PeerID, m wire.Message) error {
	if l == nil || from == l.cfg.Self {
		return nil
	}
	l.meters.of(authorOf(m)) // from now on there is one: the name is no forgery
	tolls, err := l.due(now, m)
	if err != nil {
		return err
	}
	pay(tolls)
	l.record(m)
	return nil
}

// due is what a message takes, or ErrHeldBack if it is too late or not all of that is left.
func (l *Limiter) due(now effect.Time, m wire.Message) ([]toll, error) {
	tolls, late := l.tollsOf(m)
	if late || !fits(now, tolls) {
		return nil, ErrHeldBack
	}
	return tolls, nil
}

// authorOf is who signed a message.
func authorOf(m wire.Message) (author wire.PeerID) {
	switch {
	case m.Heartbeat != nil:
		return m.Heartbeat.Author
	case m.Header != nil:
		return m.Header.Header.Author
	case m.Equivocation != nil:
		return m.Equivocation.A.Header.Author
	}
	return author
}

// isUnknown reports whether nobody here knows what admits the author of a message.
func (l *Limiter) isUnknown(m wire.Message) bool {
	_, unknown := l.cfg.Members.Stranger(m)
	return unknown
}

// tollsOf is what a message takes, and whether it is too late to pass at all. It is valid until the next
// call.
func (l *Limiter) tollsOf(m wire.Message) (tolls []toll, late bool) {
	l.tolls = l.tolls[:0]
	switch {
	case m.Heartbeat != nil && m.Heartbeat.Author != l.cfg.Self:
		late = l.heartbeat(m.Heartbeat, m.Size)
	case m.Header != nil && m.Header.Header.Author != l.cfg.Self:
		late = l.header(m.Header.Header)
	case m.Equivocation != nil:
		l.equivocation(m.Equivocation.A.Header)
	}
	return l.tolls, late
}

// heartbeat drops what is older than what its author's process said since, unless a longer way may have
// made it late. Heartbeats of earlier processes, one of which may be at work still, have a bucket of their
// own: recordings of them must take nothing from the last one.
func (l *Limiter) heartbeat(b *wire.Heartbeat, bytes int) (late bool) {
	x := l.meters.peek(b.Author)
	own := toll{perMs: HeartbeatsOfPeriod / float64(l.cfg.HeartbeatMinMs), size: HeartbeatsAtOnce}
	switch {
	case b.Incarnation == x.incarnation && b.Seq+LateHeartbeats < x.seq:
		return true
	case b.Incarnation < x.incarnation:
		own.from = &x.others
	}
	if l.cfg.Members.Guest(b.Author) || l.begun && !l.knows(b.Author) { // a relay never learns that the run has begun
		l.tolls = append(l.tolls, toll{from: &l.strangers, perMs: l.most / float64(l.cfg.HeartbeatMinMs), size: StrangersHeartbeats, more: l.longer(bytes)})
	}
	invite, uses := l.shareOf(b.Author)
	l.charge(b.Author, invite, uses, heartbeatKind, own)
	return false
}

// longer is how many heartbeats more a stranger's heartbeat of so many bytes counts as: what it
// says beyond what this version knows takes an uplink as well.
func (l *Limiter) longer(bytes int) float64 {
	if l.usual == 0 {
		return 0
	}
	return max(float64(bytes)/float64(l.usual)-1, 0)
}

// record keeps of a message that passed what shows others to be late.
func (l *Limiter) record(m wire.Message) {
	b := m.Heartbeat
	if b == nil || b.Author == l.cfg.Self {
		return
	}
	x := l.meters.of(b.Author)
	if b.Incarnation > x.incarnation {
		x.incarnation, x.seq = b.Incarnation, 0
	}
	if b.Incarnation == x.incarnation {
		x.seq = max(x.seq, b.Seq)
	}
}

// header drops those of rounds that gossip brings nobody who is not far behind, and more of an author
// than the rounds take: also where somebody else shows recordings of all that are left.
func (l *Limiter) header(h wire.Header) (late bool) {
	switch {
	case h.Revocation() && l.cfg.Members != nil:
		return false // an owner's, whose signature stands for it: there is no pace to hold it to
	case !l.begun:
		return false
	case int(h.Fragment) >= len(l.closed):
		return true // the run has no such fragment
	}
	if uint64(h.Round)+OldWindows*uint64(l.cfg.WindowAccept) < uint64(l.closed[h.Fragment]) {
		return true
	}
	size := float64(len(l.closed)) * HeadersOfRound * float64((OldWindows+1)*l.cfg.WindowAccept+2)
	invite, uses := l.inviteOf(h)
	l.charge(h.Author, invite, uses, headerKind, toll{perMs: PaceTimes * l.pace, size: size})
	return false
}

// equivocation drops more of it against an author than a Core remembers. Who lies can sign proofs of that without end,
// and nobody else can.
func (l *Limiter) equivocation(h wire.Header) {
	if l.begun {
		invite, uses := l.inviteOf(h)
		l.charge(h.Author, invite, uses, equivocationKind, toll{perMs: l.pace, size: MaxEquivocationPerAuthor})
	}
}

// knows reports whether an author is more than a key.
func (l *Limiter) knows(id wire.PeerID) bool {
	return id == l.cfg.Self || !l.cfg.Members.Guest(id) && (l.known[id] || slices.Contains(l.cfg.Trusted, id) || l.cfg.Members != nil)
}

// Know says that an author is more than a key.
func (l *Limiter) Know(id wire.PeerID) {
	if len(l.known) < 2*peers.MaxPeers { // as many contributors, and founders
		l.known[id] = true
	}
}

// Contributed says that an author, who is more than a key, has made a delta that was folded.
func (l *Limiter) Contributed(id wire.PeerID) {
	l.Know(id)
	if len(l.folded) < peers.MaxPeers {
		l.folded[id] = true
	}
	for _, v := range l.cfg.Members.Bounds(id) {
		// Now: later it would be for who speaks first, or whose name is forged first.
		if l.hasSlot(l.share(v.Key), id, v.Uses) {
			return
		}
	}
}

// Fit says how many heartbeats in a second take all that the own uplink carries, all copies counted, each of so many bytes. It
// is zero where that is not known.
type Fit struct {
	Heartbeats float64
	Bytes      int
}

// Tick says whether anything was folded, up to which rounds this node has closed, by fragment, and what fits its uplink.
func (l *Limiter) Tick(now effect.Time, begun bool, closed []uint32, fit Fit) {
	all := uint64(0)
	for _, round := range closed {
		all += uint64(round)
	}
	if l.closed == nil || all < l.counted {
		l.since, l.counted = now, all
	}
	l.begun, l.closed = begun, closed
	l.usual = fit.Bytes
	if l.most = StrangersHeartbeats; fit.Heartbeats > 0 {
		part := fit.Heartbeats / peers.StrangersShare * float64(l.cfg.HeartbeatMinMs) / 1000
		l.most = min(max(part, LeastStrangersHeartbeats), StrangersHeartbeats)
	}
	least := leastPace * float64(len(closed))
	// What has closed already counts at once. A run of short rounds would fall silent in its first paceMs otherwise, and one
	// that becomes faster, too.
	l.pace = max(l.pace, float64(all-l.counted)/PaceMs)
	if took := now - l.since; took >= PaceMs {
		l.pace = float64(all-l.counted) / float64(took)
		l.since, l.counted = now, all
	}
	l.pace = max(l.pace, least)
}

// Told is a Limiter as a Core sees it. Where the network side asks the Limiter on goroutines of its
// own, this one takes turns with them.
type Told interface {
	Know(author wire.PeerID)
	Contributed(author wire.PeerID)
	Tick(now effect.Time, begun bool, closed []uint32, fit Fit)
}
