package gossip

import (
	"cmp"
	"fmt"

	"atoll/gossip/wire"
)

// course is what a repair does about a difference.
type course uint8

const (
	unite    course = iota // set union mends it
	takeTips               // this node takes the peer's tips, all fragments
	giveTips               // the peer takes this node's tips; its deltas are still united
	hold                   // the peer's chain is lost: its deltas would wreck this one
)

// decision is a course and, if it is not plain union, why.
type decision struct {
	course course
	reason string
}

// standing is how the two sides stand in one fragment.
type standing uint8

const (
	joined    standing = iota // the chains agree at the newer base
	behind                    // this node closed less than the peer's base
	before                    // the peer closed less than this node's base
	newerBase                 // fork above the older base: this node's is newer
	olderBase                 // fork above the older base: the peer's is newer
	deepFork                  // the chains differ at both bases
)

// judge decides for the whole run, never per fragment, on facts that the peer
// has too, so that it comes to the opposite course:
//
//   - a node behind the other's base takes tips;
//   - chains that agree at the newer of the two bases unite;
//   - chains that agree at the older base only: the node whose base is newer
//     cannot refold across the fork and takes tips;
//   - chains that agree at neither, or fragments that contradict each other:
//     fewer folded tokens take tips, ties the larger digest.
//
// A node that is merely far behind, with no fork, takes tips too, if most
// peers are ahead of it: one peer's word could be a lie, and union is safe.
func (r *repair) judge(s *session) decision {
	take, give := 0, 0
	for f := range s.fragments {
		switch r.stand(f, &s.fragments[f]) {
		case joined:
		case behind, newerBase:
			take++
		case before, olderBase:
			give++
		case deepFork:
			take++
			give++
		}
	}
	switch {
	case take > 0 && give > 0:
		return r.byTokens(s.peer)
	case take > 0:
		return decision{takeTips, "the peer can refold the fork and this node cannot"}
	case give > 0:
		return decision{giveTips, "this node can refold the fork and the peer cannot"}
	case r.farBehind(s):
		return decision{takeTips, fmt.Sprintf("more than %d rounds behind", r.cfg.WindowAccept/2)}
	}
	return decision{course: unite}
}

// stand classes one fragment.
func (r *repair) stand(f int, c *comparison) standing {
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

// byTokens compares what the two last beats say, as the peer does: its own
// newest numbers are not known there yet.
func (r *repair) byTokens(p *peer) decision {
	mine, theirs := r.beats.said, p.beat
	if mine == nil || theirs == nil {
		return decision{hold, "fork, and no beat yet to compare"}
	}
	reason := fmt.Sprintf("fork below the windows: %d tokens folded here, %d there", mine.Folded, theirs.Folded)
	order := cmp.Compare(mine.Folded, theirs.Folded)
	if order == 0 {
		order = theirs.Chain.Compare(mine.Chain)
	}
	if order < 0 {
		return decision{takeTips, reason}
	}
	return decision{hold, reason}
}

// farBehind reports whether the peer is more than half the accept window ahead
// in some fragment and in none behind, no closed round differs, and most live
// peers are ahead as well.
func (r *repair) farBehind(s *session) bool {
	far := false
	for _, c := range s.fragments {
		if c.forked || c.theirs.Closed < c.closed {
			return false
		}
		far = far || c.theirs.Closed > c.closed+r.cfg.WindowAccept/2
	}
	return far && r.attested(s)
}

// attested reports whether more than half of the live peers say that they are
// that far ahead; with fewer than minAttesters, one peer's word has to do.
func (r *repair) attested(s *session) bool {
	peers, ahead := 0, 0
	for _, p := range r.peers.list {
		if !r.live(p) {
			continue
		}
		peers++
		for f, c := range s.fragments {
			if p.beat.Closed[f] > c.closed+r.cfg.WindowAccept/2 {
				ahead++
				break
			}
		}
	}
	return peers < minAttesters || 2*ahead > peers
}
