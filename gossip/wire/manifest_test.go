package wire

import (
	"bytes"
	"testing"

	"pgregory.net/rapid"
)

func TestManifestOfAnotherRunOrKindIsRefused(t *testing.T) {
	b := EncodeManifest(testKey(1), testRun, testManifest())
	_, err := OpenManifest(otherRun, b)
	wantErr(t, err, ErrSignature)
	_, err = OpenManifest(testRun, seal(nil, testKey(1), domainHeartbeat, testRun, testManifest()))
	wantErr(t, err, ErrSignature)
	_, err = OpenManifest(testRun, seal(nil, testKey(2), domainManifest, testRun, testManifest()))
	wantErr(t, err, ErrSignature)
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
