package gossip

import (
	"fmt"
	"slices"

	"atoll/gossip/wire"
)

// heartbeats says what this node holds and compares it with what others say.
type heartbeats struct {
	*peers
	self SelfState
	said *wire.Heartbeat // the last own heartbeat, nil before the first
	next Time            // when the following one is due
	seq  uint64
	bulk func(*peer) bool // bulk of a peer is on its way, or for it
	at   Time             // when said was said
	size int              // its bytes

	agreed      bool // as of the last tick, see agree
	agreedSince Time
	agreedChain wire.Digest

	digests []byte          // reused by digestsAt
	sums    map[string]sums // what hashing them came to recently
}

// heartbeatsPeer is what the heartbeats of a peer came to.
type heartbeatsPeer struct {
	unequal      int      // consecutive ones that did not show the chain of this node; repair begins anew
	apart        int      // the same, whatever repair does
	same         bool     // the last one shows the chain of this node
	stateDiffers bool     // and another state, which was told
	equal        []uint32 // rounds, by fragment, of the last one that showed the chain of this node
	reached      uint64   // most folded tokens that one of any of its processes showed
}

// recount has as many unequal heartbeats come as at first before the next repair.
func (b *heartbeatsPeer) recount() { b.unequal = 0 }

// left reports whether a peer shows another chain, and not only a round that this
// node has not closed yet.
func (p *peer) left() bool { return p.heartbeats.apart >= heartbeatsToRepair }

// sums are the chain and the state digest over all fragments.
type sums struct{ chain, state wire.Digest }

// maxSums bounds how many are remembered: heartbeats of one moment name few rounds.
const maxSums = 64

func (b *heartbeats) tick() {
	if p := b.ownPeriod(); p != b.period {
		b.period, b.peers.cache.watchAt = p, b.Now // peers that have sent no heartbeat yet count in it
	}
	if b.self.State != 0 && (b.said == nil || b.Now >= b.next) {
		b.send()
	}
	b.agree()
	b.watchdog()
}

// send publishes a heartbeat. The first one waits for SetSelf: before it there is
// nothing to say.
func (b *heartbeats) send() {
	if b.self.State == 0 {
		return
	}
	b.seq++
	heartbeat := wire.Heartbeat{
		Author: b.cfg.Self, Incarnation: b.cfg.Incarnation, Seq: b.seq,
		State: b.self.State, Steps: b.self.Steps, Tokens: b.self.Tokens,
		Unpublished: make([]uint64, b.chain.Fragments()), Closed: b.closed(), Lag: b.lag(),
		Capability: b.self.Capability, TokensPerSecond: b.self.TokensPerSecond,
		Bits: b.self.Bits, PeriodMs: b.announced(), Paused: b.self.Paused, Upload: b.self.Upload, Full: b.self.Full, Plan: b.self.Plan,
	}
	heartbeat.Folded, _ = b.chain.TokensAt(heartbeat.Closed)
	copy(heartbeat.Unpublished, b.self.Unpublished)
	heartbeat.Chain, heartbeat.StateDigest, _ = b.digestsAt(lagged(heartbeat.Closed, heartbeat.Lag))
	raw := wire.EncodeHeartbeat(b.cfg.Key, b.cfg.Run, heartbeat)
	b.said, b.at, b.next, b.size = &heartbeat, b.Now, b.Now+b.period, len(raw)
	b.Emit(Publish{Bytes: raw})
}

// announced is the period that the next heartbeat names, within what peers take.
func (b *heartbeats) announced() uint32 {
	return uint32(min(max(b.period, wire.MinPeriodMs), wire.MaxPeriodMs))
}

// otherPeriod reports whether two heartbeats of a peer name periods that differ by more than an
// eighth. What differs less changes little, and would have all peers looked at often.
func otherPeriod(a, b *wire.Heartbeat) bool {
	return 8*max(a.PeriodMs, b.PeriodMs) > 9*min(a.PeriodMs, b.PeriodMs)
}

// set takes what the next heartbeat says. A change that others wait for, or wait for no more,
// is said at once.
func (b *heartbeats) set(s SelfState) {
	b.self = s
	if said := b.said; said != nil && (said.State != s.State || said.Lag != b.lag() || said.Paused != s.Paused || said.Plan != s.Plan) {
		b.soon()
	}
}

// soon has the next heartbeat come at once, or a part of a period after the last one if that is
// later: nobody can make a node send heartbeats without end.
func (b *heartbeats) soon() { b.next = min(b.next, b.at+b.period/soonParts) }

// lag is how far the digests are behind. An observer lags as the learners do: once
// nobody has anything to make or to publish it shows its tips as they are.
func (b *heartbeats) lag() uint8 {
	if b.self.State == wire.Observing && !b.anyAtWork() {
		return 0
	}
	return b.self.lag()
}

func (b *heartbeats) anyAtWork() bool {
	return slices.ContainsFunc(b.peers.list, func(p *peer) bool {
		return b.live(p) && (p.heartbeat.State == wire.Training || p.heartbeat.State == wire.Stopped && p.heartbeat.Lag > 0)
	})
}

func (b *heartbeats) closed() []uint32 {
	closed := make([]uint32, b.chain.Fragments())
	for f := range closed {
		closed[f] = b.chain.Closed(f)
	}
	return closed
}

// lagged returns max(closed-lag, 0) for each fragment.
func lagged(closed []uint32, lag uint8) []uint32 {
	rounds := make([]uint32, len(closed))
	for f, c := range closed {
		rounds[f] = c - min(c, uint32(lag))
	}
	return rounds
}

// digestsAt hashes this node's chain and state digests at one round of each
// fragment, for a heartbeat. ok is false if the node does not know a chain digest
// because it is behind or took a newer snapshot. The state is zero if a state digest
// is not known.
func (b *heartbeats) digestsAt(rounds []uint32) (chain, state wire.Digest, ok bool) {
	d := b.digests[:0]
	for f, r := range rounds {
		c, known := b.chain.ChainDigest(f, r)
		if !known {
			return wire.Digest{}, wire.Digest{}, false
		}
		d = append(d, c[:]...)
	}
	chains := len(d)
	for f, r := range rounds {
		h, known := b.chain.StateDigest(f, r)
		if !known {
			d = d[:chains]
			break
		}
		d = append(d, h[:]...)
	}
	b.digests = d
	s := b.sum(d, chains)
	return s.chain, s.state, true
}

// sum hashes chain digests, and the state digests that follow them if all are known.
// Most heartbeats name the rounds that others named a moment ago.
func (b *heartbeats) sum(digests []byte, chains int) sums {
	if s, known := b.sums[string(digests)]; known {
		return s
	}
	s := sums{chain: wire.Sum(digests[:chains])}
	if len(digests) > chains {
		s.state = wire.Sum(digests[chains:])
	}
	if b.sums == nil || len(b.sums) >= maxSums {
		b.sums = map[string]sums{}
	}
	b.sums[string(digests)] = s
	return s
}

// receive keeps a verified heartbeat, which nobody changes, and compares it. It returns the author's
// entry if the heartbeat is news.
func (b *heartbeats) receive(heartbeat *wire.Heartbeat) *peer {
	if heartbeat.Author == b.cfg.Self {
		return nil
	}
	if len(heartbeat.Closed) != b.chain.Fragments() {
		b.misbehaved(heartbeat.Author, fmt.Sprintf("heartbeat with %d fragments in a run of %d", len(heartbeat.Closed), b.chain.Fragments()))
		return nil
	}
	p := b.ensure(heartbeat.Author, false)
	if p == nil || p.heartbeat != nil && !newer(heartbeat, p.heartbeat) && !b.survives(p, heartbeat) {
		return nil
	}
	if heartbeat.State == wire.Leaving && (p.heartbeat == nil || p.heartbeat.State != wire.Leaving) {
		b.Event(EventLeft, p.id, "leaves")
	}
	if p.heartbeat == nil || p.heartbeat.State != heartbeat.State || p.heartbeat.Lag != heartbeat.Lag || p.heartbeat.Paused != heartbeat.Paused || otherPeriod(p.heartbeat, heartbeat) {
		b.peers.cache.changes++
	}
	p.heartbeat, p.heartbeatAt, p.heartbeats.reached = heartbeat, b.Now, max(p.heartbeats.reached, heartbeat.Folded)
	p.watch.gossips()
	b.hear(p)
	b.compare(p)
	return p
}

// survives reports whether a heartbeat is from an earlier process that still works, after
// a later process with a copy of its key has left or fallen silent. Nobody may take
// the earlier one for gone. A heartbeat that is late, or recorded and sent again, shows
// less than the peer has shown since. A process may also seem the earlier one because
// its clock was behind when it shook hands.
func (b *heartbeats) survives(p *peer, heartbeat *wire.Heartbeat) bool {
	gone := p.heartbeat.State == wire.Leaving || p.silent || p.watch.awaits(heartbeat.Incarnation)
	return gone && heartbeat.Incarnation < p.heartbeat.Incarnation && heartbeat.State != wire.Leaving && heartbeat.Folded >= p.heartbeats.reached
}

// newer orders the heartbeats of one author, across restarts.
func newer(a, b *wire.Heartbeat) bool {
	if a.Incarnation != b.Incarnation {
		return a.Incarnation > b.Incarnation
	}
	return a.Seq > b.Seq
}

// compare recomputes this node's digests at the rounds that the heartbeat of p
// names. Not being able to counts as unequal. A peer that is joining, leaving or
// paused says nothing about the run, and one that is paused does not look.
func (b *heartbeats) compare(p *peer) {
	if b.Paused || !b.live(p) {
		return
	}
	rounds := lagged(p.heartbeat.Closed, p.heartbeat.Lag)
	chain, state, ok := b.digestsAt(rounds)
	if p.heartbeats.same = ok && chain == p.heartbeat.Chain; !p.heartbeats.same {
		p.heartbeats.unequal++
		p.heartbeats.apart++
		return
	}
	p.heartbeats.apart, p.heartbeats.equal = 0, rounds
	p.heartbeats.unequal = 0
	for f, r := range rounds {
		b.common[f] = max(b.common[f], r)
	}
	b.compareState(p, state, rounds)
}

// rebase says that this node took another chain, which has these rounds in common with
// the one before. What others had of the old chain above these rounds, they do not
// have of the new one.
func (b *heartbeats) rebase(common []uint32) {
	lower := func(rounds []uint32) []uint32 {
		low := slices.Clone(rounds)
		for f := range low {
			low[f] = min(low[f], common[f])
		}
		return low
	}
	b.common = lower(b.common)
	for _, p := range b.peers.list {
		if p.heartbeats.equal != nil {
			p.heartbeats.equal = lower(p.heartbeats.equal)
		}
	}
}

// compareState tells once of a peer with the same chain and another state.
func (b *heartbeats) compareState(p *peer, state wire.Digest, rounds []uint32) {
	if state.IsZero() || p.heartbeat.StateDigest.IsZero() {
		return
	}
	differs := state != p.heartbeat.StateDigest
	if differs && !p.heartbeats.stateDiffers {
		b.Emit(StateDiffers{Peer: p.id, Rounds: rounds})
	}
	p.heartbeats.stateDiffers = differs
}

// otherStates are the live peers whose newest heartbeat shows the chain that this node has
// and another state. Marked peers are left out.
func (b *heartbeats) otherStates() []wire.PeerID {
	var ids []wire.PeerID
	for _, p := range b.peers.list {
		if !b.live(p) || p.refused != "" {
			continue
		}
		chain, state, ok := b.digestsAt(lagged(p.heartbeat.Closed, p.heartbeat.Lag))
		theirs := p.heartbeat.StateDigest
		if ok && chain == p.heartbeat.Chain && !state.IsZero() && !theirs.IsZero() && state != theirs {
			ids = append(ids, p.id)
		}
	}
	return ids
}

// agree works out whether every live peer shows, without lag, the tips that
// this node has, none of them training, and since when. Peers that are joining,
// leaving, paused, silent or marked are not counted: a hung or lying peer must not
// keep a run from ending.
func (b *heartbeats) agree() {
	if b.self.State == wire.Training || b.self.State == wire.Joining || b.self.State == 0 {
		b.agreed = false
		return
	}
	closed := b.closed()
	chain, _, ok := b.digestsAt(closed)
	agreed := ok && !slices.ContainsFunc(b.peers.list, func(p *peer) bool {
		return b.speaks(p) && !shows(p.heartbeat, closed, chain) || b.awaited(p)
	})
	if agreed && (!b.agreed || chain != b.agreedChain) {
		b.agreedSince = b.Now
	}
	b.agreed, b.agreedChain = agreed, chain
}

// speaks reports whether what p last said counts at the end of the run. Heartbeats of guests, and of strangers
// without a session, do not: keys are free.
func (b *heartbeats) speaks(p *peer) bool {
	switch {
	case b.guest(p.id) || p.refused != "" || p.heartbeat == nil || !p.connected && b.stranger(p.id):
		return false
	case p.gone():
		return b.mayReturn(p)
	}
	return b.live(p)
}

// mayReturn reports whether p, which is gone, may be on its way back: where addresses change a
// process that lives may be without a connection for a while. Keys are free, so that is
// waited for with peers whose deltas were folded.
func (b *heartbeats) mayReturn(p *peer) bool {
	return b.moves && b.Now < p.heard+backMs && b.takesPart(p) && b.contributed(p)
}

// gone reports whether the process of p ended without a word, as it seems: it is quiet, and
// has no connection to this node.
func (p *peer) gone() bool { return p.quiet && !p.connected }

// awaited reports whether p is connected and has yet to send a heartbeat or fall silent. A node
// that comes back when the run ends must hear the others before it takes itself for
// the last.
func (b *heartbeats) awaited(p *peer) bool {
	return p.connected && !b.guest(p.id) && p.refused == "" && p.heartbeat == nil && b.heardLately(p) && !p.peerList.record.Stateless
}

// lacking returns a connected peer that has yet to show the tips which this node
// has: it is on its way in, behind, or has sent no heartbeat yet. Peers that are leaving,
// paused, silent or marked are not counted.
func (b *heartbeats) lacking() (id wire.PeerID, any bool) {
	closed := b.closed()
	chain, _, ok := b.digestsAt(closed)
	i := slices.IndexFunc(b.peers.list, func(p *peer) bool {
		if !ok || !p.connected || p.refused != "" {
			return false
		}
		return p.heartbeat == nil && !p.peerList.record.Stateless || p.heartbeat != nil && b.heardLately(p) && p.heartbeat.State != wire.Leaving && !p.pauses() && !shows(p.heartbeat, closed, chain)
	})
	if i < 0 {
		return id, false
	}
	return b.peers.list[i].id, true
}

// shows reports whether a heartbeat comes from a node at rest with these tips.
func shows(heartbeat *wire.Heartbeat, closed []uint32, chain wire.Digest) bool {
	return heartbeat.State != wire.Training && heartbeat.Lag == 0 && heartbeat.Chain == chain && slices.Equal(heartbeat.Closed, closed)
}
