package wire

import (
	"bytes"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

func TestManifestRoundTrip(t *testing.T) {
	want := testManifest()
	got, err := OpenManifest(testRun, EncodeManifest(testKey(1), testRun, want))
	ok(t, err)
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v came back as %v", want, got)
	}
}

func TestManifestOfAnotherRunOrKindIsRefused(t *testing.T) {
	b := EncodeManifest(testKey(1), testRun, testManifest())
	_, err := OpenManifest(otherRun, b)
	wantErr(t, err, ErrSignature)
	_, err = OpenManifest(testRun, seal(nil, testKey(1), domainBeat, testRun, testManifest()))
	wantErr(t, err, ErrSignature)
	_, err = OpenManifest(testRun, seal(nil, testKey(2), domainManifest, testRun, testManifest()))
	wantErr(t, err, ErrSignature)
}

func TestManifestTampered(t *testing.T) {
	b := EncodeManifest(testKey(1), testRun, testManifest())
	for i := range 8 * len(b) {
		if _, err := OpenManifest(testRun, flipped(b, i)); err == nil {
			t.Errorf("accepted with bit %d inverted", i)
		}
	}
	for n := range b {
		if _, err := OpenManifest(testRun, b[:n]); err == nil {
			t.Errorf("accepted %d of %d bytes", n, len(b))
		}
	}
}

func TestManifestValidate(t *testing.T) {
	for name, change := range map[string]func(*Manifest){
		"no fragments":       func(m *Manifest) { m.Fragments = nil },
		"too many fragments": func(m *Manifest) { m.Fragments = make([]FragmentManifest, MaxFragments+1) },
		"closed below round": func(m *Manifest) { m.Fragments[0].Closed = 6 },
		"no tip":             func(m *Manifest) { m.Fragments[0].Size, m.Fragments[0].Chunks = 0, nil },
		"a chunk too few":    func(m *Manifest) { m.Fragments[0].Size = 2*ChunkSize + 1 },
		"a chunk too many":   func(m *Manifest) { m.Fragments[0].Size = ChunkSize },
		"too large":          func(m *Manifest) { m.Fragments[0].Size = MaxChunks*ChunkSize + 1 },
		"size overflows":     func(m *Manifest) { m.Fragments[0].Size = 1<<64 - 1 },
	} {
		m := testManifest()
		change(&m)
		if _, err := OpenManifest(testRun, EncodeManifest(testKey(1), testRun, m)); err == nil {
			t.Errorf("%s: accepted", name)
		} else {
			wantErr(t, err, ErrInvalid)
		}
	}
	_, err := OpenManifest(testRun, make([]byte, MaxManifest+1))
	wantErr(t, err, ErrSize)
}

func TestChunksCoverTheTip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.IntRange(0, 3*ChunkSize+1).Draw(t, "size")
		tip := bytes.Repeat([]byte{5}, size)
		f := FragmentManifest{Round: 1, Closed: 1, Size: uint64(size), Chunks: ChunkDigests(tip)}
		if err := f.validate(); err != nil && size > 0 {
			t.Fatal(err)
		}
		rest := tip
		for i, d := range f.Chunks {
			n := f.ChunkLen(i)
			if Sum(rest[:n]) != d {
				t.Fatalf("chunk %d of %d bytes has another digest", i, n)
			}
			rest = rest[n:]
		}
		if len(rest) != 0 {
			t.Fatalf("%d bytes in no chunk", len(rest))
		}
	})
}
