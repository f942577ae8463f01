package codec

import (
	"slices"
	"testing"

	"atoll/tensor"
)

// BenchmarkDecodeAdd weighs and adds 2^20 normal values in int4 to sums in float64: all of them, 8 MiB, or a
// part that stays in the second cache, as in a fold; from a payload, from one without entropy coding, and
// as far as the values alone; and in one go with Add, 8 MiB of sums, and as a fold
// does, with a Reader and 256 KiB.
func BenchmarkDecodeAdd(b *testing.B) {
	v := normal(1<<20, 0.01, 1)
	sum := make([]float64, len(v))
	payloads := map[string][]byte{"huff0": mustEncode(b, Int4, v), "stored": storedInt4(b, v)}
	for _, payload := range []string{"huff0", "stored"} {
		b.Run(payload+"/Add", func(b *testing.B) {
			for b.Loop() {
				if err := Add(payloads[payload], len(v), 0.5, sum); err != nil {
					b.Fatal(err)
				}
			}
			reportRate(b, len(v))
		})
		b.Run(payload+"/Reader", func(b *testing.B) {
			const part = 4 * PieceLen
			memory, spans := make([]byte, RawSize(Int4, len(v))), []Span{{0, part, 0.5}}
			for b.Loop() {
				r, err := Open(Source{Payload: payloads[payload], Memory: memory}, len(v))
				if err != nil {
					b.Fatal(err)
				}
				for at := 0; at < len(v); at += part {
					r.Add(at, spans, sum[:part])
				}
			}
			reportRate(b, len(v))
		})
		for _, sums := range []struct {
			name string
			mask int
		}{{"8MiB", len(v) - 1}, {"256KiB", 1<<15 - 1}, {"none", 0}} {
			b.Run(payload+"/"+sums.name, func(b *testing.B) {
				for b.Loop() {
					err := walk(payloads[payload], len(v), func(at int, x []float32) {
						if sums.mask > 0 {
							tensor.AxpyWide(0.5, x, sum[at&sums.mask:][:len(x)])
						}
					})
					if err != nil {
						b.Fatal(err)
					}
				}
				reportRate(b, len(v))
			})
		}
	}
}

// storedInt4 encodes v, of whole segments, with every stream stored.
func storedInt4(tb testing.TB, v []float32) []byte {
	s, payload := newScratch(), slices.Clone(mustEncode(tb, Int4, v)[:headerSize])
	for at := 0; at < len(v); at += SegmentLen {
		streams := s.segments[0].divide(nil, Int4, SegmentLen)
		if i := quantize(streams, v[at:at+SegmentLen], &s.last); i >= 0 {
			tb.Fatalf("value %d does not fit", i)
		}
		for _, raw := range streams {
			payload = append(append(payload, modeStored), raw...)
		}
	}
	return payload
}
