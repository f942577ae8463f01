package store

import (
	"testing"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// asBefore makes a closed folder one of the format before.
func asBefore(t *testing.T, dir string) {
	t.Helper()
	s := openTest(t, dir)
	must(t, s.update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketHeld, bucketUsage, bucketAuthors} {
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketFolder).Put([]byte("format"), []byte(formatBefore))
	}), s.Close())
}

// A folder of the format before can be read as it is, and becomes one of this format
// when a node opens it.
func TestFolderOfTheFormatBefore(t *testing.T) {
	dir, own := lived(t)
	asBefore(t, dir)
	must(t, readAll(t, dir, own))
	must(t, readAll(t, dir, own)) // reading has changed nothing
	s, err := OpenReadOnly(dir)
	must(t, err)
	if _, sums, err := s.AuthorSums(0); err != nil || len(sums) != 0 {
		t.Errorf("sums of a folder of before: %v, %v", sums, err)
	}
	must(t, s.Close())

	s = openTest(t, dir)
	checkHeld(t, s)
	limit := []uint32{20, 20}
	kept, err := s.Retain(1, limit, nil)
	must(t, err)
	if kept.Dropped != 40 {
		t.Errorf("%+v, want 40 payloads of rounds up to 20 dropped", kept)
	}
	checkHeld(t, s)
	must(t, s.Close(), readAll(t, dir, own), Check(dir))
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
