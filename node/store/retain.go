package store

import (
	"cmp"
	"errors"
	"math"
	"slices"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// Kept is what the payloads and bases of a folder take, in bytes.
type Kept struct {
	Payloads, Bases int64
	Dropped         int // payloads that Retain has just dropped
}

// Total is the bytes of both.
func (k Kept) Total() int64 { return k.Payloads + k.Bases }

// Retain drops payloads of rounds up to limit[fragment], oldest first, until payloads and
// bases take at most keep bytes. It returns what they take then. Headers, records and marks
// stay, and the payloads that are needed all the same. keep 0 drops nothing. The work follows
// what is dropped, and not what is kept.
func (s *Store) Retain(keep int64, limit []uint32, needed map[wire.Digest]bool) (kept Kept, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		kept, err = usage(tx)
		return err
	})
	if err != nil || keep == 0 {
		return kept, err
	}
	oldest := newOldest(limit)
	var damaged error // of rounds that are passed over: the others are dropped all the same
	for kept.Total() > keep {
		fragment, round, err := oldest.next(s)
		if err != nil || round == none {
			return kept, cmp.Or(err, damaged)
		}
		switch err := s.dropRound(&kept, keep, fragment, uint32(round), needed); {
		case errors.Is(err, ErrCorrupt):
			damaged = cmp.Or(damaged, err)
		case err != nil:
			return kept, err
		}
	}
	return kept, damaged
}

// dropRound drops payloads of one round until what is kept fits.
func (s *Store) dropRound(kept *Kept, keep int64, fragment int, round uint32, needed map[wire.Digest]bool) error {
	return s.Held(fragment, round, round, func(id wire.Digest, h wire.SignedHeader) error {
		if kept.Total() <= keep || needed[id] {
			return nil
		}
		if err := s.DropPayload(id); err != nil {
			return err
		}
		kept.Payloads -= int64(h.Header.Size)
		kept.Dropped++
		return nil
	})
}

// oldest finds the rounds that have payloads, oldest first over all fragments.
type oldest struct {
	limit []uint32
	found []uint64 // the round of each fragment that is next; none if none is left
}

func newOldest(limit []uint32) *oldest { return &oldest{limit: limit} }

// next is the oldest round that is left, and its fragment. The round is none after the last.
func (o *oldest) next(s *Store) (fragment int, round uint64, err error) {
	err = s.view(func(tx *bbolt.Tx) error {
		if o.found == nil {
			for fragment, last := range o.limit {
				o.found = append(o.found, firstHeld(tx, fragment, 0, last))
			}
		}
		if len(o.found) == 0 {
			round = none
			return nil
		}
		round = slices.Min(o.found)
		if round == none {
			return nil
		}
		fragment = slices.Index(o.found, round)
		o.found[fragment] = none
		if round < math.MaxUint32 {
			o.found[fragment] = firstHeld(tx, fragment, uint32(round)+1, o.limit[fragment])
		}
		return nil
	})
	return fragment, round, err
}
