package peers

import (
	"fmt"
	"slices"

	"atoll/gossip/effect"
	"atoll/gossip/wire"
)

// Heartbeats says what this node holds and compares it with what others say.
type Heartbeats struct {
	*Table
	self SelfState
	said *wire.Heartbeat // the last own heartbeat, nil before the first
	next effect.Time     // when the following one is due
	seq  uint64
	at   effect.Time // when said was said
	size int         // its bytes

	agreed      bool // as of the last tick, see Agree
	agreedSince effect.Time
	agreedChain wire.Digest

	digests []byte          // reused by digestsAt
	sums    map[string]sums // what hashing them came to recently
}

// comparison is what the heartbeats of a peer came to.
type comparison struct {
	unequal      int      // consecutive ones that did not show the chain of this node; repair begins anew
	apart        int      // the same, whatever repair does
	same         bool     // the last one shows the chain of this node
	stateDiffers bool     // and another state, which was told
	equal        []uint32 // rounds, by fragment, of the last one that showed the chain of this node
	reached      uint64   // most folded tokens that one of any of its processes showed
}

// Recount has as many unequal heartbeats come as at first before the next repair.
func (p *Peer) Recount() { p.compared.unequal = 0 }

// Unequal is how many heartbeats in a row did not show the chain of this node since repair began anew, Apart how many
// did whatever repair does. Same reports whether the last one shows it.
func (p *Peer) Unequal() int { return p.compared.unequal }
func (p *Peer) Apart() int   { return p.compared.apart }
func (p *Peer) Same() bool   { return p.compared.same }

// Shows takes whether a heartbeat of a peer shows the chain of this node.
func (p *Peer) Shows(same bool) {
	if p.compared.same = same; same {
		p.compared.unequal, p.compared.apart = 0, 0
		return
	}
	p.compared.unequal++
	p.compared.apart++
}

// StateDiffers reports whether the last heartbeat of a peer shows the chain of this node and another state.
func (p *Peer) StateDiffers() bool { return p.compared.stateDiffers }

// Equal are the rounds, by fragment, of the last heartbeat of a peer that showed the chain of this node; nil if none did.
func (p *Peer) Equal() []uint32 { return p.compared.equal }

// Left reports whether a peer shows another chain, and not only a round that this
// node has not closed yet.
func (p *Peer) Left() bool { return p.compared.apart >= HeartbeatsToRepair }

// sums are the chain and the state digest over all fragments.
type sums struct{ chain, state wire.Digest }

// maxSums bounds how many are remembered: heartbeats of one moment name few rounds.
const maxSums = 64

// Said is the last own heartbeat, nil before the first.
func (b *Heartbeats) Said() *wire.Heartbeat { return b.said }

// Self is what the next heartbeat says about this node.
func (b *Heartbeats) Self() SelfState { return b.self }

// Joining reports whether this node holds nothing yet that others may take.
func (b *Heartbeats) Joining() bool { return b.self.State == wire.Joining || b.self.State == 0 }

func (b *Heartbeats) tick() {
	if p := b.ownPeriod(); p != b.Period {
		b.Period, b.Table.cache.watchAt = p, b.Now // peers that have sent no heartbeat yet count in it
	}
	if b.self.State != 0 && (b.said == nil || b.Now >= b.next) {
		b.Send()
	}
	b.Agree()
	b.watchdog()
}

// Send publishes a heartbeat. The first one waits for SetSelf: before it there is
// nothing to say.
func (b *Heartbeats) Send() {
	if b.self.State == 0 {
		return
	}
	b.seq++
	heartbeat := wire.Heartbeat{
		Author: b.Config.Self, Incarnation: b.Config.Incarnation, Seq: b.seq,
		State: b.self.State, Steps: b.self.Steps, Tokens: b.self.Tokens,
		Unpublished: make([]uint64, b.chain.Fragments()), Closed: b.Closed(), Lag: b.lag(),
		Capability: b.self.Capability, TokensPerSecond: b.self.TokensPerSecond,
		Bits: b.self.Bits, PeriodMs: b.announced(), Paused: b.self.Paused, Upload: b.self.Upload, Full: b.self.Full, Plan: b.self.Plan,
	}
	heartbeat.Folded, _ = b.chain.TokensAt(heartbeat.Closed)
	copy(heartbeat.Unpublished, b.self.Unpublished)
	heartbeat.Chain, heartbeat.StateDigest, _ = b.DigestsAt(Lagged(heartbeat.Closed, heartbeat.Lag))
	raw := wire.EncodeHeartbeat(b.Config.Key, b.Config.Run, heartbeat)
	b.said, b.at, b.next, b.size = &heartbeat, b.Now, b.Now+b.Period, len(raw)
	b.Emit(effect.Publish{Bytes: raw})
}

// announced is the period that the next heartbeat names, within what peers take.
func (b *Heartbeats) announced() uint32 {
	return uint32(min(max(b.Period, wire.MinPeriodMs), wire.MaxPeriodMs))
}

// otherPeriod reports whether two heartbeats of a peer name periods that differ by more than an
// eighth. What differs less changes little, and would have all peers looked at often.
func otherPeriod(a, b *wire.Heartbeat) bool {
	return 8*max(a.PeriodMs, b.PeriodMs) > 9*min(a.PeriodMs, b.PeriodMs)
}

// Set takes what the next heartbeat says. A change that others wait for, or wait for no more,
// is said at once.
func (b *Heartbeats) Set(s SelfState) {
	b.self = s
	if said := b.said; said != nil && (said.State != s.State || said.Lag != b.lag() || said.Paused != s.Paused || said.Plan != s.Plan) {
		b.Soon()
	}
}

// Soon has the next heartbeat come at once, or a part of a period after the last one if that is
// later: nobody can make a node send heartbeats without end.
func (b *Heartbeats) Soon() { b.next = min(b.next, b.at+b.Period/SoonParts) }

// lag is how far the digests are behind. An observer lags as the learners do: once
// nobody has anything to make or to publish it shows its tips as they are.
func (b *Heartbeats) lag() uint8 {
	if b.self.State == wire.Observing && !b.anyAtWork() {
		return 0
	}
	return b.self.Lag()
}

func (b *Heartbeats) anyAtWork() bool {
	return slices.ContainsFunc(b.Table.List, func(p *Peer) bool {
		return b.Live(p) && (p.Heartbeat.State == wire.Training || p.Heartbeat.State == wire.Stopped && p.Heartbeat.Lag > 0)
	})
}

func (b *Heartbeats) Closed() []uint32 {
	closed := make([]uint32, b.chain.Fragments())
	for f := range closed {
		closed[f] = b.chain.Closed(f)
	}
	return closed
}

// Lagged returns max(closed-lag, 0) for each fragment.
func Lagged(closed []uint32, lag uint8) []uint32 {
	rounds := make([]uint32, len(closed))
	for f, c := range closed {
		rounds[f] = c - min(c, uint32(lag))
	}
	return rounds
}

// DigestsAt hashes this node's chain and state digests at one round of each
// fragment, for a heartbeat. ok is false if the node does not know a chain digest
// because it is behind or took a newer snapshot. The state is zero if a state digest
// is not known.
func (b *Heartbeats) DigestsAt(rounds []uint32) (chain, state wire.Digest, ok bool) {
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
func (b *Heartbeats) sum(digests []byte, chains int) sums {
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
func (b *Heartbeats) receive(heartbeat *wire.Heartbeat) *Peer {
	if heartbeat.Author == b.Config.Self {
		return nil
	}
	if len(heartbeat.Closed) != b.chain.Fragments() {
		b.Misbehaved(heartbeat.Author, fmt.Sprintf("heartbeat with %d fragments in a run of %d", len(heartbeat.Closed), b.chain.Fragments()))
		return nil
	}
	p := b.Ensure(heartbeat.Author, false)
	if p == nil || p.Heartbeat != nil && !newer(heartbeat, p.Heartbeat) && !b.survives(p, heartbeat) {
		return nil
	}
	if heartbeat.State == wire.Leaving && (p.Heartbeat == nil || p.Heartbeat.State != wire.Leaving) {
		b.Event(effect.EventLeft, p.ID, "leaves")
	}
	if p.Heartbeat == nil || p.Heartbeat.State != heartbeat.State || p.Heartbeat.Lag != heartbeat.Lag || p.Heartbeat.Paused != heartbeat.Paused || otherPeriod(p.Heartbeat, heartbeat) {
		b.Table.cache.changes++
	}
	p.Heartbeat, p.HeartbeatAt, p.compared.reached = heartbeat, b.Now, max(p.compared.reached, heartbeat.Folded)
	p.watch.gossips()
	b.Hear(p)
	b.compare(p)
	return p
}

// survives reports whether a heartbeat is from an earlier process that still works, after
// a later process with a copy of its key has left or fallen silent. Nobody may take
// the earlier one for gone. A heartbeat that is late, or recorded and sent again, shows
// less than the peer has shown since. A process may also seem the earlier one because
// its clock was behind when it shook hands.
func (b *Heartbeats) survives(p *Peer, heartbeat *wire.Heartbeat) bool {
	gone := p.Heartbeat.State == wire.Leaving || p.Silent || p.watch.awaits(heartbeat.Incarnation)
	return gone && heartbeat.Incarnation < p.Heartbeat.Incarnation && heartbeat.State != wire.Leaving && heartbeat.Folded >= p.compared.reached
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
func (b *Heartbeats) compare(p *Peer) {
	if b.Paused || !b.Live(p) {
		return
	}
	rounds := Lagged(p.Heartbeat.Closed, p.Heartbeat.Lag)
	chain, state, ok := b.DigestsAt(rounds)
	p.Shows(ok && chain == p.Heartbeat.Chain)
	if !p.compared.same {
		return
	}
	p.compared.equal = rounds
	for f, r := range rounds {
		b.common[f] = max(b.common[f], r)
	}
	b.compareState(p, state, rounds)
}

// Rebase says that this node took another chain, which has these rounds in common with
// the one before. What others had of the old chain above these rounds, they do not
// have of the new one.
func (b *Heartbeats) Rebase(common []uint32) {
	lower := func(rounds []uint32) []uint32 {
		low := slices.Clone(rounds)
		for f := range low {
			low[f] = min(low[f], common[f])
		}
		return low
	}
	b.common = lower(b.common)
	for _, p := range b.Table.List {
		if p.compared.equal != nil {
			p.compared.equal = lower(p.compared.equal)
		}
	}
}

// CommonWith are the rounds, by fragment, up to which a peer showed the chain of this node. If it never did, they are
// those up to which the peers did that show another chain now, or any.
func (t *Table) CommonWith(id wire.PeerID) []uint32 {
	if p := t.Find(id); p != nil && p.compared.equal != nil {
		return slices.Clone(p.compared.equal)
	}
	var common []uint32
	for _, p := range t.List {
		switch {
		case p.compared.equal == nil || !p.Left():
		case common == nil:
			common = slices.Clone(p.compared.equal)
		default:
			for f, r := range p.compared.equal {
				common[f] = min(common[f], r)
			}
		}
	}
	if common == nil {
		return t.Common()
	}
	return common
}

// compareState tells once of a peer with the same chain and another state.
func (b *Heartbeats) compareState(p *Peer, state wire.Digest, rounds []uint32) {
	if state.IsZero() || p.Heartbeat.StateDigest.IsZero() {
		return
	}
	differs := state != p.Heartbeat.StateDigest
	if differs && !p.compared.stateDiffers {
		b.Emit(effect.StateDiffers{Peer: p.ID, Rounds: rounds})
	}
	p.compared.stateDiffers = differs
}

// OtherStates are the live peers whose newest heartbeat shows the chain that this node has
// and another state. Marked peers are left out.
func (b *Heartbeats) OtherStates() []wire.PeerID {
	var ids []wire.PeerID
	for _, p := range b.Table.List {
		if !b.Live(p) || p.Refused != "" {
			continue
		}
		chain, state, ok := b.DigestsAt(Lagged(p.Heartbeat.Closed, p.Heartbeat.Lag))
		theirs := p.Heartbeat.StateDigest
		if ok && chain == p.Heartbeat.Chain && !state.IsZero() && !theirs.IsZero() && state != theirs {
			ids = append(ids, p.ID)
		}
	}
	return ids
}

// Agree works out whether every live peer shows, without lag, the tips that
// this node has, none of them training, and since when. Peers that are joining,
// leaving, paused, silent or marked are not counted: a hung or lying peer must not
// keep a run from ending.
func (b *Heartbeats) Agree() (agreed bool, since effect.Time) {
	if b.self.State == wire.Training || b.self.State == wire.Joining || b.self.State == 0 {
		b.agreed = false
		return false, b.agreedSince
	}
	closed := b.Closed()
	chain, _, ok := b.DigestsAt(closed)
	agreed = ok && !slices.ContainsFunc(b.Table.List, func(p *Peer) bool {
		return b.Speaks(p) && !shows(p.Heartbeat, closed, chain) || b.awaited(p)
	})
	if agreed && (!b.agreed || chain != b.agreedChain) {
		b.agreedSince = b.Now
	}
	b.agreed, b.agreedChain = agreed, chain
	return agreed, b.agreedSince
}

// Speaks reports whether what p last said counts at the end of the run. Heartbeats of guests, and of strangers
// without a session, do not: keys are free.
func (b *Heartbeats) Speaks(p *Peer) bool {
	switch {
	case b.Guest(p.ID) || p.Refused != "" || p.Heartbeat == nil || !p.Connected && b.Stranger(p.ID):
		return false
	case p.Gone():
		return b.mayReturn(p)
	}
	return b.Live(p)
}

// mayReturn reports whether p, which is gone, may be on its way back: where addresses change a
// process that lives may be without a connection for a while. Keys are free, so that is
// waited for with peers whose deltas were folded.
func (b *Heartbeats) mayReturn(p *Peer) bool {
	return b.moves && b.Now < p.Heard+backMs && b.takesPart(p) && b.Contributed(p)
}

// Gone reports whether the process of p ended without a word, as it seems: it is quiet, and
// has no connection to this node.
func (p *Peer) Gone() bool { return p.Quiet && !p.Connected }

// awaited reports whether p is connected and has yet to send a heartbeat or fall silent. A node
// that comes back when the run ends must hear the others before it takes itself for
// the last.
func (b *Heartbeats) awaited(p *Peer) bool {
	return p.Connected && !b.Guest(p.ID) && p.Refused == "" && p.Heartbeat == nil && b.heardLately(p) && !p.peerList.record.Stateless
}

// Lacking returns a connected peer that has yet to show the tips which this node
// has: it is on its way in, behind, or has sent no heartbeat yet. Peers that are leaving,
// paused, silent or marked are not counted.
func (b *Heartbeats) Lacking() (id wire.PeerID, any bool) {
	closed := b.Closed()
	chain, _, ok := b.DigestsAt(closed)
	i := slices.IndexFunc(b.Table.List, func(p *Peer) bool {
		if !ok || !p.Connected || p.Refused != "" {
			return false
		}
		return p.Heartbeat == nil && !p.peerList.record.Stateless || p.Heartbeat != nil && b.heardLately(p) && p.Heartbeat.State != wire.Leaving && !p.Pauses() && !shows(p.Heartbeat, closed, chain)
	})
	if i < 0 {
		return id, false
	}
	return b.Table.List[i].ID, true
}

// shows reports whether a heartbeat comes from a node at rest with these tips.
func shows(heartbeat *wire.Heartbeat, closed []uint32, chain wire.Digest) bool {
	return heartbeat.State != wire.Training && heartbeat.Lag == 0 && heartbeat.Chain == chain && slices.Equal(heartbeat.Closed, closed)
}
