package pages

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.etcd.io/bbolt"
	"pgregory.net/rapid"
)

// must ends a test at an error.
func must(t testing.TB, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

// grown is an index with all that bbolt's format has: branches, buckets inline
// and not, elements longer than a page, free pages.
func grown(t testing.TB, entries int, seed uint64) (index []byte, pageSize int) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "index.db")
	db, err := bbolt.Open(path, 0o600, &bbolt.Options{NoSync: true})
	must(t, err)
	rng := rand.New(rand.NewPCG(seed, 0))
	must(t, db.Update(func(tx *bbolt.Tx) error {
		small, err := tx.CreateBucket([]byte("small"))
		must(t, err)
		large, err := tx.CreateBucket([]byte("large"))
		must(t, err, small.Put([]byte("k"), []byte("v")))
		for range entries {
			must(t, large.Put(fmt.Appendf(nil, "%032x", rng.Uint64()), make([]byte, rng.IntN(300))))
		}
		return large.Put([]byte("long"), make([]byte, 3*os.Getpagesize()))
	}))
	must(t, db.Update(func(tx *bbolt.Tx) error {
		c := tx.Bucket([]byte("large")).Cursor()
		for k, _ := c.First(); k != nil; k, _ = c.Next() {
			if rng.IntN(3) == 0 {
				must(t, c.Delete())
			}
		}
		return nil
	}))
	pageSize = db.Info().PageSize
	must(t, db.Close())
	index, err = os.ReadFile(path)
	must(t, err)
	return index, pageSize
}

// Whatever bbolt writes passes.
func TestSoundPages(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		index, pageSize := grown(t, rapid.IntRange(0, 3000).Draw(rt, "entries"), rapid.Uint64().Draw(rt, "seed"))
		if err := Check(bytes.NewReader(index), pageSize, int64(len(index))); err != nil {
			rt.Fatal(err)
		}
	})
}

// Each kind of damage is found, and said.
func TestSpoiltPages(t *testing.T) {
	index, pageSize := grown(t, 2000, 1)
	head, err := (&pages{file: bytes.NewReader(index), pageSize: pageSize}).head()
	must(t, err)
	free := int(native.Uint64(head[32:])) * pageSize
	branch, leaf := branchOf(t, index, pageSize)
	put16, put32, put64 := native.PutUint16, native.PutUint32, native.PutUint64
	for name, spoil := range map[string]func(b []byte) []byte{
		"does not match its checksum": func(b []byte) []byte { b[pageHeader+20]++; return b },
		"bytes, ":                     func(b []byte) []byte { return b[:len(b)-len(b)/4] },
		"says that it is":             func(b []byte) []byte { put64(b[leaf:], 1); return b },
		"of kind 0x3":                 func(b []byte) []byte { put16(b[leaf+8:], 3); return b },
		"goes on for":                 func(b []byte) []byte { put32(b[leaf+12:], 1<<31); return b },
		"elements and room":           func(b []byte) []byte { put16(b[leaf+10:], 1<<15); return b },
		"it ends at":                  func(b []byte) []byte { put32(b[leaf+pageHeader+8:], 1<<27); return b },
		"is out of order":             func(b []byte) []byte { put32(b[leaf+pageHeader+8:], 0); return b },
		"beyond the last":             func(b []byte) []byte { put64(b[branch+pageHeader+8:], 1<<40); return b },
		"nothing below":               func(b []byte) []byte { put16(b[branch+10:], 0); return b },
		"in two places": func(b []byte) []byte {
			copy(b[branch+pageHeader+elementSize+8:], b[branch+pageHeader+8:][:8])
			return b
		},
		"neither used nor free":  func(b []byte) []byte { put16(b[free+10:], native.Uint16(b[free+10:])-1); return b },
		"free pages and has":     func(b []byte) []byte { put16(b[free+10:], manyFree-1); return b },
		"not the free list":      func(b []byte) []byte { put16(b[free+8:], leafPage); return b },
		"bucket \"small\": what": func(b []byte) []byte { spoilInline(t, b); return b },
	} {
		spoilt := spoil(bytes.Clone(index))
		err := Check(bytes.NewReader(spoilt), pageSize, int64(len(spoilt)))
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error is %v, want one that says %q", err, name)
		}
	}
}

// branchOf is the place of a branch that is in use and of a leaf below it.
func branchOf(t *testing.T, index []byte, pageSize int) (branch, leaf int) {
	t.Helper()
	p := &pages{file: bytes.NewReader(index), pageSize: pageSize}
	head, err := p.head()
	must(t, err)
	p.used = make([]bool, native.Uint64(head[40:]))
	must(t, p.walk(native.Uint64(head[16:]), nil, nil))
	for id, used := range p.used {
		if at := id * pageSize; used && native.Uint64(index[at:]) == uint64(id) && native.Uint16(index[at+8:]) == branchPage {
			return at, int(native.Uint64(index[at+pageHeader+8:])) * pageSize
		}
	}
	t.Fatal("no branch")
	return 0, 0
}

// spoilInline changes the kind of the page inside the bucket "small".
func spoilInline(t *testing.T, index []byte) {
	t.Helper()
	at := bytes.LastIndex(index, append([]byte("small"), make([]byte, 8)...))
	if at < 0 {
		t.Fatal("no inline bucket")
	}
	native.PutUint16(index[at+len("small")+bucketSize+8:], branchPage)
}

// FuzzCheck changes words of an index. What passes, bbolt's own check finds
// sound as well, and it comes to its end.
func FuzzCheck(f *testing.F) {
	index, pageSize := grown(f, 300, 2)
	f.Add([]byte{})
	f.Add(binary.BigEndian.AppendUint64(nil, 0x0000_2010_0000_0007))
	path := filepath.Join(f.TempDir(), "index.db")
	f.Fuzz(func(t *testing.T, edits []byte) {
		spoilt := bytes.Clone(index)
		for ; len(edits) >= 8; edits = edits[8:] {
			at := binary.BigEndian.Uint32(edits) % uint32(len(spoilt)-4)
			native.PutUint32(spoilt[at:], native.Uint32(spoilt[at:])^binary.BigEndian.Uint32(edits[4:]))
		}
		if Check(bytes.NewReader(spoilt), pageSize, int64(len(spoilt))) != nil {
			return
		}
		must(t, os.WriteFile(path, spoilt, 0o600))
		db, err := bbolt.Open(path, 0o600, &bbolt.Options{ReadOnly: true, PreLoadFreelist: true})
		must(t, err)
		must(t, db.View(func(tx *bbolt.Tx) error {
			for err := range tx.Check() {
				t.Error(err)
			}
			return nil
		}), db.Close())
	})
}
