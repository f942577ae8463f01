package gossip

import (
	"cmp"
	"fmt"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// course is what a repair does about a difference.
type course uint8

const (
	reconcile    course = iota // set union mends it
	takeSnapshot               // this node takes the peer's snapshot, all fragments
	giveSnapshot               // the peer takes this node's snapshot; its deltas are still reconciled
	wait                       // neither: the peer's chain is lost, or only one peer claims its lead
)

// decision is a course and, if it is not plain union, why.
type decision struct {
	course course
	reason string
}

// relation is how the two sides stand to each other in one fragment.
type relation uint8

const (
	joined    relation = iota // the chains agree at the newer base
	behind                    // this node closed less than the peer's base
	before                    // the peer closed less than this node's base
	newerBase                 // fork above the older base: this node's is newer
	olderBase                 // fork above the older base: the peer's is newer
	deepFork                  // the chains differ at both bases
)

// judge decides for the whole run, never per fragment, on facts that the peer
// has too, so that it comes to the opposite course:
//
//   - a node behind the other's base takes a snapshot;
//   - chains that agree at the newer of the two bases reconcile;
//   - chains that agree at neither base, or fragments that contradict each other:
//     fewer folded tokens take a snapshot, ties the larger digest;
//   - chains that agree at the older base only: the node whose base is newer cannot
//     refold across the fork, the other one reconciles what it can get. The rule is the
//     same: the first takes a snapshot once the other has more tokens, the other if it has
//     fewer and gets nothing more. Were the older base to win whatever was folded,
//     three chains could each win over the next, for ever;
//   - so do two whose rounds are too far apart to compare chains, if the one with
//     fewer rounds has more tokens: on one chain it would have fewer.
//
// A node that is far behind without a fork takes a snapshot too if most peers are ahead
// of it. One peer's claim could be a lie, and union is safe. Not while the
// snapshot that it took last is fresh: rounds closed while it travelled, and would while
// the next one does. A base above what this node closed leaves nothing to reconcile,
// and needs more than one peer's claim all the same: until it has it, this node
// waits.
func (r *repair) judge(s *session) decision {
	var at [deepFork + 1]int
	for f := range s.fragments {
		at[r.relate(f, &s.fragments[f])]++
	}
	take, give := at[behind]+at[newerBase]+at[deepFork], at[before]+at[olderBase]+at[deepFork]
	switch {
	case r.crossed(s.peer, at[before], at[behind]):
		return r.byTokens(s.peer)
	case !r.believed(s):
		return decision{wait, "claims a base ahead of this node's, and neither the link nor most live peers confirm it"}
	case at[before] > 0 && take > 0 && !r.followed(): // the peer would wait, as long as it has less
		return decision{takeSnapshot, "most peers would not believe the base of this node"}
	case take > 0 && give > 0:
		return r.byTokens(s.peer)
	case at[behind] > 0 || take > 0 && r.loses(s.peer):
		return decision{takeSnapshot, "the peer can refold the fork and this node cannot"}
	case take > 0:
		return decision{giveSnapshot, "this node cannot refold the fork, the peer can, and the chain of the peer does not win"}
	case at[before] > 0 && !r.followed():
		return decision{takeSnapshot, "most peers would not believe the base of this node"}
	case at[before] == 0 && give > 0 && repairOf(s.peer).spent >= spentRepairs && r.loses(s.peer):
		return decision{takeSnapshot, "the peer folded more, and its deltas cannot be fetched any more"}
	case give > 0:
		return decision{giveSnapshot, "this node can refold the fork and the peer cannot"}
	case !r.snapshot.fresh() && r.farBehind(s):
		return decision{takeSnapshot, fmt.Sprintf("more than %d rounds behind", r.cfg.WindowAccept/2)}
	}
	return decision{course: reconcile}
}

// crossed reports whether the peer closed less than this node's base in some
// fragments, is ahead in none, and has folded more tokens; or the other way
// round. On one chain it would not: late deltas let the one reach the budget in
// fewer rounds.
func (r *repair) crossed(p *peers.Peer, before, behind int) bool {
	mine := r.heartbeats.Said()
	if mine == nil || p.Heartbeat == nil {
		return false
	}
	if before > 0 && behind == 0 {
		return p.Heartbeat.Folded > max(mine.Folded, r.chain.FoldedTokens())
	}
	return behind > 0 && before == 0 && p.Heartbeat.Folded < mine.Folded
}

// relate classes one fragment.
func (r *repair) relate(f int, c *comparison) relation {
	base := c.from - 1 // this node's base, or the union window's edge
	switch theirs := c.theirs.Base; {
	case c.closed < theirs:
		return behind
	case c.theirs.Closed < base:
		return before
	case theirs <= base:
		if r.agrees(f, base, c.theirs.Chain) {
			return joined
		}
		if theirs < base && r.mayAgree(f, theirs, c.chainTheirs) {
			return newerBase
		}
	default:
		if r.agrees(f, theirs, c.chainTheirs) {
			return joined
		}
		if c.theirs.Chain.IsZero() || r.agrees(f, base, c.theirs.Chain) {
			return olderBase
		}
	}
	return deepFork
}

// agrees reports whether this node's chain digest at round is theirs.
func (r *repair) agrees(f int, round uint32, theirs wire.Digest) bool {
	mine, ok := r.chain.ChainDigest(f, round)
	return ok && mine == theirs
}

// mayAgree is agrees where this node may know nothing so old.
func (r *repair) mayAgree(f int, round uint32, theirs wire.Digest) bool {
	mine, ok := r.chain.ChainDigest(f, round)
	return !ok || mine == theirs
}

// trusted reports whether p may have this node give up its chain: keys are free,
// so not everybody's claim is enough. It has contributed, or most that are heeded show
// another chain as well, with as many tokens. Nobody takes the chain of a guest: it may be another one than they show.
func (r *repair) trusted(p *peers.Peer) bool {
	return r.Contributed(p) || !r.Guest(p.ID) && r.attested(func(q *peers.Peer) bool {
		return q == p || q.Left() && r.heartbeats.Said() != nil && q.Heartbeat.Folded >= r.heartbeats.Said().Folded
	})
}

// unheeded reports whether peers have no reason to believe this node, by the rule
// that it has for them (trusted): no delta of this node was folded, as of an
// observer, and most contributors show another chain.
func (r *repair) unheeded() bool {
	if r.chain.Contributed(r.cfg.Self) {
		return false
	}
	folded := func(p *peers.Peer) bool { return r.chain.Contributed(p.ID) }
	peers, left := r.Poll(folded, (*peers.Peer).Left)
	// Where one is live it has nobody else to ask, and would believe this node.
	return peers > 1 && 2*left > peers
}

// followed reports whether others would believe that this node's base is ahead of
// them, by the rule that it has for theirs; see believed. Where they would not, they
// wait for ever, and it is this node that has to move.
func (r *repair) followed() bool {
	peers, yes := r.heeded(func(p *peers.Peer) bool {
		for f := range p.Heartbeat.Closed {
			if p.Closed(f) < r.unionBase(f) {
				return false
			}
		}
		return true
	})
	return peers < minAttesters || 2*(yes+1) > peers // this node says so, too
}

// byTokens compares what the two last heartbeats say, as the peer does: its own
// newest numbers are not known there yet.
func (r *repair) byTokens(p *peers.Peer) decision {
	mine, theirs := r.heartbeats.Said(), p.Heartbeat
	if mine == nil || theirs == nil {
		return decision{wait, "fork, and no heartbeat yet to compare"}
	}
	reason := fmt.Sprintf("fork below the windows: %d tokens folded here, %d there", mine.Folded, theirs.Folded)
	if r.loses(p) {
		return decision{takeSnapshot, reason}
	}
	return decision{wait, reason}
}

// loses reports whether the chain in the peer's last heartbeat wins over the chain in this
// node's own. It orders chains, not nodes, with one exception: nobody would take a chain
// that only this node holds if no delta of this node was ever folded.
func (r *repair) loses(p *peers.Peer) bool {
	mine, theirs := r.heartbeats.Said(), p.Heartbeat
	if mine == nil || theirs == nil {
		return false
	}
	if r.unheeded() {
		return true
	}
	if cmp.Or(cmp.Compare(mine.Folded, theirs.Folded), theirs.Chain.Compare(mine.Chain)) >= 0 {
		return false
	}
	return mine.Lag == 0 || theirs.Lag == 0 || r.behindInTokens(p)
}

// behindInTokens reports whether the chain of a peer that trains, and shows more tokens, really
// has more, or whether its heartbeat is only newer. While both train the newer heartbeat always has
// more: two nodes that went by that alone would take a snapshot of each other. The chain has
// more in two cases:
//
//   - This node is behind by more tokens than its last rounds have. Two nodes can never
//     say that of each other at one time.
//   - Chains often differ by less than that. Then this node compares itself, as it was
//     when it had closed what a heartbeat of the peer shows, with that heartbeat. If it has yet to
//     close that it keeps the heartbeat: of two nodes that go on side by side each may always
//     be the later one in some fragment.
func (r *repair) behindInTokens(p *peers.Peer) bool {
	mine, theirs := r.heartbeats.Said(), p.Heartbeat
	if r.soon() < theirs.Folded {
		return true
	}
	then := r.weighed[p.ID]
	if then == nil || !follows(theirs, then) {
		then = theirs
	}
	if !r.reached(then) {
		r.weighed[p.ID] = then
		return false
	}
	delete(r.weighed, p.ID)
	tokens, known := r.chain.TokensAt(then.Closed)
	return !known || cmp.Or(cmp.Compare(tokens, then.Folded), theirs.Chain.Compare(mine.Chain)) < 0
}

// soon estimates the tokens that this node will have folded when it has closed as
// many more rounds as a heartbeat lags behind. It takes them to be like the last ones.
func (r *repair) soon() uint64 {
	closed := r.heartbeats.Closed()
	now, _ := r.chain.TokensAt(closed)
	if before, known := r.chain.TokensAt(peers.Lagged(closed, r.heartbeats.Said().Lag)); known {
		return now + now - before
	}
	return now
}

// reached reports whether this node has closed all that a heartbeat shows.
func (r *repair) reached(b *wire.Heartbeat) bool {
	for f, closed := range b.Closed {
		if closed > r.chain.Closed(f) {
			return false
		}
	}
	return true
}

// follows reports whether a heartbeat may be of the chain of an earlier one: no round of
// that is open again.
func follows(b, earlier *wire.Heartbeat) bool {
	for f, closed := range earlier.Closed {
		if b.Closed[f] < closed {
			return false
		}
	}
	return b.Folded >= earlier.Folded
}

// forgetWeighed forgets the heartbeats of peers that are gone, or show this node's chain.
func (r *repair) forgetWeighed() {
	for id := range r.weighed {
		if p := r.Find(id); p == nil || p.Apart() == 0 {
			delete(r.weighed, id)
		}
	}
}

// believed reports whether this node may act on a base of the peer that is
// ahead of its own closed rounds. The peer's own heartbeat must say so, and either
// the link names the peer or most live peers closed that far.
func (r *repair) believed(s *session) bool {
	lead := false
	for _, c := range s.fragments {
		lead = lead || c.theirs.Base > c.closed
	}
	there := func(p *peers.Peer) bool {
		for f, c := range s.fragments {
			if c.theirs.Base > c.closed && p.Closed(f) < c.theirs.Base {
				return false
			}
		}
		return true
	}
	return !lead || there(s.peer) && (r.Trusts(s.peer.ID) || r.attested(there))
}

// farBehind reports whether this node is far behind on one chain. The peer is more than
// half the accept window ahead in some fragment, and behind in none. No closed round
// differs. Most live peers are ahead as well.
func (r *repair) farBehind(s *session) bool {
	for _, c := range s.fragments {
		if c.forked || c.theirs.Closed < c.closed {
			return false
		}
	}
	far := func(p *peers.Peer) bool {
		for f, c := range s.fragments {
			if p.Closed(f) > c.closed+r.cfg.WindowAccept/2 {
				return true
			}
		}
		return false
	}
	return far(s.peer) && r.attested(far)
}

// heeded counts the live peers whose claims count on what others closed, and how many of them say so. Two sides of a
// partition do not know whose deltas the other one folded, but they know the same members: those that train count on
// both, of one invite no more than it is meant for. Members that only look on bring nobody to move, and hold nobody up.
func (r *repair) heeded(says func(*peers.Peer) bool) (asked, yes int) {
	met := map[wire.PeerID]uint32{}
	return r.Poll(func(p *peers.Peer) bool {
		trains := p.Heartbeat.State == wire.Training || p.Heartbeat.State == wire.Stopped
		return r.Contributed(p) || r.cfg.Members != nil && trains && r.Known(p.ID) && r.Counts(p, met)
	}, says)
}

// attested reports whether more than half of the live peers that are heeded are ahead; with
// fewer than minAttesters, the claim of one has to do. Heartbeats of strangers count
// only where nobody is heeded yet, and then only from connected peers that are no guests.
func (r *repair) attested(ahead func(*peers.Peer) bool) bool {
	asked, yes := r.heeded(ahead)
	if asked == 0 {
		asked, yes = r.Poll(func(p *peers.Peer) bool { return p.Connected && !r.Guest(p.ID) }, ahead)
	}
	return 2*yes > asked || yes > 0 && asked < minAttesters
}
