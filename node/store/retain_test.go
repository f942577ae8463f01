package store

import (
	"testing"

	"atoll/gossip/wire"
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
	must(t, s.PutBase(0, 4, make([]byte, 50)))
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
