package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"slices"
	"strings"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

const (
	// segmentRounds is how many rounds go into a segment. Less are left in the index, so a
	// start reads at most some hundred rounds of each fragment. A segment of 16 deltas a round
	// takes 300 kB.
	segmentRounds = 128
	// segmentHeaders ends a segment of rounds with very many deltas: more would be in
	// memory, and in one transaction, at a time.
	segmentHeaders = 1 << 14
	// maxSeals bounds what one call of Seal does, as peers wait for the disk meanwhile.
	maxSeals = 64
)

// Seal moves headers and records of rounds up to limit[fragment], which are final, from the
// index into segment files, as far as there are enough for a file. They are found as before. A
// start does not read them. It counts their authors first (CountAuthors). It returns how many
// segments it made. After an error what is not in a segment is in the index.
func (s *Store) Seal(limit []uint32, counted func([]wire.Header) []uint64) (made int, err error) {
	for fragment, last := range limit {
		for made < maxSeals {
			g, err := s.gather(fragment, last)
			if err == nil && g != nil {
				err = s.CountAuthors(fragment, g.last, counted)
			}
			if err == nil && g != nil {
				err = s.seal(g)
			}
			if errors.Is(err, errMoved) {
				break // it changes at the moment: next time
			}
			if err != nil {
				return made, fmt.Errorf("put rounds of fragment %d into a segment: %w", fragment, err)
			}
			if g == nil {
				break
			}
			made++
		}
	}
	return made, nil
}

// errMoved says that what was to go into a segment is not what it was.
var errMoved = errors.New("what was to be sealed has changed")

// gather is what the next segment of a fragment would have, nil if there is not enough.
func (s *Store) gather(fragment int, limit uint32) (*segment, error) {
	first, err := s.unsealed(fragment)
	if err != nil || first > uint64(limit) {
		return nil, err
	}
	last := uint32(min(first+uint64(s.perSegment)-1, math.MaxUint32))
	if enough, err := s.enough(fragment, uint32(first), last, limit); err != nil || !enough {
		return nil, err
	}
	headers, err := s.gatherHeaders(fragment, uint32(first), min(last, limit))
	if err != nil {
		return nil, err
	}
	if len(headers) >= segmentHeaders {
		if full := headers[segmentHeaders-1].Header.Round; full > uint32(first) {
			last = full - 1 // that round may be cut
		} else {
			last = full
		}
		headers = headers[:countUpTo(headers, last)]
	}
	if last > limit {
		return nil, nil
	}
	records, err := s.gatherRecords(fragment, uint32(first), last)
	return newSegment(fragment, uint32(first), last, headers, records), err
}

// unsealed is the first round of a fragment after those in segments that the index has
// anything of; none if it has nothing.
func (s *Store) unsealed(fragment int) (first uint64, err error) {
	first = none
	err = s.view(func(tx *bbolt.Tx) error {
		all, err := segmentsOf(tx, fragment)
		from := uint32(0)
		for _, e := range all {
			from = max(from, e.through)
		}
		if err != nil || from == math.MaxUint32 {
			return err
		}
		for _, bucket := range [][]byte{bucketHeaders, bucketRounds} {
			k, _ := entriesOf(tx, bucket).Cursor().Seek(roundKey(fragment, from+1))
			if bytes.HasPrefix(k, fragmentKey(fragment)) {
				first = min(first, uint64(roundOf(k)))
			}
		}
		return nil
	})
	return first, err
}

// enough says whether rounds up to limit fill a segment: they are as many as it takes, or
// have as many headers. It reads no header.
func (s *Store) enough(fragment int, first, last, limit uint32) (enough bool, err error) {
	if last <= limit {
		return true, nil
	}
	err = s.view(func(tx *bbolt.Tx) error {
		c, end, n := entriesOf(tx, bucketHeaders).Cursor(), afterKey(fragment, limit), 0
		for k, _ := c.Seek(roundKey(fragment, first)); k != nil && bytes.Compare(k, end) < 0 && n < segmentHeaders; k, _ = c.Next() {
			n++
		}
		enough = n >= segmentHeaders
		return nil
	})
	return enough, err
}

// gatherHeaders are the headers that the index has of some rounds. It ends after the round in
// which it has enough for a segment.
func (s *Store) gatherHeaders(fragment int, first, last uint32) (headers []sealedHeader, err error) {
	err = s.scanIndex(bucketHeaders, roundKey(fragment, first), afterKey(fragment, last), func(k, v []byte) error {
		id := wire.Digest(k[len(k)-len(wire.Digest{}):])
		h, _, err := parseEntry(id, v)
		if n := len(headers); err == nil && n >= segmentHeaders && headers[n-1].Header.Round != h.Header.Round {
			return errEnough
		}
		headers = append(headers, sealedHeader{id, h})
		return err
	})
	if errors.Is(err, errEnough) {
		err = nil
	}
	return headers, err
}

var errEnough = errors.New("there is enough")

// countUpTo is how many of some headers are of rounds up to last.
func countUpTo(headers []sealedHeader, last uint32) int {
	n := slices.IndexFunc(headers, func(h sealedHeader) bool { return h.Header.Round > last })
	if n < 0 {
		return len(headers)
	}
	return n
}

func (s *Store) gatherRecords(fragment int, first, last uint32) (records []sealedRound, err error) {
	err = s.scanIndex(bucketRounds, roundKey(fragment, first), afterKey(fragment, last), func(k, v []byte) error {
		r, err := parseRound(v)
		records = append(records, sealedRound{roundOf(k), r})
		return err
	})
	return records, err
}

// seal writes a segment. The file is whole and durable under its name before the commit
// that names it, and takes what it holds out of the index.
func (s *Store) seal(g *segment) error {
	if err := s.writable(); err != nil {
		return err
	}
	b := g.encode()
	tmp, err := s.disk.writeTemp(s.dir, synced, b)
	if err != nil {
		return err
	}
	var named file
	err = s.alone(func(tx *bbolt.Tx) error {
		e, err := nextSegment(tx, g, b)
		if err != nil {
			return err
		}
		named = e.file()
		s.recordSealed(e)
		if err := unchanged(tx, g); err != nil {
			return err
		}
		if err := s.name(tmp, named, synced); err != nil {
			return err
		}
		return errors.Join(moveHeld(tx, e, g), forgetSealed(tx, g), entriesOf(tx, bucketSegments).Put(e.key(), e.value()))
	})
	if err != nil {
		return errors.Join(err, s.disk.remove(tmp), s.removeUnsealed(named))
	}
	return nil
}

// removeUnsealed removes the file of a segment that is not named after all.
func (s *Store) removeUnsealed(f file) error {
	if f == (file{}) {
		return nil
	}
	err := s.view(func(*bbolt.Tx) error { return s.removeUnnamed(f) })
	if errors.Is(err, ErrIndex) || errors.Is(err, ErrClosed) {
		return nil // the error before says so; Open sweeps
	}
	return err
}

// nextSegment is the entry of a segment that is about to be named.
func nextSegment(tx *bbolt.Tx, g *segment, b []byte) (segmentEntry, error) {
	e := segmentEntry{fragment: g.fragment, number: 1, first: g.first, last: g.last, through: g.last, size: int64(len(b)), digest: wire.Sum(b)}
	before, err := segmentsOf(tx, g.fragment)
	if n := len(before); n > 0 {
		e.number = before[n-1].number + 1
	}
	return e, err
}

// unchanged returns errMoved unless the index still has what a segment was made of.
func unchanged(tx *bbolt.Tx, g *segment) error {
	headers, rounds := entriesOf(tx, bucketHeaders), entriesOf(tx, bucketRounds)
	for _, h := range g.headers {
		if headers.Get(h.key()) == nil {
			return errMoved
		}
	}
	for _, r := range g.records {
		if !bytes.Equal(rounds.Get(roundKey(g.fragment, r.round)), r.entry()) {
			return errMoved
		}
	}
	return nil
}

// moveHeld records which payloads are here whose headers move into a segment.
func moveHeld(tx *bbolt.Tx, e segmentEntry, g *segment) error {
	held, headers := entriesOf(tx, bucketHeld), entriesOf(tx, bucketHeaders)
	for from := 0; from < len(g.headers); {
		round := g.headers[from].Header.Round
		to := from + countUpTo(g.headers[from:], round)
		v := make([]byte, 8, 8+(to-from+7)/8)
		for i, h := range g.headers[from:to] {
			if i%8 == 0 {
				v = append(v, 0)
			}
			if size := payloadBytes(h.id, headers.Get(h.key())); size > 0 {
				v[8+i/8] |= 1 << (i % 8)
				binary.BigEndian.PutUint64(v, uint64(heldBytes(v)+size))
			}
		}
		if more := heldBytes(v); more > 0 {
			err := errors.Join(weigh(tx, e.fragment, round, -more), use(tx, e.fragment, more), held.Put(heldKey(e.fragment, round, e.number), v))
			if err != nil {
				return err
			}
		}
		from = to
	}
	return nil
}

// forgetSealed takes what a segment holds out of the index.
func forgetSealed(tx *bbolt.Tx, g *segment) error {
	headers, ids, rounds := entriesOf(tx, bucketHeaders), entriesOf(tx, bucketIDs), entriesOf(tx, bucketRounds)
	for _, h := range g.headers {
		if err := errors.Join(headers.Delete(h.key()), ids.Delete(h.id[:])); err != nil {
			return err
		}
	}
	for _, r := range g.records {
		if err := rounds.Delete(roundKey(g.fragment, r.round)); err != nil {
			return err
		}
	}
	return nil
}

// truncateSegments invalidates the records above a round in segments.
func truncateSegments(tx *bbolt.Tx, fragment int, after uint32) error {
	all, err := segmentsOf(tx, fragment)
	for _, e := range all {
		if e.through > after && err == nil {
			e.through = after
			err = entriesOf(tx, bucketSegments).Put(e.key(), e.value())
		}
	}
	return err
}

// forgetSegment moves a segment into another folder and forgets it.
func (s *Store) forgetSegment(e segmentEntry, aside string) error {
	err := s.alone(func(tx *bbolt.Tx) error {
		held := entriesOf(tx, bucketHeld)
		for _, k := range keysBetween(held, roundKey(e.fragment, e.first), afterKey(e.fragment, e.last)) {
			if binary.BigEndian.Uint32(k[roundKeySize:]) != e.number {
				continue
			}
			if err := errors.Join(use(tx, e.fragment, -heldBytes(held.Get(k))), held.Delete(k)); err != nil {
				return err
			}
		}
		return entriesOf(tx, bucketSegments).Delete(e.key())
	})
	if err != nil {
		return err
	}
	err = s.disk.rename(s.path(e.file()), filepath.Join(aside, strings.ReplaceAll(e.file().name, "/", "-")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil // it was gone
	}
	return err
}
