package store

import (
	"encoding/binary"
	"errors"
	"fmt"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// AuthorSum is what was folded of one author's deltas.
type AuthorSum struct {
	Deltas, Tokens uint64
}

// AuthorSums returns what CountAuthors has counted of a fragment, and the last round
// that is in it, 0 if none is.
func (s *Store) AuthorSums(fragment int) (through uint32, sums map[wire.PeerID]AuthorSum, err error) {
	if err := checkFragment(fragment); err != nil {
		return 0, nil, fmt.Errorf("sums by author: %w", err)
	}
	sums = map[wire.PeerID]AuthorSum{}
	err = s.view(func(tx *bbolt.Tx) error {
		if through = countedThrough(tx, fragment); through == 0 {
			return nil
		}
		b := entriesOf(tx, bucketAuthors)
		for _, k := range keysBetween(b, fragmentKey(fragment), fragmentKey(fragment+1))[1:] {
			v := b.Get(k)
			sums[wire.PeerID(k[2:])] = AuthorSum{binary.BigEndian.Uint64(v), binary.BigEndian.Uint64(v[8:])}
		}
		return nil
	})
	return through, sums, err
}

// CountAuthors counts the recorded rounds of a fragment up to a last one, so that nobody
// has to read them again to know who contributed. They must be final. tokens says how many
// tokens of a delta count. Deltas whose headers are not here are left out. Rounds that are
// taken back later (TruncateRounds, Install) undo the counting. Not durable before a commit.
func (s *Store) CountAuthors(fragment int, last uint32, tokens func(wire.Header) uint64) error {
	through, sums, err := s.AuthorSums(fragment)
	if err != nil || last <= through {
		return err
	}
	began := s.takenBack.Load()
	err = s.Rounds(fragment, through+1, last, func(round uint32, r Round) error {
		for _, id := range r.Folded {
			h, err := s.HeaderAt(fragment, round, id)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			sum := sums[h.Header.Author]
			sums[h.Header.Author] = AuthorSum{sum.Deltas + 1, sum.Tokens + tokens(h.Header)}
		}
		return nil
	})
	if err == nil {
		err = s.updateAfter(func() error {
			if s.takenBack.Load() != began {
				return errTakenBack
			}
			return nil
		}, func(tx *bbolt.Tx) error { return putSums(tx, fragment, last, sums) })
	}
	if errors.Is(err, errTakenBack) {
		return nil // the next count sees what is there instead
	}
	return err
}

// errTakenBack says that records were taken back while they were counted.
var errTakenBack = errors.New("records were taken back")

func putSums(tx *bbolt.Tx, fragment int, through uint32, sums map[wire.PeerID]AuthorSum) error {
	b := entriesOf(tx, bucketAuthors)
	for author, sum := range sums {
		v := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, sum.Deltas), sum.Tokens)
		if err := b.Put(append(fragmentKey(fragment), author[:]...), v); err != nil {
			return err
		}
	}
	return b.Put(fragmentKey(fragment), binary.BigEndian.AppendUint32(nil, through))
}

// countedThrough is the last round of a fragment that is counted, 0 if none is.
func countedThrough(tx *bbolt.Tx, fragment int) uint32 {
	if tx.Bucket(bucketAuthors) == nil {
		return 0
	}
	v := entriesOf(tx, bucketAuthors).Get(fragmentKey(fragment))
	if v == nil {
		return 0
	}
	return binary.BigEndian.Uint32(v)
}

// uncount forgets the sums of a fragment if they have rounds above after.
func uncount(tx *bbolt.Tx, fragment int, after uint32) error {
	if countedThrough(tx, fragment) <= after {
		return nil
	}
	b := entriesOf(tx, bucketAuthors)
	for _, k := range keysBetween(b, fragmentKey(fragment), fragmentKey(fragment+1)) {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
