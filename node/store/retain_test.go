package store

import (
	"testing"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// Payloads of rounds that may go are dropped oldest first, until what is left
// fits; headers stay.
func TestRetain(t *testing.T) {
	dir := t.TempDir()
	s := openTest(t, dir)
	var all []delta
	for round := uint32(1); round <= 6; round++ {
		for fragment := range 2 {
			d := deltaOf(2, fragment, round, make([]byte, 100))
			must(t, d.put(s))
			all = append(all, d)
		}
	}
	must(t, s.PutBase(0, 4, make(encoded, 50)))
	check := func(keep int64, limit []uint32, want Kept) {
		t.Helper()
		if got, err := s.Retain(keep, limit, map[wire.Digest]bool{all[5].id: true}); err != nil || got != want {
			t.Errorf("keep %d up to %v: %+v, %v, want %+v", keep, limit, got, err, want)
		}
	}
	check(0, []uint32{6, 6}, Kept{Payloads: 1200, Bases: 50})
	check(1250, []uint32{6, 6}, Kept{Payloads: 1200, Bases: 50})
	check(1000, []uint32{3, 2}, Kept{Payloads: 900, Bases: 50, Dropped: 3})
	check(1, []uint32{3, 2}, Kept{Payloads: 700, Bases: 50, Dropped: 2}) // no more may go
	for _, d := range all {
		limit := []uint32{3, 2}[d.h.Header.Fragment]
		if header, payload := s.Has(d.id); !header || payload != (d.h.Header.Round > limit) {
			t.Errorf("fragment %d round %d: header %v, payload %v", d.h.Header.Fragment, d.h.Header.Round, header, payload)
		}
	}
	must(t, s.Flush())
	if n := len(names(t, dir, deltasDir)); n != 7 {
		t.Errorf("%d files, want 7", n)
	}
}

// Retention reads no header of what stays, however much that is.
func TestRetainReadsNothingOfWhatStays(t *testing.T) {
	s := openTest(t, t.TempDir())
	for round := uint32(1); round <= 9; round++ {
		must(t, makeDelta(2, 0, round).put(s), makeDelta(3, 1, round).put(s))
	}
	stays := makeDelta(2, 0, 5)
	must(t, s.update(func(tx *bbolt.Tx) error {
		prefix := append(roundKey(0, 5), stays.h.Header.Author[:]...)
		return entriesOf(tx, bucketHeaders).Put(append(prefix, stays.id[:]...), nil)
	}))
	kept, err := s.Retain(1, []uint32{4, 9}, nil)
	must(t, err)
	if kept.Dropped != 4+9 {
		t.Errorf("%+v, want 13 payloads dropped", kept)
	}
	if _, err := s.Retain(1, []uint32{5, 9}, nil); err == nil {
		t.Error("an entry that is empty was read without an error: this test shows nothing")
	}
}
