package store

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
)

// Who reads by an index that was lent finds what it names, whatever is dropped meanwhile; after that it goes.
func TestLentIndex(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	d, later := makeDelta(1, 0, 1), makeDelta(1, 0, 2)
	must(t, d.put(s)) // waits for its commit
	index, done, err := s.Lend()
	must(t, err)
	must(t, s.DropPayload(d.id), later.put(s), s.Flush())
	if _, held := s.Has(d.id); held {
		t.Fatal("what is dropped is held: this test shows nothing")
	}
	lent, err := OpenLent(dir, index, done)
	must(t, err)
	if got, err := lent.Payload(d.id); err != nil || !bytes.Equal(got, d.payload) {
		t.Errorf("payload: %v", err)
	}
	if _, held := lent.Has(later.id); held {
		t.Error("it has what came later")
	}
	wantErr(t, later.put(lent), ErrReadOnly)
	must(t, lent.Close(), s.Put("key", []byte{1}), s.Flush())
	if _, err := os.Stat(s.path(payloadFile(d.id, d.h.Header))); !os.IsNotExist(err) {
		t.Errorf("after the loan the payload stays: %v", err)
	}
	if _, err := OpenLent(dir, []byte("no index"), func() {}); err == nil {
		t.Error("opens by an index that is none")
	}
	must(t, s.Close(), os.Rename(filepath.Join(dir, indexFile), filepath.Join(dir, "elsewhere")))
	if lent, err = OpenLent(dir, index, func() {}); err != nil {
		t.Fatalf("it looks at the index that the node writes: %v", err)
	}
	must(t, lent.Close())
}
