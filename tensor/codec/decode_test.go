package codec

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"atoll/tensor"
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

// walk hands all values of a payload to visit, piece by piece.
func walk(b []byte, n int, visit func(at int, v []float32)) error {
	d := decoder{visit: visit}
	return d.decode(b, n)
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
	eachPayload(t, func(t *testing.T, k Kind, b []byte, want []float32) {
		n := len(want)
		var walked []float32
		err := walk(b, n, func(at int, v []float32) {
			if at != len(walked) {
				t.Fatalf("a piece begins at %d after %d values", at, len(walked))
			}
			walked = append(walked, v...)
		})
		if err != nil {
			t.Fatal(err)
		}
		sameValues(t, walked, want)
		for _, r := range readers(t, k, b, n) {
			for _, length := range []int{SegmentLen, 4 * PieceLen, PieceLen, k.Unit()} {
				if length < PieceLen && n > 1<<15 && r.raw == nil {
					continue // each read undoes the entropy coding of a segment
				}
				for at := (n - 1) / length * length; at >= 0 && n > 0; at -= length {
					m := min(length, n-at)
					sameValues(t, valuesOf(r, at, m), want[at:at+m])
				}
			}
		}
	})
}

// readers opens a payload without memory and with it.
func readers(t *testing.T, k Kind, b []byte, n int) (all []*Reader) {
	t.Helper()
	for _, memory := range [][]byte{nil, make([]byte, RawSize(k, n))} {
		r, err := Open(Source{Payload: b, Memory: memory}, n)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// TestAddAgreesWithDecode adds payloads whole, and spans of segments with a factor each.
func TestAddAgreesWithDecode(t *testing.T) {
	eachPayload(t, func(t *testing.T, k Kind, b []byte, values []float32) {
		n := len(values)
		got, want := make([]float64, n), make([]float64, n)
		for i := range got {
			got[i], want[i] = float64(i), float64(i)
		}
		tensor.AxpyWide(-0.3, values, want)
		if err := Add(b, n, -0.3, got); err != nil {
			t.Fatal(err)
		}
		sameSums(t, got, want)
		for _, r := range readers(t, k, b, n) {
			rng := rand.New(rand.NewPCG(uint64(n), 8))
			for at := 0; at < n; at += SegmentLen {
				m := min(SegmentLen, n-at)
				first := rng.IntN(m)
				m = 1 + rng.IntN(m-first)
				addSpans(rng, at+first, got[at+first:][:m], want[at+first:][:m], values, r)
			}
			sameSums(t, got, want)
		}
	})
}

// addSpans adds some of the values from number at on in both ways.
func addSpans(rng *rand.Rand, at int, got, want []float64, values []float32, r *Reader) {
	var spans []Span
	for from := 0; from < len(got); {
		s := Span{from, min(len(got), from+1+rng.IntN(1<<rng.IntN(16))), rng.NormFloat64()}
		if from = s.To; rng.IntN(4) == 0 {
			continue // some are left out
		}
		spans = append(spans, s)
		tensor.AxpyWide(s.Factor, values[at+s.From:at+s.To], want[s.From:s.To])
	}
	r.Add(at, spans, got)
}

// sameSums fails unless two vectors have the same bits.
func sameSums(t *testing.T, got, want []float64) {
	t.Helper()
	for i, w := range want {
		if math.Float64bits(got[i]) != math.Float64bits(w) {
			t.Fatalf("sum %d is %v, want %v", i, got[i], w)
		}
	}
}

// TestPairsAgreeWithOpen opens payloads of every two kinds together: values and squares are those of each alone.
func TestPairsAgreeWithOpen(t *testing.T) {
	for i, k := range kinds {
		for j, other := range kinds {
			for _, n := range lengths {
				payloads := [2][]byte{mustEncode(t, k, normal(n, 0.01, uint64(n+i))), mustEncode(t, other, normal(n, 0.3, uint64(n+j)+1))}
				var src [2]Source
				for i, b := range payloads {
					src[i] = Source{Payload: b, Parts: []Squares{{To: n / 2}, {From: n / 2, To: n}}}
				}
				src[i%2].Memory = make([]byte, RawSize([]Kind{k, other}[i%2], n))
				readers, err := OpenPair(src[0], src[1], n)
				if err != nil {
					t.Fatal(err)
				}
				for i, b := range payloads {
					parts := []Squares{{To: n / 2}, {From: n / 2, To: n}}
					r, err := Open(Source{Payload: b, Parts: parts}, n)
					if err != nil {
						t.Fatal(err)
					}
					if !slices.Equal(src[i].Parts, parts) {
						t.Fatalf("%v and %v, %d values: squares %v, alone %v", k, other, n, src[i].Parts, parts)
					}
					for at := 0; at < n; at += SegmentLen {
						m := min(SegmentLen, n-at)
						sameValues(t, valuesOf(readers[i], at, m), valuesOf(r, at, m))
					}
				}
			}
		}
	}
}

func TestAddRefusesSumsOfAnotherLength(t *testing.T) {
	if err := Add(mustEncode(t, Int4, normal(10, 1, 1)), 10, 1, make([]float64, 11)); err == nil {
		t.Error("11 sums were taken for 10 values")
	}
}

// TestOpenAddsSquares cuts vectors at places of all kinds: on the borders of blocks and lanes and beside them.
func TestOpenAddsSquares(t *testing.T) {
	eachPayload(t, func(t *testing.T, _ Kind, b []byte, values []float32) {
		n := len(values)
		rng := rand.New(rand.NewPCG(uint64(n), 9))
		for _, step := range []int{1, 16, 256} {
			parts := cut(rng, n, step)
			if _, err := Open(Source{Payload: b, Parts: parts}, n); err != nil {
				t.Fatal(err)
			}
			for _, part := range parts {
				var want tensor.Lanes
				want.AddSquares(0, values[part.From:part.To])
				if part.Sum != want {
					t.Fatalf("squares of %d to %d are %v, want %v", part.From, part.To, part.Sum, want)
				}
			}
		}
	})
}

// cut parts n values at multiples of step.
func cut(rng *rand.Rand, n, step int) (parts []Squares) {
	for from := 0; from < n; {
		to := min(n, from+step*(1+rng.IntN(1<<rng.IntN(10))))
		parts = append(parts, Squares{From: from, To: to})
		from = to
	}
	return parts
}

func TestOpenRefusesParts(t *testing.T) {
	b := mustEncode(t, Int4, normal(10, 1, 3))
	for name, parts := range map[string][]Squares{
		"none":      {},
		"too few":   {{From: 0, To: 9}},
		"too many":  {{From: 0, To: 11}},
		"a gap":     {{From: 0, To: 4}, {From: 5, To: 10}},
		"no start":  {{From: 1, To: 10}},
		"backwards": {{From: 0, To: 10}, {From: 10, To: 4}, {From: 4, To: 10}},
	} {
		if _, err := Open(Source{Payload: b, Parts: parts}, 10); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
}

// A Reader with memory does not look at the payload again.
func TestReaderKeepsWhatWasRead(t *testing.T) {
	n := SegmentLen + 100
	b := mustEncode(t, Int4, normal(n, 1, 3))
	want := mustDecode(t, b, n)
	r, err := Open(Source{Payload: b, Memory: make([]byte, RawSize(Int4, n))}, n)
	if err != nil {
		t.Fatal(err)
	}
	clear(b)
	sameValues(t, valuesOf(r, SegmentLen, 100), want[SegmentLen:])
}

// Without memory it does, and a payload that changed under it is a mistake of the caller.
func TestReaderPanicsOnAChangedPayload(t *testing.T) {
	b := mustEncode(t, Int4, normal(1000, 1, 3))
	r, err := Open(Source{Payload: b}, 1000)
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
	b := mustEncode(t, F32, normal(1000, 1, 3))
	if _, err := Open(Source{Payload: b, Memory: make([]byte, RawSize(Int4, 1000))}, 1000); err == nil {
		t.Error("memory for int4 was taken for f32")
	}
}

func TestRawSize(t *testing.T) {
	for _, c := range []struct {
		k    Kind
		n    int
		want int
	}{
		{F32, 10, 40}, {Int4, 257, 129 + 4}, {Int4, SegmentLen, SegmentLen/2 + SegmentLen/128},
		{Int4, 2*SegmentLen + 1, SegmentLen + SegmentLen/64 + 3}, {Int4, 0, 0}, {Sparse, 1, 6}, {Sparse, 4097, 8 + 130}, {Sparse, SegmentLen, 128 + SegmentLen/32},
		{Sparse8, 1, 6}, {Sparse8, 4097, 8 + 2*513}, {Sparse8, SegmentLen, 128 + SegmentLen/4},
		{Int4, -1, 0}, {Int4, MaxValues + 1, 0}, {Kind(9), 5, 0},
	} {
		if got := RawSize(c.k, c.n); got != c.want {
			t.Errorf("%v, %d values: %d bytes, want %d", c.k, c.n, got, c.want)
		}
	}
}
