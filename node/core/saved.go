package core

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	"atoll/gossip/member"
	"atoll/gossip/wire"
	"atoll/optimizer/outer"
	"atoll/optimizer/rounds"
)

// Disk is what a restart reads.
type Disk interface {
	Ledger
	// LastRound is the last round of a fragment with a record, 0 if there is none.
	LastRound(fragment int) (uint32, error)
	// Mark is the highest round of a fragment that was ever signed.
	Mark(fragment int) (uint32, error)
	// Bases are the rounds of the kept tips of a fragment, ascending.
	Bases(fragment int) ([]uint32, error)
	// BaseState is the state digest of a kept tip.
	BaseState(fragment int, round uint32) (outer.Digest, error)
	// Base reads a kept tip. It is nil where the disk has damaged it.
	Base(fragment int, round uint32) *outer.Tip
	// DropBase forgets a kept tip.
	DropBase(fragment int, round uint32) error
	// Held calls f with the header of each delta of a fragment whose payload is
	// here, of the given round and later ones.
	Held(fragment int, from uint32, f func(id wire.Digest, h wire.SignedHeader)) error
	// Own are the own deltas that are not known to be final.
	Own() ([]OwnRecord, error)
	// LostOwn says whether the payload of an own delta cannot be read, and then
	// forgets it, and that the delta is an own one.
	LostOwn(o OwnRecord) (bool, error)
}

// Saved is what a disk has of one fragment.
type Saved struct {
	rounds.Restored
	Headers map[wire.Digest]wire.SignedHeader // of the deltas held
}

// Load reads what a disk has of a run, by fragment: nil if it has nothing, and the
// node joins as one that was never there. members has the certificates that the disk has.
func Load(d Disk, self wire.PeerID, params outer.Params, genesis []*outer.Tip, members *member.Table) ([]Saved, error) {
	saved, found := make([]Saved, len(genesis)), false
	for p := range saved {
		s := &saved[p]
		if err := s.load(d, params, p, genesis[p], members); err != nil {
			return nil, fmt.Errorf("load fragment %d: %w", p, err)
		}
		found = found || s.Closed > 0 || s.Mark > 0 || len(s.Held) > 0
	}
	if !found {
		return nil, nil
	}
	return saved, loadOwn(d, self, params, saved, members)
}

func (s *Saved) load(d Disk, params outer.Params, p int, genesis *outer.Tip, members *member.Table) error {
	if err := s.loadBases(d, p); err != nil {
		return err
	}
	if s.Tip == nil {
		s.Tip, s.Bases = genesis, []uint32{0}
	}
	if err := s.loadHistory(d, params, p); err != nil {
		return err
	}
	var err error
	if s.Closed, err = d.LastRound(p); err != nil {
		return err
	}
	if s.Mark, err = d.Mark(p); err != nil {
		return err
	}
	if err := s.loadHeld(d, params, p, members); err != nil {
		return err
	}
	s.ReachGenesis(params, genesis)
	maps.DeleteFunc(s.Headers, func(_ wire.Digest, h wire.SignedHeader) bool { return h.Header.Round <= s.Bases[0] })
	return nil
}

// loadBases finds the newest kept tip of a fragment, and the rounds of all. Those
// that do not fit the record of their round are dropped: a crash came between a fold
// and its record, or the disk damaged them. Genesis is none of them, as ReachGenesis
// makes it the oldest where it is of use.
func (s *Saved) loadBases(d Disk, p int) error {
	rounds, err := d.Bases(p)
	if err != nil {
		return err
	}
	for _, round := range slices.Backward(rounds) {
		if round == 0 {
			continue
		}
		fits, err := baseFits(d, p, round)
		if err != nil {
			return err
		}
		if fits && s.Tip == nil {
			s.Tip = d.Base(p, round)
			fits = s.Tip != nil
		}
		if fits {
			s.Bases = append(s.Bases, round)
		} else if err := d.DropBase(p, round); err != nil {
			return err
		}
	}
	slices.Reverse(s.Bases)
	return nil
}

// baseFits compares the digest of a kept tip with the recorded state.
func baseFits(d Disk, p int, round uint32) (fits bool, err error) {
	state, err := d.BaseState(p, round)
	if err != nil {
		return false, err
	}
	at, known, err := recordOf(d, p, round)
	return known && at.State == state, err
}

// loadHistory reads the links that lead to the tip, oldest first. They cover the
// union window, and go further back to the oldest base, from which that window is
// refolded.
func (s *Saved) loadHistory(d Disk, params outer.Params, p int) error {
	tip := s.Tip
	end := LinkOf(tip, nil)
	from := min(s.Bases[0], tip.Round-min(tip.Round, params.WindowUnion))
	var links []outer.Link
	err := d.Rounds(p, from, tip.Round, func(l outer.Link) error {
		if len(links) > 0 && links[len(links)-1].Round+1 != l.Round {
			links = nil // a gap: what is older does not lead here
		}
		if l.Round == tip.Round {
			end.Folded = l.Folded
		} else {
			links = append(links, l)
		}
		return nil
	})
	if len(links) > 0 && links[len(links)-1].Round+1 != tip.Round {
		links = nil
	}
	s.History = append(links, end)
	return err
}

// loadHeld reads the deltas of rounds above the oldest base, and of a young
// fragment all.
func (s *Saved) loadHeld(d Disk, params outer.Params, p int, members *member.Table) error {
	from := s.Bases[0] + 1
	if s.Tip.Round <= params.WindowUnion {
		from = 1
	}
	s.Headers = map[wire.Digest]wire.SignedHeader{}
	err := d.Held(p, from, func(id wire.Digest, h wire.SignedHeader) {
		if errors.Is(members.CheckHeader(h.Header), member.ErrUnknown) {
			return // its weight is not known any more: repair brings both
		}
		s.Headers[id] = h
		s.Held = append(s.Held, DeltaOf(id, h.Header, members))
	})
	slices.SortFunc(s.Held, func(a, b outer.Delta) int {
		return cmp.Or(cmp.Compare(a.Round, b.Round), bytes.Compare(a.ID[:], b.ID[:]))
	})
	return err
}

// loadOwn reads this node's own deltas of the window. One in flight whose payload
// cannot be read is its own no more: if peers hold it, it is folded like another's;
// if none does, its work is lost.
func loadOwn(d Disk, self wire.PeerID, params outer.Params, saved []Saved, members *member.Table) error {
	own, err := d.Own()
	if err != nil {
		return err
	}
	for _, o := range own {
		s := &saved[o.Header.Fragment]
		if o.Header.Round+params.WindowUnion <= s.Closed || o.Header.Author != self {
			continue
		}
		lost := false
		if !folds(s.History, o.Header.Round, o.ID) {
			if lost, err = d.LostOwn(o); err != nil {
				return err
			}
		}
		if lost {
			s.Held = slices.DeleteFunc(s.Held, func(d outer.Delta) bool { return d.ID == outer.ID(o.ID) })
		} else {
			s.Own = append(s.Own, rounds.OwnDelta{Seq: o.Seq, Delta: DeltaOf(o.ID, o.Header, members)})
		}
	}
	return nil
}
