package codec

import (
	"math"
	"testing"
)

// sameValues fails unless two vectors have the same bits.
func sameValues(t *testing.T, got, want []float32) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d values, want %d", len(got), len(want))
	}
	for i, w := range want {
		if math.Float32bits(got[i]) != math.Float32bits(w) {
			t.Fatalf("value %d is %v, want %v", i, got[i], w)
		}
	}
}

// valuesOf reads n values from number at on.
func valuesOf(r *Reader, at, n int) (values []float32) {
	r.Read(at, n, func(from int, v []float32) {
		if from != at+len(values) {
			panic("a piece is out of place")
		}
		values = append(values, v...)
	})
	return values
}

// Whatever way a payload is read, its values are those of Decode: in one walk, then in
// parts of segments, the last first, with memory for the streams and without.
func TestReadersAgreeWithDecode(t *testing.T) {
	for _, k := range kinds {
		for _, n := range lengths {
			b := mustEncode(t, k, bell(n, 0.01, uint64(n)))
			want := mustDecode(t, b, n)
			for _, memory := range [][]byte{nil, make([]byte, RawSize(k, n))} {
				var walked []float32
				r, err := Open(b, n, memory, func(at int, v []float32) {
					if at != len(walked) {
						t.Fatalf("%v: a piece begins at %d after %d values", k, at, len(walked))
					}
					walked = append(walked, v...)
				})
				if err != nil {
					t.Fatal(err)
				}
				sameValues(t, walked, want)
				for _, length := range []int{SegmentLen, 4 * PieceLen, PieceLen} {
					for at := (n - 1) / length * length; at >= 0 && n > 0; at -= length {
						m := min(length, n-at)
						sameValues(t, valuesOf(r, at, m), want[at:at+m])
					}
				}
			}
		}
	}
}

// A Reader with memory does not look at the payload again.
func TestReaderKeepsWhatWasRead(t *testing.T) {
	n := SegmentLen + 100
	b := mustEncode(t, Int4, bell(n, 1, 3))
	want := mustDecode(t, b, n)
	r, err := Open(b, n, make([]byte, RawSize(Int4, n)), func(int, []float32) {})
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	sameValues(t, valuesOf(r, SegmentLen, 100), want[SegmentLen:])
}

// Without memory it does, and a payload that changed under it is a mistake of the caller.
func TestReaderPanicsOnAChangedPayload(t *testing.T) {
	b := mustEncode(t, Int4, bell(1000, 1, 3))
	r, err := Open(b, 1000, nil, func(int, []float32) {})
	if err != nil {
		t.Fatal(err)
	}
	clear(b[headerSize:])
	defer func() {
		if recover() == nil {
			t.Error("a payload of zeros was read")
		}
	}()
	valuesOf(r, 0, 1000)
}

func TestOpenRefusesMemoryOfAnotherSize(t *testing.T) {
	b := mustEncode(t, Int8, bell(1000, 1, 3))
	if _, err := Open(b, 1000, make([]byte, RawSize(Int4, 1000)), func(int, []float32) {}); err == nil {
		t.Error("memory for int4 was taken for int8")
	}
}

func TestRawSize(t *testing.T) {
	for _, c := range []struct {
		k    Kind
		n    int
		want int
	}{
		{F32, 10, 40}, {BF16, 10, 20}, {Int8, 257, 257 + 4}, {Int4, 257, 129 + 4}, {Int4, SegmentLen, SegmentLen/2 + SegmentLen/128},
		{Int4, 2*SegmentLen + 1, SegmentLen + SegmentLen/64 + 3}, {Int4, 0, 0}, {Sparse, 1, 6}, {Sparse, 4097, 8 + 130}, {Sparse, SegmentLen, 128 + SegmentLen/32},
		{Int4, -1, 0}, {Int4, MaxValues + 1, 0}, {Kind(9), 5, 0},
	} {
		if got := RawSize(c.k, c.n); got != c.want {
			t.Errorf("%v, %d values: %d bytes, want %d", c.k, c.n, got, c.want)
		}
	}
}
