package gossip

import (
	"fmt"
	"math"

	"atoll/gossip/peers"
	"atoll/gossip/wire"
)

// comparison is what is known of one fragment on both sides.
type comparison struct {
	closed      uint32           // this node's, when the session began
	from, to    uint32           // rounds compared
	theirs      wire.RangeAnswer // Chain is the peer's at from-1; without Sets
	chainTheirs wire.Digest      // the peer's chain digest at its own base, zero if unknown
	forked      bool             // a round that both closed differs
	partial     bool             // do not follow the peer: something it listed is missing
}

// lastClosed is the last round that the peer had closed, of those compared.
func (c *comparison) lastClosed() uint32 { return min(c.theirs.Closed, c.to) }

// plan chooses the rounds to compare: from what this node can refold to what
// the peer closed, at least one in each fragment for the chain digest before
// it.
func (r *repair) plan(s *session) {
	s.fragments = make([]comparison, r.chain.Fragments())
	for f := range s.fragments {
		c := &s.fragments[f]
		c.closed = r.chain.Closed(f)
		c.from = r.unionBase(f) + 1
		c.to = max(c.from, r.reach(s.peer, f))
		for from := c.from; from <= c.to; from += wire.MaxRangeRounds {
			s.ranges = append(s.ranges, wire.Range{Fragment: uint16(f), From: from, To: min(c.to, from+wire.MaxRangeRounds-1)})
		}
	}
}

// reach is the last round worth comparing: what p says it closed, within the
// union window from here, so that a false number costs little.
func (r *repair) reach(p *peers.Peer, f int) uint32 {
	limit := r.chain.Closed(f) + r.cfg.WindowUnion
	if p.Heartbeat == nil {
		return min(limit, r.chain.Closed(f)+r.cfg.WindowAccept)
	}
	return min(limit, p.Heartbeat.Closed[f])
}

// compareNext asks for the next ranges that fit one request.
func (r *repair) compareNext(s *session) {
	n, rounds := 0, 0
	for n < len(s.ranges) && n < wire.MaxRanges {
		rounds += s.ranges[n].Rounds()
		if rounds > wire.MaxRangesRounds {
			break
		}
		n++
	}
	asked := s.ranges[:n]
	s.ranges = s.ranges[n:]
	r.ask(s, wire.Request{Kind: wire.GetRounds, Ranges: asked}, func(body []byte) error {
		answers, err := wire.DecodeRounds(body, asked)
		if err != nil {
			return err
		}
		for i, a := range answers {
			if a.Base > a.Closed || a.Closed == math.MaxUint32 {
				return fmt.Errorf("%w base %d: want at most closed, %d", wire.ErrInvalid, a.Base, a.Closed)
			}
			r.compare(s, asked[i], a)
		}
		if len(s.ranges) > 0 {
			r.compareNext(s)
		} else {
			r.askBases(s)
		}
		return nil
	})
}

// compare notes the rounds of one range in which the peer holds a set that is
// not this node's.
func (r *repair) compare(s *session, asked wire.Range, a wire.RangeAnswer) {
	f := int(asked.Fragment)
	c := &s.fragments[f]
	if asked.From == c.from {
		c.theirs = a
		c.theirs.Sets = nil
	}
	for i := range asked.Rounds() {
		round := asked.From + uint32(i)
		theirs := a.Set(i)
		mine, _ := r.chain.SetDigest(f, round)
		if mine == theirs {
			continue
		}
		c.forked = c.forked || round <= min(c.closed, a.Closed)
		nothing := round > a.Base && round <= a.Closed && r.Guest(r.cfg.Self) // is an answer as well: see conform
		if !theirs.IsZero() || nothing {
			s.todo = append(s.todo, wire.RoundKey{Fragment: asked.Fragment, Round: round})
		}
	}
}

// askBases asks for the peer's chain digests at its own bases, where those
// differ from this node's, so that both sides decide on the same facts.
func (r *repair) askBases(s *session) {
	var ranges []wire.Range
	for f := range s.fragments {
		c := &s.fragments[f]
		first := c.theirs.Base + 1
		if first == c.from {
			c.chainTheirs = c.theirs.Chain
			continue
		}
		ranges = append(ranges, wire.Range{Fragment: uint16(f), From: first, To: first})
	}
	if len(ranges) == 0 {
		r.decide(s)
		return
	}
	r.ask(s, wire.Request{Kind: wire.GetRounds, Ranges: ranges}, func(body []byte) error {
		answers, err := wire.DecodeRounds(body, ranges)
		if err != nil {
			return err
		}
		for i, a := range answers {
			s.fragments[ranges[i].Fragment].chainTheirs = a.Chain
		}
		r.decide(s)
		return nil
	})
}
