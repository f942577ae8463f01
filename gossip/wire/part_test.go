package wire

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// Each part of a blob of any size opens, and with any bit changed it does not.
func TestPartsOpenByThemselves(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		size := rapid.OneOf(rapid.IntRange(1, 5*PartSize), rapid.SampledFrom([]int{PartSize, PartSize + 1, 2 * PartSize})).Draw(t, "size")
		blob := make([]byte, size)
		for r := rand.New(rand.NewPCG(1, rapid.Uint64().Draw(t, "seed"))); len(blob) > 0 && blob[0] == 0; {
			for i := range blob {
				blob[i] = byte(r.Uint32())
			}
		}
		tree, digest, err := TreeOf(bytes.NewReader(blob), int64(size))
		if err != nil || digest != Sum(blob) {
			t.Fatalf("tree: %v, digest %v, want %v", err, digest, Sum(blob))
		}
		i := rapid.IntRange(0, PartCount(int64(size))-1).Draw(t, "part")
		b := partOf(blob, tree, i).Encode()
		p, err := OpenPart(digest, b)
		if err != nil || p.Index != i || p.Size() != int64(size) || !bytes.Equal(p.Bytes, blob[i*PartSize:][:len(p.Bytes)]) || !bytes.Equal(p.Tree, tree) {
			t.Fatalf("part %d of %d bytes: %v", i, size, err)
		}
		if _, err := OpenPart(testDigest("another"), b); err == nil {
			t.Fatal("it opens as a part of another blob")
		}
	})
}

// Nothing of a part can be changed: not its place, nor its tree, nor its bytes. A hash of the
// tree that is not above the part does not matter, so it is not changed here.
func TestChangedPartsDoNotOpen(t *testing.T) {
	blob, tree, digest := testBlob(t, 2*PartSize)
	b := partOf(blob, tree, 1).Encode()
	for at := range b[:partIndex+len(tree)+64] {
		if _, err := OpenPart(digest, flipped(b, 8*at)); err == nil {
			t.Errorf("opens with byte %d changed", at)
		}
	}
	for _, wrong := range [][]byte{nil, b[:len(b)-1], append(bytes.Clone(b), 0), b[:partIndex]} {
		if _, err := OpenPart(digest, wrong); err == nil {
			t.Errorf("opens with %d bytes of %d", len(wrong), len(b))
		}
	}
}

func TestBlobsOfOtherSizes(t *testing.T) {
	for _, size := range []int64{0, -1, MaxBlob + 1} {
		_, _, err := TreeOf(bytes.NewReader(nil), size)
		wantErr(t, err, ErrSize)
	}
	_, _, err := TreeOf(bytes.NewReader([]byte("cut off")), 100)
	wantErr(t, err, io.ErrUnexpectedEOF)
}

func TestPartSets(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		draw := func(name string) (s PartSet) {
			for _, i := range rapid.SliceOf(rapid.IntRange(0, MaxParts-1)).Draw(t, name) {
				s.Add(i)
			}
			return s
		}
		a, b := draw("a"), draw("b")
		for i := range MaxParts {
			if a.With(b).Has(i) != (a.Has(i) || b.Has(i)) || a.Without(b).Has(i) != (a.Has(i) && !b.Has(i)) || a.And(b).Has(i) != (a.Has(i) && b.Has(i)) {
				t.Fatalf("part %d of %x and %x", i, a, b)
			}
		}
		var again PartSet
		for _, i := range a.Indexes() {
			again.Add(i)
		}
		if again != a || len(a.Indexes()) != a.Len() || a.Empty() != (a.Len() == 0) {
			t.Fatalf("%x became %x", a, again)
		}
		if got, err := partSet(a.bytes()); err != nil || got != a {
			t.Fatalf("%x came back as %x, %v", a, got, err)
		}
	})
}
