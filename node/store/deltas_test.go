package store

import (
	"bytes"
	"errors"
	"os"
	"slices"
	"sync"
	"syscall"
	"testing"

	"atoll/gossip/wire"
)

func TestPutRefusesWhatDoesNotFit(t *testing.T) {
	s := openTest(t, t.TempDir())
	d, other := makeDelta(1, 0, 1), makeDelta(2, 0, 1)
	wantErr(t, s.PutDelta(d.id, d.h, other.payload), ErrCorrupt, d.id.String())
	for _, err := range []error{
		s.PutDelta(other.id, d.h, d.payload),
		s.PutHeader(other.id, d.h),
		s.PutOwn(other.id, d.h, d.payload, OwnMeta{}),
		s.PutHeader(d.id, wire.SignedHeader{}),
		s.PutEquivocation(d.h, wire.SignedHeader{}),
		s.PutEquivocation(wire.SignedHeader{}, d.h),
	} {
		if err == nil {
			t.Error("put what does not belong together")
		}
	}
	wantErr(t, s.PutChunk(d.id, d.payload), ErrCorrupt, d.id.String())
	if header, _ := s.Has(d.id); header {
		t.Error("a refused delta is in the index")
	}
}

func TestDamagedPayloadNamesTheDelta(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	d := makeDelta(1, 6, 17)
	path := s.path(payloadFile(d.id, d.h.Header))
	names := []string{d.id.String(), d.h.Header.Author.String(), "fragment 6", "round 17"}
	for name, harm := range map[string]func(){
		"flipped": func() { damage(t, path) },
		"cut":     func() { must(t, os.Truncate(path, 10)) },
		"emptied": func() { must(t, os.Truncate(path, 0)) },
		"gone":    func() { must(t, os.Remove(path)) },
	} {
		t.Run(name, func(t *testing.T) {
			must(t, d.put(s))
			harm()
			_, err := s.Payload(d.id)
			wantErr(t, err, ErrCorrupt, names...)
			must(t, s.DropPayload(d.id), d.put(s), s.Flush())
			got, err := s.Payload(d.id)
			must(t, err, s.DropPayload(d.id))
			if !bytes.Equal(got, d.payload) {
				t.Error("fetched again, it is not what it was")
			}
		})
	}
}

// A delta that is forgotten leaves neither a header nor a file, and can come again.
func TestForgetDelta(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	d, other := makeDelta(1, 0, 1), makeDelta(2, 0, 1)
	must(t, s.ForgetDelta(d.id), d.put(s), other.put(s), s.Flush(), s.ForgetDelta(d.id), s.ForgetDelta(d.id), s.Flush())
	if header, payload := s.Has(d.id); header || payload {
		t.Errorf("header %v, payload %v", header, payload)
	}
	if _, err := os.Stat(s.path(payloadFile(d.id, d.h.Header))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("its file: %v", err)
	}
	must(t, s.PutHeader(d.id, d.h), s.ForgetDelta(d.id))
	if header, _ := s.Has(d.id); header {
		t.Error("a header alone stays")
	}
	must(t, d.put(s), s.Flush(), s.Close())
	s = openTest(t, dir)
	for _, id := range []wire.Digest{d.id, other.id} {
		if _, err := s.Payload(id); err != nil {
			t.Error(err)
		}
	}
}

func TestDropPayloadFreesTheDisk(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	d := makeDelta(1, 0, 1)
	must(t, d.put(s), s.Flush(), s.DropPayload(d.id), s.DropPayload(d.id))
	if _, err := os.Stat(s.path(payloadFile(d.id, d.h.Header))); err != nil {
		t.Errorf("the file went before the commit: %v", err)
	}
	must(t, s.Flush())
	if _, err := os.Stat(s.path(payloadFile(d.id, d.h.Header))); !os.IsNotExist(err) {
		t.Errorf("the file is still there: %v", err)
	}
	if header, payload := s.Has(d.id); !header || payload {
		t.Errorf("has %v %v, want the header only", header, payload)
	}
}

func TestHeadersByRoundAndAuthor(t *testing.T) {
	s := openTest(t, t.TempDir())
	var want []wire.SignedHeader
	for round := uint32(1); round <= 4; round++ {
		for n := byte(1); n <= 3; n++ {
			for fragment := range 2 {
				d := makeDelta(n, fragment, round)
				must(t, d.put(s))
				if fragment == 1 && round >= 2 && round <= 3 {
					want = append(want, d.h)
				}
			}
		}
	}
	slices.SortFunc(want, func(a, b wire.SignedHeader) int {
		if a.Header.Round != b.Header.Round {
			return int(a.Header.Round) - int(b.Header.Round)
		}
		return a.Header.Author.Compare(b.Header.Author)
	})
	var got []wire.SignedHeader
	must(t, s.Headers(1, 2, 3, func(id wire.Digest, h wire.SignedHeader) error {
		got = append(got, h)
		_, err := s.Payload(id) // may use the store
		return err
	}))
	if !slices.Equal(got, want) {
		t.Errorf("got %d headers, want %d, in order", len(got), len(want))
	}
}

// More entries than a page, and the largest round there is.
func TestLongScan(t *testing.T) {
	s := openTest(t, t.TempDir())
	const n = 2*scanPage + 1
	for round := uint32(1); round < n; round++ {
		must(t, s.PutRound(3, round, Round{}))
	}
	must(t, s.PutRound(3, 1<<32-1, Round{}), s.PutRound(4, 1, Round{}))
	count := 0
	must(t, s.Rounds(3, 1, 1<<32-1, func(round uint32, _ Round) error {
		count++
		if int(round) != count && count < n {
			t.Fatalf("round %d came as number %d", round, count)
		}
		return nil
	}))
	if count != n {
		t.Errorf("%d rounds, want %d", count, n)
	}
}

func TestOwnAndMark(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	late, early := makeDelta(1, 0, 8), makeDelta(1, 1, 3)
	must(t, early.putOwn(s, 1), late.putOwn(s, 2))
	kill(t, s)

	s = openTest(t, dir)
	for round := uint32(1); round <= 8; round += 7 {
		d := deltaOf(1, 0, round, []byte("another"))
		wantErr(t, d.putOwn(s, 3), ErrMark, "mark is at 8", "fragment 0")
		if header, _ := s.Has(d.id); header {
			t.Error("a refused delta is in the index")
		}
	}
	own, err := s.Own()
	must(t, err)
	want := []OwnDelta{{early.id, early.h, OwnMeta{1}}, {late.id, late.h, OwnMeta{2}}}
	if !slices.Equal(own, want) {
		t.Errorf("own deltas are %v", own)
	}
	must(t, s.ForgetOwn(early.id), s.ForgetOwn(early.id))
	own, err = s.Own()
	must(t, err)
	if !slices.Equal(own, want[1:]) {
		t.Errorf("after forgetting, own deltas are %v", own)
	}
	wantErr(t, early.putOwn(s, 4), ErrMark)
	next := makeDelta(1, 0, 9)
	must(t, next.putOwn(s, 4))
}

// A mark that could not be committed is there before anything put later: a key
// must not count as known without it.
func TestRaiseMarkOnAFullDisk(t *testing.T) {
	dir := t.TempDir()
	full := false
	disk := Disk{Before: func(op Op) error {
		if full && op.Kind == OpCommit {
			return syscall.ENOSPC
		}
		return nil
	}}
	s, err := disk.Open(dir, testRun)
	must(t, err)
	full = true
	wantErr(t, s.RaiseMark(2, 40), syscall.ENOSPC)
	must(t, s.Put("marks", []byte{1}))
	wantErr(t, makeDelta(1, 2, 40).putOwn(s, 1), ErrMark)
	full = false
	must(t, s.Flush(), s.Close())
	s = openTest(t, dir)
	_, known := s.Get("marks")
	mark, err := s.Mark(2)
	must(t, known, err)
	if mark != 40 {
		t.Errorf("mark is %d, want 40", mark)
	}
}

// Of many signings of one round at once, one succeeds.
func TestMarkUnderConcurrency(t *testing.T) {
	s := openTest(t, t.TempDir())
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for i := range errs {
		wg.Go(func() { errs[i] = deltaOf(1, 0, 5, []byte{byte(i)}).putOwn(s, uint64(i)) })
	}
	wg.Wait()
	succeeded := 0
	for _, err := range errs {
		if err == nil {
			succeeded++
		} else {
			wantErr(t, err, ErrMark)
		}
	}
	if succeeded != 1 {
		t.Errorf("%d deltas were signed for one round", succeeded)
	}
}
