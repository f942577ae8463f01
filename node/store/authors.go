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
	Deltas uint64
	Tokens uint64 // that count for the budget
	Beyond uint64 // tokens that it claimed and that do not count
	First  Place  // of its first delta; zero where a program counted it that did not write that down
}

// Place is where a delta is in the records of a fragment.
type Place struct{ Round, Nth uint32 }

// add is the sum with another delta, of which so many tokens count, and so many are beyond what counts.
func (a AuthorSum) add(at Place, tokens, beyond uint64) AuthorSum {
	if a.Deltas == 0 {
		a.First = at
	}
	return AuthorSum{a.Deltas + 1, a.Tokens + tokens, a.Beyond + beyond, a.First}
}

// authorSumSize is the length of an entry of an author.
const authorSumSize = 4 * 8

func (a AuthorSum) encode() []byte {
	b := make([]byte, 0, authorSumSize)
	for _, n := range []uint64{a.Deltas, a.Tokens, a.Beyond} {
		b = binary.BigEndian.AppendUint64(b, n)
	}
	b = binary.BigEndian.AppendUint32(b, a.First.Round)
	return binary.BigEndian.AppendUint32(b, a.First.Nth)
}

// decodeAuthorSum reads an entry; nothing is in one of another length.
func decodeAuthorSum(b []byte) (a AuthorSum) {
	if len(b) != authorSumSize {
		return a
	}
	for i, n := range []*uint64{&a.Deltas, &a.Tokens, &a.Beyond} {
		*n = binary.BigEndian.Uint64(b[8*i:])
	}
	a.First = Place{binary.BigEndian.Uint32(b[24:]), binary.BigEndian.Uint32(b[28:])}
	return a
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
			sums[wire.PeerID(k[2:])] = decodeAuthorSum(b.Get(k))
		}
		return nil
	})
	return through, sums, err
}

// CountAuthors counts the recorded rounds of a fragment up to a last one, so that nobody
// has to read them again to know who contributed. They must be final. counted says how many
// tokens of each delta of a round count. Deltas whose headers are not here are left out. Truncating
// rounds later (TruncateRounds, Install) undoes the counting. Not durable before a commit.
func (s *Store) CountAuthors(fragment int, last uint32, counted func([]wire.Header) []uint64) error {
	through, sums, err := s.AuthorSums(fragment)
	if err != nil || last <= through {
		return err
	}
	began := s.truncations.Load()
	err = s.Rounds(fragment, through+1, last, func(round uint32, r Round) error {
		var headers []wire.Header
		var places []uint32
		for nth, id := range r.Folded {
			h, err := s.HeaderAt(fragment, round, id)
			if errors.Is(err, ErrNotFound) {
				continue
			}
			if err != nil {
				return err
			}
			if h.Header.Revocation() {
				continue // an owner's word, and no machine's work
			}
			headers, places = append(headers, h.Header), append(places, uint32(nth))
		}
		for i, count := range counted(headers) {
			h := headers[i]
			sums[h.Author] = sums[h.Author].add(Place{round, places[i]}, count, h.Tokens-count)
		}
		return nil
	})
	if err == nil {
		err = s.updateAfter(func() error {
			if s.truncations.Load() != began {
				return errTruncated
			}
			return nil
		}, func(tx *bbolt.Tx) error { return putSums(tx, fragment, last, sums) })
	}
	if errors.Is(err, errTruncated) {
		return nil // the next count sees what is there instead
	}
	return err
}

// errTruncated says that records were truncated while they were counted.
var errTruncated = errors.New("records were truncated")

func putSums(tx *bbolt.Tx, fragment int, through uint32, sums map[wire.PeerID]AuthorSum) error {
	b := entriesOf(tx, bucketAuthors)
	for author, sum := range sums {
		if err := b.Put(append(fragmentKey(fragment), author[:]...), sum.encode()); err != nil {
			return err
		}
	}
	return b.Put(fragmentKey(fragment), binary.BigEndian.AppendUint32(nil, through))
}

// countedThrough is the last round of a fragment that is counted, 0 if none is.
func countedThrough(tx *bbolt.Tx, fragment int) uint32 {
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
