package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"

	"go.etcd.io/bbolt"

	"atoll/gossip/wire"
)

// MaxRound is the highest round that a record can have.
const MaxRound = math.MaxUint32

// Round is what came of a closed round of a fragment.
type Round struct {
	Chain  wire.Digest // c_r
	State  wire.Digest // h_r; zero where the state was not computed
	Tokens uint64      // folded up to and with this round
	// EndRound is the first round at which Tokens reached the budget; 0 = not yet.
	EndRound uint32
	Folded   []wire.Digest // the ids folded
}

// PutRound keeps a closed round, in place of what was kept for it before. Not
// durable before a commit.
func (s *Store) PutRound(fragment int, round uint32, r Round) error {
	return s.PutRounds(fragment, round, []Round{r})
}

// PutRounds is PutRound for consecutive rounds from first on. After a crash
// there are all of them or none, so a chain is never half of one and half of
// another.
func (s *Store) PutRounds(fragment int, first uint32, rounds []Round) error {
	if err := checkFragment(fragment); err != nil {
		return fmt.Errorf("put round %d: %w", first, err)
	}
	return s.update(func(tx *bbolt.Tx) error { return s.putRounds(tx, fragment, first, rounds) })
}

func (s *Store) putRounds(tx *bbolt.Tx, fragment int, first uint32, rounds []Round) error {
	b := entriesOf(tx, bucketRounds)
	if len(rounds) > 0 && b.Get(roundKey(fragment, first)) != nil {
		s.truncations.Add(1)
	}
	if err := uncount(tx, fragment, max(first, 1)-1); err != nil {
		return err
	}
	for i, r := range rounds {
		if err := b.Put(roundKey(fragment, first+uint32(i)), r.entry()); err != nil {
			return err
		}
	}
	return nil
}

// entry is the reverse of parseRound.
func (r Round) entry() []byte {
	v := append(bytes.Clone(r.Chain[:]), r.State[:]...)
	v = binary.BigEndian.AppendUint64(v, r.Tokens)
	v = binary.BigEndian.AppendUint32(v, r.EndRound)
	for _, id := range r.Folded {
		v = append(v, id[:]...)
	}
	return v
}

// Round returns a closed round, or ErrNotFound.
func (s *Store) Round(fragment int, round uint32) (Round, error) {
	found := false
	var r Round
	err := s.Rounds(fragment, round, round, func(_ uint32, have Round) error {
		found, r = true, have
		return nil
	})
	if err == nil && !found {
		err = fmt.Errorf("fragment %d round %d: %w", fragment, round, ErrNotFound)
	}
	return r, err
}

// Rounds calls f with each kept round from..to of a fragment, both included, in
// order. f may use the store.
func (s *Store) Rounds(fragment int, from, to uint32, f func(round uint32, r Round) error) error {
	if err := checkFragment(fragment); err != nil {
		return fmt.Errorf("rounds: %w", err)
	}
	return s.scan(bucketRounds, roundKey(fragment, from), afterKey(fragment, to), func(k, v []byte) error {
		r, err := parseRound(v)
		if err != nil {
			return fmt.Errorf("fragment %d round %d: %w", fragment, roundOf(k), err)
		}
		return f(roundOf(k), r)
	})
}

// LastRound returns the highest kept round of a fragment, 0 if there is none.
func (s *Store) LastRound(fragment int) (uint32, error) {
	if err := checkFragment(fragment); err != nil {
		return 0, fmt.Errorf("last round: %w", err)
	}
	var round uint32
	err := s.view(func(tx *bbolt.Tx) error {
		c := entriesOf(tx, bucketRounds).Cursor()
		k, _ := c.Seek(fragmentKey(fragment + 1))
		if k == nil {
			k, _ = c.Last()
		} else {
			k, _ = c.Prev()
		}
		if bytes.HasPrefix(k, fragmentKey(fragment)) {
			round = roundOf(k)
		}
		sealed, err := s.lastSealed(tx, fragment, round)
		round = max(round, sealed)
		return err
	})
	return round, err
}

// lastSealed is the last record above a round that a segment has, 0 if there is none.
func (s *Store) lastSealed(tx *bbolt.Tx, fragment int, above uint32) (round uint32, err error) {
	if to, err := s.sealedTo(tx, fragment); err != nil || above >= to {
		return 0, err
	}
	all, err := segmentsOf(tx, fragment)
	for _, e := range all {
		if e.through <= max(above, round) || e.through < e.first || err != nil {
			continue
		}
		var g *segment
		if g, err = s.segmentOf(e); err != nil {
			break
		}
		for _, r := range g.records {
			if r.round <= e.through {
				round = max(round, r.round)
			}
		}
	}
	return round, err
}

// TruncateRounds removes the rounds of a fragment above after, which are about
// to be folded again. Not durable before a commit.
func (s *Store) TruncateRounds(fragment int, after uint32) error {
	if err := checkFragment(fragment); err != nil {
		return fmt.Errorf("truncate rounds: %w", err)
	}
	return s.update(func(tx *bbolt.Tx) error { return s.truncateRounds(tx, fragment, after) })
}

func (s *Store) truncateRounds(tx *bbolt.Tx, fragment int, after uint32) error {
	s.truncations.Add(1)
	if err := errors.Join(uncount(tx, fragment, after), truncateSegments(tx, fragment, after)); err != nil {
		return err
	}
	b := entriesOf(tx, bucketRounds)
	for _, k := range keysBetween(b, afterKey(fragment, after), fragmentKey(fragment+1)) {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

// keysBetween returns copies of the keys from <= k < to: a bucket must not
// change under a cursor.
func keysBetween(b entries, from, to []byte) (keys [][]byte) {
	c := b.Cursor()
	for k, _ := c.Seek(from); k != nil && bytes.Compare(k, to) < 0; k, _ = c.Next() {
		keys = append(keys, bytes.Clone(k))
	}
	return keys
}

// roundHead is what an entry has before the ids.
const roundHead = 2*len(wire.Digest{}) + 8 + 4

// parseRound decodes what PutRound entered.
func parseRound(v []byte) (Round, error) {
	const size = len(wire.Digest{})
	if len(v) < roundHead || (len(v)-roundHead)%size != 0 {
		return Round{}, fmt.Errorf("%w: entry of %d bytes", ErrCorrupt, len(v))
	}
	r := Round{
		Chain: wire.Digest(v), State: wire.Digest(v[size:]),
		Tokens: binary.BigEndian.Uint64(v[2*size:]), EndRound: binary.BigEndian.Uint32(v[2*size+8:]),
	}
	for v = v[roundHead:]; len(v) > 0; v = v[size:] {
		r.Folded = append(r.Folded, wire.Digest(v))
	}
	return r, nil
}
