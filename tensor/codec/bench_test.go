package codec

import (
	"math"
	"testing"

	"atoll/tensor"
)

// Rates of 2^20 normal values, in millions of values a second.

func reportRate(b *testing.B, values int) {
	b.ReportMetric(float64(values)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mparam/s")
}

func BenchmarkEncode(b *testing.B) {
	v := normal(1<<20, 0.01, 1)
	for _, k := range kinds {
		b.Run(k.String(), func(b *testing.B) {
			size := 0
			for b.Loop() {
				size = len(mustEncode(b, k, v))
			}
			reportRate(b, len(v))
			b.ReportMetric(8*float64(size)/float64(len(v)), "bits/param")
		})
	}
}

func BenchmarkDecode(b *testing.B) {
	v := normal(1<<20, 0.01, 1)
	for _, k := range kinds {
		b.Run(k.String(), func(b *testing.B) {
			payload := mustEncode(b, k, v)
			b.ReportAllocs()
			for b.Loop() {
				if err := Decode(payload, len(v), v); err != nil {
					b.Fatal(err)
				}
			}
			reportRate(b, len(v))
		})
	}
}

// sources are shapes of deltas: normal, and with heavier tails.
var sources = []struct {
	name string
	draw func(x float64) float64
}{
	{"normal", func(x float64) float64 { return x }},
	{"heavy", func(x float64) float64 { return x * math.Abs(x) }},
	{"heavier", func(x float64) float64 { return x * x * x }},
}

// quality returns the squared error relative to the signal's, in dB, and the
// bits a value that int4 with the given span takes.
func quality(v []float32, span float32) (db, bits float64) {
	s := newScratch()
	var noise, signal float64
	size := 0
	for at := 0; at < len(v); at += SegmentLen {
		seg := v[at:min(at+SegmentLen, len(v))]
		streams := s.segments[0].divide(nil, Int4, len(seg))
		quantizeWith(streams, seg, span)
		for _, stream := range streams {
			size += len(s.appendChunk(nil, stream))
		}
		got := make([]float32, len(seg))
		if err := dequantize(got, streams, 0, &s.last); err != nil {
			panic(err)
		}
		for i, x := range seg {
			noise += (float64(x) - float64(got[i])) * (float64(x) - float64(got[i]))
			signal += float64(x) * float64(x)
		}
	}
	return 10 * math.Log10(noise/signal), 8 * float64(size) / float64(len(v))
}

// quantizeWith is quantize of whole blocks with another span. Values that lie beyond the largest code are clipped.
func quantizeWith(streams [][]byte, v []float32, span float32) {
	for i := range streams[0] {
		b := *(*block)(v[i*blockLen:])
		scale := uint16((math.Float32bits(math.Float32frombits(tensor.MaxBits(&b))/span) + 0xffff) >> 16)
		streams[0][i], streams[1][i] = byte(scale), byte(scale>>8)
		inv := inverse(scale)
		for j, x := range b {
			b[j] = min(max(x, -7.49/inv), 7.49/inv)
		}
		tensor.Pack4((*codes4)(streams[2][i*codeBytes:]), &b, inv)
	}
}

// Uniform steps followed by an entropy coder lie nearly on one curve of error
// against bytes, 6.02 dB a bit. Compared at equal bytes the chosen span is as
// good as any around it: coarser ones do not win, finer ones clip and lose.
func TestScaleChoice(t *testing.T) {
	for _, src := range sources {
		v := normal(1<<18, 1, 5)
		for i, x := range v {
			v[i] = float32(src.draw(float64(x)))
		}
		atThreeBits := func(span float32) float64 {
			db, bits := quality(v, span)
			t.Logf("%-8s max/%-5v %7.2f dB %6.3f bits", src.name, span, db, bits)
			return db + 6.02*(bits-3)
		}
		chosen := atThreeBits(span)
		for _, another := range []float32{7, 8, 8.5, 9, 10} {
			if other := atThreeBits(another); other < chosen-0.05 {
				t.Errorf("%s: max/%v has %.2f dB at three bits, max/%v has %.2f", src.name, another, other, span, chosen)
			}
		}
	}
}
