package store

import (
	"bytes"
	"crypto/ed25519"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

var testRun = wire.RunID{1, 2, 3}

func testKey(n byte) ed25519.PrivateKey {
	return ed25519.NewKeyFromSeed(bytes.Repeat([]byte{n}, ed25519.SeedSize))
}

// delta is a delta as a test makes it.
type delta struct {
	id      wire.Digest
	h       wire.SignedHeader
	payload []byte
}

// makeDelta makes the delta of author n; its payload follows from the arguments.
func makeDelta(n byte, fragment int, round uint32) delta {
	r := rand.New(rand.NewPCG(uint64(n)<<32|uint64(fragment), uint64(round)))
	payload := make([]byte, 100+r.IntN(200))
	for i := range payload {
		payload[i] = byte(r.Uint32())
	}
	return deltaOf(n, fragment, round, payload)
}

func deltaOf(n byte, fragment int, round uint32, payload []byte) delta {
	h := wire.SignHeader(testKey(n), testRun, wire.Header{
		Fragment: uint16(fragment), Round: round, Base: round - 1, Steps: 24, Tokens: 24 * 512,
		Codec: 4, Size: uint32(len(payload)), Payload: wire.Sum(payload),
	})
	return delta{h.Header.ID(testRun), h, payload}
}

func openTest(t *testing.T, dir string) *Store {
	t.Helper()
	s, err := Open(dir, testRun)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

// kill ends a store as the death of its process would: what was not committed
// is gone.
func kill(t interface{ Fatal(...any) }, s *Store) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := errors.Join(s.tx.Rollback(), s.db.Close()); err != nil {
		t.Fatal(err)
	}
	s.tx, s.failed = nil, ErrClosed
}

func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// mustDo is must for tests of rapid.
func mustDo(t *rapid.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// tempDir is a folder that goes with a test of rapid.
func tempDir(t *rapid.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "atoll-store-")
	mustDo(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

// wantErr fails unless err is target and its text holds each of the words.
func wantErr(t *testing.T, err, target error, words ...string) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("error is %v, want %v", err, target)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("error %q does not name %q", err, w)
		}
	}
}

func (d delta) put(s *Store) error { return s.PutDelta(d.id, d.h, d.payload) }

func (d delta) putOwn(s *Store, seq uint64) error {
	return s.PutOwn(d.id, d.h, d.payload, OwnMeta{Seq: seq})
}

// damage flips a bit in the middle of a file.
func damage(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	b[len(b)/2] ^= 1
	must(t, os.WriteFile(path, b, 0o600))
}

func TestReopenKeepsAll(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	d, own, bare := makeDelta(1, 0, 5), makeDelta(2, 3, 7), makeDelta(3, 0, 4)
	round := Round{Chain: wire.Digest{1}, State: wire.Digest{2}, Folded: []wire.Digest{d.id}}
	must(t, d.put(s), own.putOwn(s, 9), s.PutHeader(bare.id, bare.h), s.PutRound(0, 5, round),
		s.PutBase(0, 5, encoded("tip")), s.Put("k", []byte("v")), s.PutEquivocation(d.h, own.h),
		s.PutCheckpoint(strings.NewReader("adam")), s.PutChunk(wire.Sum([]byte("c")), []byte("c")), s.Close())

	s = openTest(t, dir)
	for _, want := range []delta{d, own} {
		got, err := s.Payload(want.id)
		must(t, err)
		h, err := s.Header(want.id)
		must(t, err)
		if !bytes.Equal(got, want.payload) || h != want.h {
			t.Errorf("delta %v came back otherwise", want.id)
		}
	}
	if header, payload := s.Has(bare.id); !header || payload {
		t.Errorf("bare header: %v, %v", header, payload)
	}
	_, err := s.Payload(bare.id)
	wantErr(t, err, ErrNotFound, bare.id.String())
	got, err := s.Round(0, 5)
	must(t, err)
	if got.Chain != round.Chain || got.State != round.State || !slices.Equal(got.Folded, round.Folded) {
		t.Errorf("round came back as %v", got)
	}
	base, err := s.Base(0, 5)
	must(t, err)
	value, err := s.Get("k")
	must(t, err)
	wantCheckpoint(t, s, "adam")
	chunk, err := s.Chunk(wire.Sum([]byte("c")))
	must(t, err)
	if all := fmt.Sprintf("%s %s %s", base, value, chunk); all != "tip v c" {
		t.Errorf("came back: %s", all)
	}
	equivocation, err := s.Equivocation()
	must(t, err)
	if len(equivocation) != 1 || equivocation[0] != (wire.Equivocation{A: d.h, B: own.h}) {
		t.Errorf("equivocation proof: %v", equivocation)
	}
	if s.Run() != testRun || s.Dir() != dir {
		t.Errorf("run %v, dir %s", s.Run(), s.Dir())
	}
}

func TestAbsentThings(t *testing.T) {
	s := openTest(t, t.TempDir())
	id := wire.Digest{7}
	for name, get := range map[string]func() error{
		"payload":    func() error { _, err := s.Payload(id); return err },
		"header":     func() error { _, err := s.Header(id); return err },
		"drop":       func() error { return s.DropPayload(id) },
		"forget":     func() error { return s.ForgetOwn(id) },
		"round":      func() error { _, err := s.Round(1, 1); return err },
		"base":       func() error { _, err := s.Base(1, 1); return err },
		"chunk":      func() error { _, err := s.Chunk(id); return err },
		"checkpoint": func() error { _, err := s.Checkpoint(); return err },
		"value":      func() error { _, err := s.Get("x"); return err },
		"genesis":    func() error { _, err := LoadGenesis(s.Dir()); return err },
	} {
		if err := get(); !errors.Is(err, ErrNotFound) {
			t.Errorf("%s: %v", name, err)
		}
	}
	last, err := s.LastRound(1)
	must(t, err, s.DropBase(1, 1))
	if last != 0 || s.HasChunk(id) {
		t.Errorf("last round %d, chunk %v", last, s.HasChunk(id))
	}
}

func TestFragmentsOutOfRange(t *testing.T) {
	s := openTest(t, t.TempDir())
	for _, fragment := range []int{-1, wire.MaxFragments} {
		_, markErr := s.Mark(fragment)
		_, baseErr := s.Base(fragment, 1)
		_, basesErr := s.Bases(fragment)
		_, lastErr := s.LastRound(fragment)
		errs := []error{
			markErr, baseErr, basesErr, lastErr,
			s.RaiseMark(fragment, 1), s.PutRound(fragment, 1, Round{}), s.PutBase(fragment, 1, encoded(nil)), s.DropBase(fragment, 1),
			s.Rounds(fragment, 0, 1, nil), s.Headers(fragment, 0, 1, nil), s.TruncateRounds(fragment, 1),
		}
		for i, err := range errs {
			if err == nil || !strings.Contains(err.Error(), fmt.Sprint(fragment)) {
				t.Errorf("call %d with fragment %d: %v", i, fragment, err)
			}
		}
	}
}

func TestLock(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	_, err := Open(dir, testRun)
	wantErr(t, err, ErrLocked, dir, "stop")
	_, err = OpenReadOnly(dir)
	wantErr(t, err, ErrLocked, dir, "stop")
	must(t, s.Close(), s.Close())
	openTest(t, dir)
}

func TestOtherRun(t *testing.T) {
	dir := t.TempDir()
	must(t, openTest(t, dir).Close())
	other := wire.RunID{0xab}
	_, err := Open(dir, other)
	wantErr(t, err, ErrOtherRun, dir, fmt.Sprintf("%x", testRun[:]), fmt.Sprintf("%x", other[:]))
	openTest(t, dir) // the refusal left it intact and unlocked
}

func TestReadOnly(t *testing.T) {
	dir := t.TempDir()
	_, err := OpenReadOnly(dir)
	wantErr(t, err, ErrNotFound, dir)
	s := openTest(t, dir)
	d := makeDelta(1, 0, 1)
	must(t, d.put(s), s.Close())

	a, err := OpenReadOnly(dir)
	must(t, err)
	b, err := OpenReadOnly(dir)
	must(t, err)
	if got, err := a.Payload(d.id); err != nil || !bytes.Equal(got, d.payload) || a.Run() != testRun {
		t.Errorf("payload of run %v: %v", a.Run(), err)
	}
	other := makeDelta(1, 0, 2)
	_, logErr := b.OpenStepLog()
	for _, err := range []error{
		other.put(b), other.putOwn(b, 1), b.PutRound(0, 1, Round{}), b.PutBase(0, 1, encoded(nil)), b.PutCheckpoint(strings.NewReader("")),
		b.PutChunk(wire.Sum(nil), nil), b.DropChunks(), b.DropPayload(d.id), b.RaiseMark(0, 9), logErr,
	} {
		wantErr(t, err, ErrReadOnly)
	}
	must(t, a.Close(), b.Close())
}

func TestClosed(t *testing.T) {
	s := openTest(t, t.TempDir())
	must(t, s.Close())
	_, err := s.Payload(wire.Digest{})
	wantErr(t, err, ErrClosed)
	wantErr(t, s.Put("k", nil), ErrClosed)
	wantErr(t, s.Flush(), ErrClosed)
}

func TestUnknownFormat(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	must(t, s.update(func(tx *bbolt.Tx) error { return tx.Bucket(bucketFolder).Put([]byte("format"), []byte("9")) }), s.Close())
	if _, err := Open(dir, testRun); err == nil || !strings.Contains(err.Error(), `"9"`) {
		t.Errorf("format 9: %v", err)
	}
}

func TestIndexThatIsNoIndex(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, indexFile), bytes.Repeat([]byte("x"), 1<<16), 0o600))
	if _, err := Open(dir, testRun); err == nil || !strings.Contains(err.Error(), dir) {
		t.Errorf("garbage index: %v", err)
	}
}
