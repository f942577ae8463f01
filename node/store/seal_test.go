package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// livedIn puts rounds from..to of two fragments into a store, with two deltas each.
func livedIn(t *testing.T, s *Store, from, to uint32) (all []delta) {
	t.Helper()
	for round := from; round <= to; round++ {
		for fragment := range 2 {
			a, b := makeDelta(2, fragment, round), makeDelta(3, fragment, round)
			must(t, a.put(s), b.put(s), s.PutRound(fragment, round, Round{Tokens: uint64(round), Folded: []wire.Digest{a.id, b.id}}))
			all = append(all, a, b)
		}
	}
	return all
}

// sealing is a store whose segments have four rounds each.
func sealing(t *testing.T, dir string) *Store {
	s := openTest(t, dir)
	s.perSegment = 4
	return s
}

// readsAll fails unless a store has these deltas, whole, and the records of their rounds.
func readsAll(t *testing.T, s *Store, all []delta) {
	t.Helper()
	var ids []wire.Digest
	for fragment := range 2 {
		rounds := uint32(0)
		must(t, s.Headers(fragment, 0, MaxRound, func(id wire.Digest, _ wire.SignedHeader) error { ids = append(ids, id); return nil }),
			s.Rounds(fragment, 0, MaxRound, func(round uint32, r Round) error {
				if rounds++; round != rounds || r.Tokens != uint64(round) || len(r.Folded) != 2 {
					t.Errorf("fragment %d round %d is %+v", fragment, round, r)
				}
				return nil
			}))
		last, err := s.LastRound(fragment)
		if must(t, err); last != rounds || int(rounds)*4 != len(all) {
			t.Errorf("fragment %d has %d records, the last of round %d", fragment, rounds, last)
		}
	}
	for _, d := range all {
		h, err := s.Header(d.id)
		got, e := s.Payload(d.id)
		if err != nil || e != nil || h != d.h || !bytes.Equal(got, d.payload) || !slices.Contains(ids, d.id) {
			t.Errorf("fragment %d round %d: %v, %v", d.h.Header.Fragment, d.h.Header.Round, err, e)
		}
	}
	if len(ids) != len(all) {
		t.Errorf("%d headers, want %d", len(ids), len(all))
	}
	checkHeld(t, s)
}

// Old rounds move into segments, whole ones only, and all is found as before: by round, by id,
// and after a restart. The index has less then.
func TestSeal(t *testing.T) {
	dir := t.TempDir()
	s := sealing(t, dir)
	all := livedIn(t, s, 1, 14)
	before := headersInIndex(t, s)
	made, err := s.Seal([]uint32{13, 6}, tokensOf)
	must(t, err)
	if files := names(t, dir, segmentsDir); made != 4 || fmt.Sprint(files) != "[000/00000001 000/00000002 000/00000003 001/00000001]" {
		t.Errorf("%d segments: %v", made, files)
	}
	if left := headersInIndex(t, s); before != 56 || left != 56-4*4*2 {
		t.Errorf("the index has %d headers, and had %d", left, before)
	}
	readsAll(t, s, all)
	if through, sums, err := s.AuthorSums(0); err != nil || through != 12 || sums[all[0].h.Header.Author].Deltas != 12 {
		t.Errorf("counted through round %d: %v, %v", through, sums, err)
	}
	if again, err := s.Seal([]uint32{13, 6}, tokensOf); again != 0 || err != nil {
		t.Errorf("%d more segments, %v", again, err)
	}
	must(t, s.Close())

	read, err := OpenReadOnly(dir)
	must(t, err)
	readsAll(t, read, all)
	must(t, read.Close())
	s = sealing(t, dir)
	readsAll(t, s, all)
	if _, err := s.Header(wire.Digest{1}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a header that is nowhere: %v", err)
	}
}

func headersInIndex(t *testing.T, s *Store) (n int) {
	t.Helper()
	must(t, s.scanIndex(bucketHeaders, fragmentKey(0), fragmentKey(2), func(_, _ []byte) error { n++; return nil }))
	return n
}

// Nothing of a segment is read at a start, and of what is not asked for nothing ever.
func TestStartReadsNoSegment(t *testing.T) {
	dir := t.TempDir()
	s := sealing(t, dir)
	all := livedIn(t, s, 1, 12)
	_, err := s.Seal([]uint32{8, 8}, tokensOf)
	must(t, err, s.Close())
	for _, name := range names(t, dir, segmentsDir) {
		must(t, os.Truncate(filepath.Join(dir, segmentsDir, name), 0))
	}
	s = sealing(t, dir)
	count := 0
	must(t, s.Held(0, 9, MaxRound, func(wire.Digest, wire.SignedHeader) error { count++; return nil }))
	last, err := s.LastRound(0)
	must(t, err)
	if _, sums, err := s.AuthorSums(0); err != nil || len(sums) != 2 || count != 8 || last != 12 {
		t.Errorf("sums %v, %v; %d held; last round %d", sums, err, count, last)
	}
	next := makeDelta(2, 0, 13)
	must(t, next.put(s), s.PutRound(0, 13, Round{}))
	if _, err := s.Payload(all[len(all)-1].id); err != nil {
		t.Error(err)
	}
}

// Payloads of old rounds are dropped by retention where their headers are in segments, too,
// and can come back.
func TestRetainInSegments(t *testing.T) {
	dir := t.TempDir()
	s := sealing(t, dir)
	all := livedIn(t, s, 1, 12)
	_, err := s.Seal([]uint32{8, 8}, tokensOf)
	must(t, err)
	kept, err := s.Retain(1, []uint32{6, 9}, nil)
	must(t, err)
	if kept.Dropped != 2*(6+9) {
		t.Errorf("%+v, want 30 payloads dropped", kept)
	}
	must(t, s.Close())
	s = sealing(t, dir)
	checkHeld(t, s)
	for _, d := range all {
		header, payload := s.Has(d.id)
		if limit := []uint32{6, 9}[d.h.Header.Fragment]; !header || payload != (d.h.Header.Round > limit) {
			t.Errorf("fragment %d round %d: header %v, payload %v", d.h.Header.Fragment, d.h.Header.Round, header, payload)
		}
		must(t, d.put(s))
	}
	if n := headersInIndex(t, s); n != 2*2*4 {
		t.Errorf("the index has %d headers: those of payloads that come back belong into segments", n)
	}
	readsAll(t, s, all)
	must(t, s.Close())
	s = sealing(t, dir)
	readsAll(t, s, all)
}

// A snapshot truncates records that segments have; other records replace them, and go into
// segments in their turn. Headers stay.
func TestInstallOverSegments(t *testing.T) {
	dir := t.TempDir()
	s := sealing(t, dir)
	all := livedIn(t, s, 1, 14)
	_, err := s.Seal([]uint32{12, 12}, tokensOf)
	must(t, err, s.Install(tipsOf(15, 6)))
	has(t, s, []uint32{1, 2, 3, 4, 5, 6, 15}, []uint32{15})
	if through, _, err := s.AuthorSums(0); err != nil || through != 0 {
		t.Errorf("counted through round %d, %v", through, err)
	}
	other := Round{Tokens: 99, Folded: []wire.Digest{makeDelta(2, 0, 7).id, {77}}}
	for p := range 2 {
		must(t, s.PutRounds(p, 7, []Round{other, other, other, other}))
	}
	made, err := s.Seal([]uint32{14, 14}, tokensOf)
	must(t, err)
	if made != 2 {
		t.Errorf("%d segments", made)
	}
	must(t, s.Close())
	s = sealing(t, dir)
	has(t, s, []uint32{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 15}, []uint32{15})
	r, err := s.Round(0, 7)
	if must(t, err); r.Tokens != 99 {
		t.Errorf("round 7 is %+v", r)
	}
	if _, err := s.Header(wire.Digest{77}); !errors.Is(err, ErrNotFound) {
		t.Errorf("a header that is nowhere: %v", err)
	}
	for _, d := range all {
		if h, err := s.Header(d.id); err != nil || h != d.h {
			t.Errorf("fragment %d round %d: %v", d.h.Header.Fragment, d.h.Header.Round, err)
		}
	}
	must(t, s.TruncateRounds(0, 5))
	if last, err := s.LastRound(0); err != nil || last != 5 {
		t.Errorf("last round %d, %v", last, err)
	}
}

// A segment of rounds with very many deltas ends early.
func TestSealManyDeltas(t *testing.T) {
	s := openTest(t, t.TempDir())
	var folded []wire.Digest
	for round := uint32(1); round <= 5; round++ {
		for i := range segmentHeaders / 3 {
			d := deltaOfMany(uint32(i), round)
			must(t, s.PutHeader(d.id, d.h))
			folded = append(folded, d.id)
		}
	}
	made, err := s.Seal([]uint32{5}, tokensOf)
	if must(t, err); made != 1 {
		t.Errorf("%d segments", made)
	}
	for i, id := range folded {
		if h, err := s.Header(id); err != nil || h.Header.Round != uint32(i/(segmentHeaders/3))+1 {
			t.Fatalf("header %d: %v", i, err)
		}
	}
}

// deltaOfMany is a delta whose signature nobody looks at.
func deltaOfMany(author, round uint32) delta {
	h := wire.SignedHeader{Header: wire.Header{Author: wire.PeerID{byte(author), byte(author >> 8)}, Round: round, Steps: 1, Size: 1}}
	return delta{id: h.Header.ID(testRun), h: h}
}

// Whatever step of a disk fails while a segment is made, nothing is lost, and it is made later.
func TestSealOnABadDisk(t *testing.T) {
	for _, errno := range []syscall.Errno{syscall.ENOSPC, syscall.EIO} {
		for k := 1; ; k++ {
			n := 0
			f := newFaulty(func(_ int, op Op) error {
				if n++; n != k {
					return nil
				}
				if op.Kind == OpWrite {
					return errors.Join(errno, appendFile(op.Path, op.Data[:len(op.Data)/2]))
				}
				return errno
			})
			dir := t.TempDir()
			s, err := Open(dir, testRun)
			must(t, err)
			s.perSegment = 4
			all := livedIn(t, s, 1, 6)
			must(t, s.Flush())
			s.disk = f.disk()
			made, err := s.Seal([]uint32{6, 6}, tokensOf)
			s.disk = Disk{}
			readsAll(t, s, all)
			if n < k {
				if must(t, err); k < 20 || made != 2 {
					t.Fatalf("only %d changes, %d segments: this shows nothing", k, made)
				}
				must(t, s.Close())
				break
			}
			if err != nil && !errors.Is(err, errno) {
				t.Fatalf("change %d: %v", k, err)
			}
			if _, err = s.Seal([]uint32{6, 6}, tokensOf); err != nil || len(names(t, dir, segmentsDir)) != 2 || len(names(t, dir, tmpDir)) != 0 {
				t.Fatalf("change %d: afterwards %v, files %v and %v", k, err, names(t, dir, segmentsDir), names(t, dir, tmpDir))
			}
			readsAll(t, s, all)
			must(t, s.Close())
			s = openTest(t, dir)
			readsAll(t, s, all)
			must(t, s.Close())
		}
	}
}

// While a slow disk takes a segment, the store is used. What comes and goes then is not lost.
func TestSealOnASlowDisk(t *testing.T) {
	dir := t.TempDir()
	s := sealing(t, dir)
	all := livedIn(t, s, 1, 6)
	late, again := makeDelta(9, 0, 2), all[1]
	must(t, s.Flush())
	wrote := 0
	s.disk = Disk{Before: func(op Op) error {
		if op.Kind != OpWrite || !bytes.HasPrefix(op.Data, []byte(segmentMagic)) {
			return nil
		}
		if wrote++; wrote > 1 {
			return nil
		}
		readsAll(t, s, all)
		return errors.Join(late.put(s), s.DropPayload(again.id))
	}}
	made, err := s.Seal([]uint32{6, 6}, tokensOf)
	if must(t, err); made != 2 {
		t.Errorf("%d segments", made)
	}
	if _, held := s.Has(again.id); held {
		t.Error("a payload that was dropped is back")
	}
	if _, err := s.Payload(late.id); err != nil {
		t.Errorf("a delta that came late: %v", err)
	}
	checkHeld(t, s)
}

// A record that changes while it goes into a segment stays in the index.
func TestSealWhatChanges(t *testing.T) {
	dir := t.TempDir()
	s := sealing(t, dir)
	livedIn(t, s, 1, 6)
	must(t, s.Flush())
	s.disk = Disk{Before: func(op Op) error {
		if op.Kind == OpWrite {
			return s.PutRound(0, 3, Round{Tokens: 77})
		}
		return nil
	}}
	made, err := s.Seal([]uint32{6}, tokensOf)
	if must(t, err); made != 0 || len(names(t, dir, segmentsDir)) != 0 || len(names(t, dir, tmpDir)) != 0 {
		t.Errorf("%d segments, files %v", made, names(t, dir, segmentsDir))
	}
	if r, err := s.Round(0, 3); err != nil || r.Tokens != 77 {
		t.Errorf("round 3 is %+v, %v", r, err)
	}
}

// A segment that is torn, spoilt or gone is said to be, with what to do; then the
// store goes on without it.
func TestDamagedSegment(t *testing.T) {
	for name, harm := range map[string]func(t *testing.T, path string){
		"spoilt": damage,
		"torn":   func(t *testing.T, path string) { must(t, os.Truncate(path, 200)) },
		"empty":  func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) },
		"gone":   func(t *testing.T, path string) { must(t, os.Remove(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			s := sealing(t, dir)
			all := livedIn(t, s, 1, 12)
			_, err := s.Seal([]uint32{8, 4}, tokensOf)
			must(t, err, s.Close())
			bad := filepath.Join(dir, segmentsDir, "000", "00000002")
			harm(t, bad)

			s = sealing(t, dir)
			err = s.Rounds(0, 1, MaxRound, func(uint32, Round) error { return nil })
			wantErr(t, err, ErrCorrupt, bad, "fragment 0 rounds 5 to 8", "atoll doctor "+dir+" --fix")
			_, err = s.Payload(all[4*5].id)
			wantErr(t, err, ErrCorrupt, bad)
			must(t, s.Rounds(0, 1, 4, func(uint32, Round) error { return nil }), s.Rounds(0, 9, 12, func(uint32, Round) error { return nil }))
			whole, damaged, err := s.CheckSegments()
			if must(t, err); whole != 2 || len(damaged) != 1 {
				t.Errorf("%d whole, damaged: %v", whole, damaged)
			}

			aside, moved, err := s.SetSegmentsAside(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
			if must(t, err); moved != 1 || aside != filepath.Join(dir, "aside-20260102-030405", segmentsDir) {
				t.Errorf("moved %d to %s", moved, aside)
			}
			if left := names(t, aside, "."); len(left) != 1 != (name == "gone") {
				t.Errorf("aside: %v", left)
			}
			var rounds []uint32
			must(t, s.Rounds(0, 1, MaxRound, func(round uint32, _ Round) error { rounds = append(rounds, round); return nil }))
			if fmt.Sprint(rounds) != "[1 2 3 4 9 10 11 12]" {
				t.Errorf("rounds %v", rounds)
			}
			checkHeld(t, s)
			must(t, s.Close())
			s = sealing(t, dir)
			checkHeld(t, s)
			_, err = s.Seal([]uint32{12, 12}, tokensOf)
			must(t, err, s.Close(), Check(dir))
		})
	}
}

// A node whose own deltas are in a segment that was set aside goes on: it has the others, signs none of these rounds again,
// and can forget all.
func TestOwnInASegmentSetAside(t *testing.T) {
	dir := t.TempDir()
	s := sealing(t, dir)
	var all []delta
	for round := uint32(1); round <= 8; round++ {
		d := makeDelta(7, 0, round)
		must(t, s.PutOwn(d.id, d.h, d.payload, OwnMeta{Seq: uint64(round)}), s.PutRound(0, round, Round{Folded: []wire.Digest{d.id}}))
		all = append(all, d)
	}
	_, err := s.Seal([]uint32{4, 0}, tokensOf)
	must(t, err, s.Close())
	damage(t, filepath.Join(dir, segmentsDir, "000", "00000001"))
	s = sealing(t, dir)
	_, err = s.Own()
	wantErr(t, err, ErrCorrupt, "atoll doctor "+dir+" --fix")
	_, moved, err := s.SetSegmentsAside(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	if must(t, err); moved != 1 {
		t.Fatalf("%d segments set aside", moved)
	}
	own, err := s.Own()
	if must(t, err); len(own) != 4 || own[0].ID != all[4].id || own[3].Seq != 8 {
		t.Errorf("own deltas %+v", own)
	}
	again := makeDelta(8, 0, 3)
	wantErr(t, s.PutOwn(again.id, again.h, again.payload, OwnMeta{Seq: 9}), ErrMark)
	for _, d := range all {
		must(t, s.ForgetOwn(d.id))
	}
	if own, err = s.Own(); err != nil || len(own) > 0 {
		t.Errorf("%d own deltas, %v", len(own), err)
	}
	next := makeDelta(7, 0, 9)
	must(t, s.PutOwn(next.id, next.h, next.payload, OwnMeta{Seq: 9}), s.Close(), Check(dir))
}

// checkHeld compares the sums of what payloads take with the headers.
func checkHeld(t interface{ Fatalf(string, ...any) }, s *Store) {
	var sum int64
	rounds := map[string]bool{}
	for fragment := range 3 {
		err := s.Held(fragment, 0, MaxRound, func(_ wire.Digest, h wire.SignedHeader) error {
			sum += int64(h.Header.Size)
			rounds[string(roundKey(fragment, h.Header.Round))] = true
			return nil
		})
		if err != nil {
			t.Fatalf("%v", err)
		}
	}
	kept, err := s.Retain(0, nil, nil)
	entries := map[string]bool{}
	if err == nil {
		err = s.view(func(tx *bbolt.Tx) error {
			return tx.Bucket(bucketHeld).ForEach(func(k, _ []byte) error {
				entries[string(k[:roundKeySize])] = true
				return nil
			})
		})
	}
	if err != nil || kept.Payloads != sum || len(entries) != len(rounds) {
		t.Fatalf("payloads of %d rounds take %d, %v, and the headers say %d rounds and %d", len(entries), kept.Payloads, err, len(rounds), sum)
	}
}
