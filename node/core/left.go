package core

import (
	"slices"

	"atoll/gossip/wire"
	"atoll/optimizer/outer"
)

// Left is what of a node's own work was folded, or in flight, on a chain that it leaves for
// another, and is not folded there. Repair may still bring some of it in. All is by
// fragment.
type Left struct {
	Own    [][]wire.Digest // ids
	Forget [][]wire.Digest // those and others that a restart must not take for in flight
	Tokens []uint64        // of Own
	Final  []uint64        // of those that the machine has forgotten: older than its window
}

// Ledger is what a node's disk knows of the chain that it leaves.
type Ledger interface {
	// Rounds calls f with each record from..to of a fragment, both included, in order.
	Rounds(fragment int, from, to uint32, f func(outer.Link) error) error
	// HeaderAt returns the header of a delta of a fragment's round, if it is known.
	HeaderAt(fragment int, round uint32, id wire.Digest) (h wire.Header, known bool, err error)
}

// OwnRecord is an own delta as the disk has it.
type OwnRecord struct {
	Seq    uint64
	ID     wire.Digest
	Header wire.Header
}

// leaving is the work of LeaveChain.
type leaving struct {
	Left
	ledger Ledger
	self   wire.PeerID
	union  uint32
}

// LeaveChain compares the records of a disk with the links that lead to the tips which
// take the place of its own. What the links do not reach belongs to the chain that is
// left, from the last round on that others are known to have had in common. closed are
// the last rounds of that chain. By them the machine forgets what is final: disks come
// behind.
func LeaveChain(ledger Ledger, self wire.PeerID, union uint32, history [][]outer.Link, common, closed []uint32, own []OwnRecord) (Left, error) {
	n := len(history)
	l := leaving{ledger: ledger, self: self, union: union, Left: Left{
		Own: make([][]wire.Digest, n), Forget: make([][]wire.Digest, n), Tokens: make([]uint64, n), Final: make([]uint64, n),
	}}
	for p, links := range history {
		if err := l.add(p, links, common[p], closed[p], own); err != nil {
			return Left{}, err
		}
	}
	return l.Left, nil
}

func (l *leaving) add(p int, links []outer.Link, common, closed uint32, own []OwnRecord) error {
	from, err := l.from(p, links[0], common)
	if err != nil {
		return err
	}
	if from <= links[0].Round {
		if err := l.addOlder(p, links[0].Round, own); err != nil {
			return err
		}
	}
	if err := l.addFolded(p, from, links, closed); err != nil {
		return err
	}
	l.addInFlight(p, links, own)
	return nil
}

// addFolded adds the own deltas that records from a round on fold and the links do not. What was
// folded beyond the tips is in flight again, except what the machine has forgotten.
func (l *leaving) addFolded(p int, from uint32, links []outer.Link, closed uint32) error {
	last, final := links[len(links)-1].Round, closed-min(closed, l.union)
	return l.ledger.Rounds(p, from, max(last, final), func(at outer.Link) error {
		for _, folded := range at.Folded {
			id, round := wire.Digest(folded), at.Round
			h, known, err := l.ledger.HeaderAt(p, round, id)
			if err != nil {
				return err
			}
			if !known || h.Author != l.self || folds(links, round, id) {
				continue
			}
			l.lose(p, id, h.Tokens)
			if round <= final {
				l.Final[p] += h.Tokens
			}
		}
		return nil
	})
}

// addInFlight adds the own deltas of a fragment that were in flight, of rounds that the links
// reach and do not fold them in. The machine takes them out of the parameters with the tips. A
// restart that found them would put them back, to publish them a second time.
func (l *leaving) addInFlight(p int, links []outer.Link, own []OwnRecord) {
	first, last := links[0].Round, links[len(links)-1].Round
	for _, o := range own {
		round := o.Header.Round
		reached := int(o.Header.Fragment) == p && first <= round && round <= last
		if reached && !folds(links, round, o.ID) && !slices.Contains(l.Own[p], o.ID) {
			l.lose(p, o.ID, o.Header.Tokens)
		}
	}
}

func (l *leaving) lose(p int, id wire.Digest, tokens uint64) {
	l.Own[p], l.Forget[p] = append(l.Own[p], id), append(l.Forget[p], id)
	l.Tokens[p] += tokens
}

// addOlder adds the own deltas of a fragment that are older than the links. Those
// in flight are dropped: nobody here can say whether the other chain folds them.
// Those that were folded left the parameters then, and their records go with the
// chain, so that a restart could not know it.
func (l *leaving) addOlder(p int, before uint32, own []OwnRecord) error {
	for _, o := range own {
		if int(o.Header.Fragment) != p || o.Header.Round >= before {
			continue
		}
		at, _, err := recordOf(l.ledger, p, o.Header.Round)
		switch {
		case err != nil:
			return err
		case slices.Contains(at.Folded, outer.ID(o.ID)):
			l.Forget[p] = append(l.Forget[p], o.ID)
		default:
			l.lose(p, o.ID, o.Header.Tokens)
		}
	}
	return nil
}

// from is the first round of the records that may not be on the new chain.
func (l *leaving) from(p int, first outer.Link, common uint32) (uint32, error) {
	if first.Round == 0 {
		return 1, nil
	}
	at, known, err := recordOf(l.ledger, p, first.Round)
	switch {
	case known && at.Chain == first.Chain:
		return first.Round + 1, err
	case known && common >= first.Round: // that was of a third chain, and says nothing
		return 1, err
	}
	return min(common, first.Round) + 1, err
}

// recordOf is the record of one round, if there is one.
func recordOf(ledger Ledger, p int, round uint32) (at outer.Link, known bool, err error) {
	err = ledger.Rounds(p, round, round, func(l outer.Link) error {
		at, known = l, true
		return nil
	})
	return at, known, err
}

// Continues says whether links that lead to tips begin at a round that the disk has
// on the same chain. Then its records up to there stay, otherwise none does.
func Continues(ledger Ledger, p int, links []outer.Link) (same bool, err error) {
	at, known, err := recordOf(ledger, p, links[0].Round)
	return known && at.Chain == links[0].Chain, err
}

// folds says whether one of the links names a delta.
func folds(links []outer.Link, round uint32, id wire.Digest) bool {
	first := links[0].Round
	return round >= first && round-first < uint32(len(links)) && slices.Contains(links[round-first].Folded, outer.ID(id))
}
