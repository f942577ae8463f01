package node

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"

	"atoll/gossip/wire"
	"atoll/node/core"
	"atoll/node/store"
	"atoll/optimizer/outer"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// Plan is the fragment plan of the run.
func (g Genesis) Plan() outer.Plan {
	return outer.NewPlan(tensor.Layout(g.Model.Specs()), g.Outer.Fragments)
}

// Tips are the tips of round 0: the initial parameters.
func (g Genesis) Tips() []*outer.Tip {
	slab := llama.NewParams(g.Model)
	llama.Init(g.Model, slab, g.Seed)
	return outer.NewPlan(slab.Views, g.Outer.Fragments).Genesis(slab.Data, g.Outer)
}

// savedFragment is what the disk holds of one fragment.
type savedFragment struct {
	outer.Restored
	headers map[wire.Digest]wire.SignedHeader
}

// load returns the tips to begin with: the newest base of each fragment, or
// genesis where there is none, and what else the disk holds of the run.
func (n *node) load() (tips []*outer.Tip, saved []savedFragment, err error) {
	tips = n.genesis.Tips()
	saved = make([]savedFragment, len(tips))
	found := false
	for p := range tips {
		var s savedFragment
		if s, err = n.loadFragment(p, tips[p]); err != nil {
			return nil, nil, fmt.Errorf("load fragment %d from %s: %w", p, n.cfg.Dir, err)
		}
		tips[p], saved[p] = s.Tip, s
		found = found || s.Closed > 0 || s.Mark > 0 || len(s.Held) > 0
	}
	if !found {
		return tips, nil, nil
	}
	if n.view.ledger, err = n.countLedger(); err != nil {
		return nil, nil, err
	}
	return tips, saved, n.loadOwn(saved)
}

func (n *node) loadFragment(p int, genesis *outer.Tip) (savedFragment, error) {
	var s savedFragment
	var err error
	if s.Tip, s.Bases, err = n.loadBases(p); err != nil {
		return s, err
	}
	if s.Tip == nil {
		s.Tip, s.Bases = genesis, []uint32{0}
	}
	if s.History, err = n.history(p, s.Tip, s.Bases[0]); err != nil {
		return s, err
	}
	s.headers = map[wire.Digest]wire.SignedHeader{}
	if s.Closed, err = n.store.LastRound(p); err != nil {
		return s, err
	}
	if s.Mark, err = n.store.Mark(p); err != nil {
		return s, err
	}
	if err := n.loadHeld(p, &s); err != nil {
		return s, err
	}
	s.ReachGenesis(n.genesis.Outer, genesis)
	maps.DeleteFunc(s.headers, func(_ wire.Digest, h wire.SignedHeader) bool { return h.Header.Round <= s.Bases[0] })
	return s, nil
}

// loadBases returns the newest kept tip of a fragment, nil if there is none, and
// the rounds of all kept bases. Those that do not fit the record of their round
// are dropped: a crash came between a fold and its record, or the disk damaged
// them.
func (n *node) loadBases(p int) (newest *outer.Tip, bases []uint32, err error) {
	rounds, err := n.store.Bases(p)
	if err != nil {
		return nil, nil, err
	}
	for _, round := range slices.Backward(rounds) {
		fits, err := n.baseFits(p, round)
		if err != nil {
			return nil, nil, err
		}
		if fits && newest == nil {
			newest, err = n.tips.get(p, round)
			n.check("load base", err)
			fits = err == nil
		}
		if fits {
			bases = append(bases, round)
		} else if err := n.tips.drop(p, round); err != nil {
			return nil, nil, err
		}
	}
	slices.Reverse(bases)
	return newest, bases, nil
}

// baseFits compares the digest of a kept base with the recorded state.
func (n *node) baseFits(p int, round uint32) (bool, error) {
	if round == 0 {
		return true, nil // genesis has no record
	}
	record, err := n.store.Round(p, round)
	if errors.Is(err, store.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	base, err := n.store.BaseDigest(p, round)
	return base == record.State, err
}

// history are the links that lead to a tip, oldest first: those of the union
// window, and further back to the oldest base, from which that window is
// refolded.
func (n *node) history(p int, tip *outer.Tip, oldest uint32) ([]outer.Link, error) {
	var links []outer.Link
	from := min(oldest, tip.Round-min(tip.Round, n.genesis.Outer.WindowUnion))
	err := n.store.Rounds(p, from, tip.Round, func(round uint32, r store.Round) error {
		if len(links) > 0 && links[len(links)-1].Round+1 != round {
			links = nil // a gap: what is older does not lead here
		}
		links = append(links, linkOf(round, r))
		return nil
	})
	end := outer.Link{Round: tip.Round, Chain: tip.Chain, State: tip.State, Tokens: tip.Tokens, EndRound: tip.EndRound}
	if len(links) > 0 && links[len(links)-1].Round == tip.Round {
		end.Folded = links[len(links)-1].Folded
		links = links[:len(links)-1]
	} else if len(links) > 0 && links[len(links)-1].Round+1 != tip.Round {
		links = nil
	}
	return append(links, end), err
}

func linkOf(round uint32, r store.Round) outer.Link {
	l := outer.Link{Round: round, Chain: outer.Digest(r.Chain), State: outer.Digest(r.State), Tokens: r.Tokens, EndRound: r.EndRound}
	for _, id := range r.Folded {
		l.Folded = append(l.Folded, outer.ID(id))
	}
	slices.SortFunc(l.Folded, func(a, b outer.ID) int { return bytes.Compare(a[:], b[:]) }) // a record has the order of the fold
	return l
}

// loadHeld reads the deltas of rounds above the oldest base, and of a young
// fragment all.
func (n *node) loadHeld(p int, s *savedFragment) error {
	from := s.Bases[0] + 1
	if s.Tip.Round <= n.genesis.Outer.WindowUnion {
		from = 1
	}
	return n.store.Headers(p, from, ^uint32(0), func(id wire.Digest, h wire.SignedHeader) error {
		if _, held := n.store.Has(id); held {
			s.headers[id] = h
			s.Held = append(s.Held, core.DeltaOf(id, h.Header))
		}
		return nil
	})
}

// loadOwn reads this node's own deltas of the window.
func (n *node) loadOwn(saved []savedFragment) error {
	own, err := n.store.Own()
	if err != nil {
		return err
	}
	for _, o := range own {
		n.firstSeq = max(n.firstSeq, o.Seq+1)
		p := int(o.Header.Header.Fragment)
		s := &saved[p]
		if o.Header.Header.Round+n.genesis.Outer.WindowUnion <= s.Closed || o.Header.Header.Author != n.self {
			continue
		}
		if lost, err := n.lostOwn(o, s); lost || err != nil {
			if err != nil {
				return err
			}
			continue
		}
		s.Own = append(s.Own, outer.OwnDelta{Seq: o.Seq, Delta: core.DeltaOf(o.ID, o.Header.Header)})
		n.owned.put(o.Seq, ownRef{o.ID, o.Header.Header.Tokens})
	}
	return nil
}

// restore puts machine and learner back to what the disk had.
func (n *node) restore(saved []savedFragment, l *outer.Learner) error {
	now := n.clock.now()
	evidence, err := n.store.Evidence()
	if err != nil {
		return err
	}
	for _, e := range evidence {
		n.machine.Evidence(now, e)
	}
	for p, s := range saved {
		folded, err := n.machine.Restore(now, p, s.Restored, s.headers)
		if err != nil {
			return err
		}
		if l == nil {
			continue
		}
		if err := l.Restore(p, ownOf(s.Own, folded)); err != nil {
			return fmt.Errorf("restore own progress on fragment %d: %w", p, err)
		}
	}
	return nil
}

func ownOf(own []outer.OwnDelta, folded []uint64) []outer.Own {
	in := map[uint64]bool{}
	for _, seq := range folded {
		in[seq] = true
	}
	var out []outer.Own
	for _, o := range own {
		out = append(out, outer.Own{Seq: o.Seq, Base: o.Delta.Base, Steps: o.Delta.Steps, Tokens: o.Delta.Tokens, Folded: in[o.Seq]})
	}
	return out
}
