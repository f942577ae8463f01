package store

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// Headers and records of old rounds are in segment files. The index names each, and
// says what its digest is. What is in the index itself goes before what is in a segment, and a
// later segment goes before an earlier one.

// segmentEntry is what the index says of a segment.
type segmentEntry struct {
	fragment    int
	number      uint32 // from 1, by fragment
	first, last uint32 // rounds, both included
	through     uint32 // records above it were truncated
	size        int64
	digest      wire.Digest // of the file
}

// segmentEntrySize is the length of an entry of the segments bucket.
const segmentEntrySize = 3*4 + 8 + len(wire.Digest{})

func (e segmentEntry) key() []byte { return roundKey(e.fragment, e.number) }

func (e segmentEntry) value() []byte {
	v := binary.BigEndian.AppendUint32(nil, e.first)
	v = binary.BigEndian.AppendUint32(v, e.last)
	v = binary.BigEndian.AppendUint32(v, e.through)
	v = binary.BigEndian.AppendUint64(v, uint64(e.size))
	return append(v, e.digest[:]...)
}

func parseSegmentEntry(k, v []byte) (segmentEntry, error) {
	if len(k) != roundKeySize || len(v) != segmentEntrySize {
		return segmentEntry{}, fmt.Errorf("index entry of a segment: %w: %d and %d bytes", ErrCorrupt, len(k), len(v))
	}
	u32 := binary.BigEndian.Uint32
	return segmentEntry{
		fragment: int(binary.BigEndian.Uint16(k)), number: roundOf(k), first: u32(v), last: u32(v[4:]), through: u32(v[8:]),
		size: int64(binary.BigEndian.Uint64(v[12:])), digest: wire.Digest(v[20:]),
	}, nil
}

// file is where the segment is.
func (e segmentEntry) file() file {
	return file{segmentsDir, fmt.Sprintf("%03d/%08d", e.fragment, e.number)}
}

// segmentNumber is the fragment and number in the name of a segment file.
func segmentNumber(name string) (fragment int, number uint32, ok bool) {
	n, err := fmt.Sscanf(name, "%d/%d", &fragment, &number)
	ok = err == nil && n == 2 && checkFragment(fragment) == nil
	return fragment, number, ok && (segmentEntry{fragment: fragment, number: number}).file().name == name
}

// segmentInIndex reports whether the index has the segment of that file name.
func segmentInIndex(tx *bbolt.Tx, name string) bool {
	fragment, number, ok := segmentNumber(name)
	return ok && entriesOf(tx, bucketSegments).Get(roundKey(fragment, number)) != nil
}

// isIn reports whether the index still has this segment.
func (e segmentEntry) isIn(tx *bbolt.Tx) bool {
	now, err := parseSegmentEntry(e.key(), entriesOf(tx, bucketSegments).Get(e.key()))
	return err == nil && now.digest == e.digest
}

// segmentsIn are the segments with keys from..to, ascending.
func segmentsIn(tx *bbolt.Tx, from, to []byte) (all []segmentEntry, err error) {
	c := tx.Bucket(bucketSegments).Cursor()
	for k, v := c.Seek(from); k != nil && bytes.Compare(k, to) < 0; k, v = c.Next() {
		e, err := parseSegmentEntry(k, checked(k, v))
		if err != nil {
			return nil, err
		}
		all = append(all, e)
	}
	return all, nil
}

// segmentsOf are the segments of a fragment, oldest first.
func segmentsOf(tx *bbolt.Tx, fragment int) ([]segmentEntry, error) {
	return segmentsIn(tx, fragmentKey(fragment), fragmentKey(fragment+1))
}

// maxOpenSegments bounds the segments in memory: one of 128 rounds with 16 deltas each
// takes half a MiB there. A reader of a ledger goes through one segment after the other.
const maxOpenSegments = 32

// openSegments are the segments that were read last, the last one first.
type openSegments struct {
	mu  sync.Mutex
	all []openSegment
}

type openSegment struct {
	segmentEntry
	*segment
}

// find returns an open segment.
func (o *openSegments) find(same func(openSegment) bool) (openSegment, bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	i := slices.IndexFunc(o.all, same)
	if i < 0 {
		return openSegment{}, false
	}
	found := o.all[i]
	copy(o.all[1:i+1], o.all[:i])
	o.all[0] = found
	return found, true
}

func (o *openSegments) add(one openSegment) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.all = slices.Insert(o.all, 0, one)
	o.all = o.all[:min(len(o.all), maxOpenSegments)]
}

// openSegment reads a segment and checks it. It is not kept open.
func (s *Store) openSegment(e segmentEntry) (*segment, error) {
	g, err := s.readSegment(e)
	if err != nil {
		return nil, fmt.Errorf("segment %s, fragment %d rounds %d to %d: %w", s.path(e.file()), e.fragment, e.first, e.last, err)
	}
	return g, nil
}

func (s *Store) readSegment(e segmentEntry) (*segment, error) {
	b, err := readVerified(s.path(e.file()), e.size, e.digest)
	if err != nil {
		return nil, err
	}
	g, err := decodeSegment(b)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if g.fragment != e.fragment || g.first != e.first || g.last != e.last {
		return nil, fmt.Errorf("%w: it has fragment %d rounds %d to %d", ErrCorrupt, g.fragment, g.first, g.last)
	}
	return g, nil
}

// segmentOf is a segment that may be open already.
func (s *Store) segmentOf(e segmentEntry) (*segment, error) {
	found, ok := s.segments.find(func(o openSegment) bool { return o.digest == e.digest })
	if ok {
		return found.segment, nil
	}
	g, err := s.openSegment(e)
	if errors.Is(err, ErrCorrupt) {
		err = fmt.Errorf("%w: run `atoll doctor %s --fix`, which sets it aside; the node goes on without it", err, s.dir)
	}
	if err != nil {
		return nil, err
	}
	s.segments.add(openSegment{e, g})
	return g, nil
}

// sealedAt is where a segment has a header.
type sealedAt struct {
	segmentEntry
	*segment
	place int
}

func (a sealedAt) header() sealedHeader { return a.headers[a.place] }

// holds tells whether the payload is here.
func (a sealedAt) holds(tx *bbolt.Tx) bool {
	round := a.header().Header.Round
	return heldBits(tx, a.segmentEntry, round).has(a.place - a.ofRound(round))
}

// sealedTo is a round of a fragment above which no segment has anything, so that whoever asks for
// a new round reads no entry of the segments.
func (s *Store) sealedTo(tx *bbolt.Tx, fragment int) (uint32, error) {
	if to, known := s.lastSealedRound[fragment]; known {
		return to, nil
	}
	all, err := segmentsOf(tx, fragment)
	if err != nil {
		return 0, err
	}
	s.lastSealedRound[fragment] = 0
	for _, e := range all {
		s.recordSealed(e)
	}
	return s.lastSealedRound[fragment], nil
}

// recordSealed remembers a segment. One that is not committed after all does no harm.
func (s *Store) recordSealed(e segmentEntry) {
	if to, known := s.lastSealedRound[e.fragment]; known {
		s.lastSealedRound[e.fragment] = max(to, e.last)
	}
}

// sealedIn looks for a delta of some rounds in the segments, nil if it is in none.
func (s *Store) sealedIn(tx *bbolt.Tx, fragment int, first, last uint32, id wire.Digest) (*sealedAt, error) {
	if to, err := s.sealedTo(tx, fragment); err != nil || first > to {
		return nil, err
	}
	all, err := segmentsOf(tx, fragment)
	for _, e := range slices.Backward(all) {
		if last < e.first || first > e.last || err != nil {
			continue
		}
		var g *segment
		if g, err = s.segmentOf(e); err != nil {
			continue
		}
		if place, known := g.find(id); known {
			return &sealedAt{e, g, place}, nil
		}
	}
	return nil, err
}

// sealed looks for a delta in all segments, nil if it is in none. Those that were read
// last come first: a reader of a record there asks for its headers next. If it is not
// in those, all are read, which takes seconds for a million rounds.
func (s *Store) sealed(tx *bbolt.Tx, id wire.Digest) (*sealedAt, error) {
	var place int
	found, ok := s.segments.find(func(o openSegment) (known bool) {
		place, known = o.segment.find(id)
		return known
	})
	if ok && found.isIn(tx) {
		return &sealedAt{found.segmentEntry, found.segment, place}, nil
	}
	lacking, ok := s.segments.find(func(o openSegment) bool { return o.unknown[id] > 0 })
	if ok && lacking.isIn(tx) {
		round := lacking.unknown[id]
		return s.sealedIn(tx, lacking.segment.fragment, round, round, id)
	}
	all, err := segmentsIn(tx, fragmentKey(0), fragmentKey(wire.MaxFragments))
	if err != nil {
		return nil, err
	}
	for _, e := range slices.Backward(all) {
		g, err := s.segmentOf(e)
		if err != nil {
			return nil, err
		}
		if place, known := g.find(id); known {
			return &sealedAt{e, g, place}, nil
		}
	}
	return nil, nil
}

// bits says of which of a round's headers the payloads are here.
type bits []byte

func (b bits) has(i int) bool { return i/8 < len(b) && b[i/8]&(1<<(i%8)) != 0 }

// heldBits are those of a round in a segment.
func heldBits(tx *bbolt.Tx, e segmentEntry, round uint32) bits {
	v := entriesOf(tx, bucketHeld).Get(heldKey(e.fragment, round, e.number))
	if len(v) < 8 {
		return nil
	}
	return bits(v[8:])
}

// dropSealed records that the payload of a header in a segment is not here any more.
func (s *Store) dropSealed(tx *bbolt.Tx, a *sealedAt) error {
	h := a.header().Header
	held, key := entriesOf(tx, bucketHeld), heldKey(a.fragment(), h.Round, a.number)
	v := bytes.Clone(held.Get(key))
	i := a.place - a.ofRound(h.Round)
	if len(v) < 8 || !bits(v[8:]).has(i) {
		return nil
	}
	v[8+i/8] &^= 1 << (i % 8)
	s.stale = append(s.stale, payloadFile(a.header().id, h))
	left := heldBytes(v) - int64(h.Size)
	binary.BigEndian.PutUint64(v, uint64(left))
	err := held.Put(key, v)
	if left == 0 {
		err = held.Delete(key)
	}
	return errors.Join(err, use(tx, a.fragment(), -int64(h.Size)))
}

// keepSealed records that the payload of a header in a segment is here again.
func keepSealed(tx *bbolt.Tx, a *sealedAt) error {
	h := a.header().Header
	held, key := entriesOf(tx, bucketHeld), heldKey(a.fragment(), h.Round, a.number)
	v := bytes.Clone(held.Get(key))
	if len(v) == 0 {
		n := countUpTo(a.headers[a.ofRound(h.Round):], h.Round)
		v = make([]byte, 8+(n+7)/8)
	}
	i := a.place - a.ofRound(h.Round)
	if bits(v[8:]).has(i) {
		return nil
	}
	v[8+i/8] |= 1 << (i % 8)
	binary.BigEndian.PutUint64(v, uint64(heldBytes(v)+int64(h.Size)))
	return errors.Join(held.Put(key, v), use(tx, a.fragment(), int64(h.Size)))
}

func (a sealedAt) fragment() int { return a.segmentEntry.fragment }

// layered adds, to a page of the index, what segments have between its keys. The page ends
// where the first of these segments does.
func (s *Store) layered(tx *bbolt.Tx, bucket, from, to []byte, p scanned) (scanned, error) {
	records := bytes.Equal(bucket, bucketRounds)
	if !records && !bytes.Equal(bucket, bucketHeaders) {
		return p, nil
	}
	end := to
	if p.next != nil {
		end = p.next
	}
	fragment := int(binary.BigEndian.Uint16(from))
	if to, err := s.sealedTo(tx, fragment); err != nil || roundOf(from) > to {
		return p, err
	}
	all, err := segmentsOf(tx, fragment)
	if err != nil {
		return p, err
	}
	all = slices.DeleteFunc(all, func(e segmentEntry) bool {
		last := e.last
		if records {
			last = e.through
		}
		return e.first > last || bytes.Compare(roundKey(e.fragment, e.first), end) >= 0 || bytes.Compare(afterKey(e.fragment, last), from) <= 0
	})
	for _, e := range all {
		if over := afterKey(e.fragment, e.last); bytes.Compare(over, end) < 0 {
			p.cut(over)
			end = over
		}
	}
	for _, e := range slices.Backward(all) {
		g, err := s.segmentOf(e)
		if err != nil {
			return p, err
		}
		if records {
			p.addRecords(e, g, from, end)
		} else {
			p.addHeaders(tx, e, g, from, end)
		}
	}
	p.sort()
	return p, nil
}

// addRecords adds records with from <= key < to.
func (p *scanned) addRecords(e segmentEntry, g *segment, from, to []byte) {
	for _, r := range g.records {
		k := roundKey(e.fragment, r.round)
		if r.round <= e.through && bytes.Compare(k, from) >= 0 && bytes.Compare(k, to) < 0 {
			p.add(k, r.entry())
		}
	}
}

// addHeaders adds headers with from <= key < to.
func (p *scanned) addHeaders(tx *bbolt.Tx, e segmentEntry, g *segment, from, to []byte) {
	var held bits
	var round uint32
	start := 0
	for i := g.ofRound(max(g.first, roundOf(from))); i < len(g.headers); i++ {
		h := g.headers[i]
		k := h.key()
		if bytes.Compare(k, to) >= 0 {
			return
		}
		if h.Header.Round != round {
			round, start = h.Header.Round, i
			held = heldBits(tx, e, round)
		}
		if bytes.Compare(k, from) < 0 {
			continue
		}
		flag := byte(headerOnly)
		if held.has(i - start) {
			flag = payloadHeld
		}
		p.add(k, h.Append([]byte{flag}))
	}
}

// CheckSegments reads all segments. It returns how many are whole, and what is wrong with
// each other one.
func (s *Store) CheckSegments() (whole int, damaged []error, err error) {
	var all []segmentEntry
	err = s.view(func(tx *bbolt.Tx) error {
		all, err = segmentsIn(tx, fragmentKey(0), fragmentKey(wire.MaxFragments))
		return err
	})
	for _, e := range all {
		if _, err := s.openSegment(e); err != nil {
			damaged = append(damaged, err)
		} else {
			whole++
		}
	}
	return whole, damaged, err
}

// SetSegmentsAside moves segments that are damaged into a new folder beside the others, whose
// path it returns, and forgets them. The rounds in them then count as those before a join: nobody
// here knows what they folded. The path is empty if no segment is damaged.
func (s *Store) SetSegmentsAside(now time.Time) (aside string, moved int, err error) {
	var all []segmentEntry
	err = s.view(func(tx *bbolt.Tx) error {
		all, err = segmentsIn(tx, fragmentKey(0), fragmentKey(wire.MaxFragments))
		return err
	})
	for _, e := range all {
		if _, bad := s.openSegment(e); bad == nil || err != nil {
			continue
		}
		aside = filepath.Join(s.dir, now.UTC().Format(asideTime), segmentsDir)
		if err = os.MkdirAll(aside, 0o700); err == nil {
			err = s.forgetSegment(e, aside)
		}
		moved++
	}
	if err != nil {
		return aside, moved, fmt.Errorf("set segments aside: %w", err)
	}
	return aside, moved, nil
}
