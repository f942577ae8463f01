package store

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"atoll/gossip/wire"

	"go.etcd.io/bbolt"
)

// asBefore makes a closed folder one of the format before.
func asBefore(t *testing.T, dir string) {
	t.Helper()
	s := openTest(t, dir)
	must(t, s.update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketHeld, bucketUsage, bucketSegments, bucketAuthors} {
			if err := tx.DeleteBucket(name); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketFolder).Put([]byte("format"), []byte(formatBefore))
	}), s.Close())
	for _, name := range names(t, dir, deltasDir) {
		must(t, os.Rename(filepath.Join(dir, deltasDir, name), filepath.Join(dir, deltasDir, filepath.Base(name))))
	}
	must(t, os.RemoveAll(filepath.Join(dir, deltasDir, "000")), os.RemoveAll(filepath.Join(dir, deltasDir, "001")), os.Remove(filepath.Join(dir, segmentsDir)))
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
	for _, d := range own {
		_, err := s.Payload(d.id)
		must(t, err)
	}
	must(t, s.Close())

	must(t, os.WriteFile(filepath.Join(dir, deltasDir, hexName(wire.Digest{9})), []byte("litter"), 0o600))
	s = openTest(t, dir)
	checkHeld(t, s)
	files := names(t, dir, deltasDir)
	for _, name := range files {
		if strings.Count(name, "/") != 2 {
			t.Errorf("payload at %s", name)
		}
	}
	if len(files) != 80 {
		t.Errorf("%d payloads, want 80", len(files))
	}
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

// Whatever cuts the change of an old folder off, the next start ends it, and nothing durable is
// lost.
func TestUpgradeThatIsCutOff(t *testing.T) {
	for _, dark := range []bool{false, true} {
		for k := 1; ; k++ {
			dir := t.TempDir()
			s := openTest(t, dir)
			own := []delta{makeDelta(1, 0, 1), makeDelta(1, 1, 70)}
			for i, d := range own {
				must(t, d.putOwn(s, uint64(i)))
			}
			must(t, s.Close())
			asBefore(t, dir)
			f := newFaulty(die(k, true))
			s, err := f.disk().Open(dir, testRun)
			if err == nil {
				if must(t, s.Close()); k < 12 {
					t.Fatalf("only %d changes: this shows nothing", k)
				}
				break
			}
			if !errors.Is(err, errDead) {
				t.Fatalf("point %d: %v", k, err)
			}
			if dark {
				f.cutPower(t)
			}
			s = openTest(t, dir)
			for _, d := range own {
				if _, err := s.Payload(d.id); err != nil {
					t.Fatalf("point %d: %v", k, err)
				}
			}
			if files := names(t, dir, deltasDir); len(files) != 2 || strings.Count(files[0], "/") != 2 {
				t.Fatalf("point %d: files %v", k, files)
			}
			must(t, s.Close())
		}
	}
}
