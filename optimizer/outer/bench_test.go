package outer

import (
	"fmt"
	"testing"

	"atoll/tensor"
	"atoll/tensor/codec"
)

// benchSet is the deltas of a round of one fragment of a million values.
func benchSet(b *testing.B, deltas int, k codec.Kind) (Params, Fragment, []Contribution) {
	return benchSetOf(b, 1<<20, deltas, k)
}

// benchSetOf is benchSet of a fragment of about so many values.
func benchSetOf(b *testing.B, values, deltas int, k codec.Kind) (Params, Fragment, []Contribution) {
	p := Plain(1, 1<<40, 0)
	p.Codec = k
	specs := make([]tensor.Spec, 16)
	for i := range specs {
		specs[i] = tensor.Spec{Name: fmt.Sprint("t", i), Shape: []int{values / 16 / 256, 256}}
	}
	f := NewPlan(tensor.NewSlab(specs).Views, 1)[0]
	set := make([]Contribution, deltas)
	for i := range set {
		set[i] = contribution(b, p, byte(i), 1, vector(uint64(i), f.Len))
	}
	b.SetBytes(int64(4 * f.Len * deltas))
	return p, f, set
}

// benchFold folds a set again and again.
func benchFold(b *testing.B, p Params, f Fragment, set []Contribution) {
	tip := Genesis(f, vector(99, f.Len), p)
	for b.Loop() {
		if _, r, err := Fold(p, f, tip, 1, set); err != nil || len(r.Folded) != len(set) {
			b.Fatal(err, r.Refused)
		}
	}
}

// BenchmarkFold folds rounds of int4 and of sparse deltas; compare with BenchmarkDecode, which only
// decodes int4 deltas once. Bytes are bytes of decoded values.
func BenchmarkFold(b *testing.B) {
	for _, k := range []codec.Kind{codec.Int4, codec.Sparse} {
		for _, deltas := range []int{1, 4, 16} {
			b.Run(fmt.Sprint(k, "/deltas=", deltas), func(b *testing.B) {
				p, f, set := benchSet(b, deltas, k)
				b.ReportAllocs()
				benchFold(b, p, f, set)
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*deltas*f.Len), "ns/value") // tune.Choose goes by it
			})
		}
	}
}

// BenchmarkAgreement folds rounds of a tiny model's fragments and of larger ones with and without a look at how
// deltas agree.
func BenchmarkAgreement(b *testing.B) {
	for _, values := range []int{100_000, 1_000_000} {
		for _, deltas := range []int{4, 8, 16} {
			for _, similarity := range []bool{false, true} {
				b.Run(fmt.Sprint("values=", values, "/deltas=", deltas, "/similarity=", similarity), func(b *testing.B) {
					p, f, set := benchSetOf(b, values, deltas, codec.Int4)
					p.OwnText = !similarity
					benchFold(b, p, f, set)
				})
			}
		}
	}
}

func BenchmarkDecode(b *testing.B) {
	_, f, set := benchSet(b, 4, codec.Int4)
	v := make([]float32, f.Len)
	for b.Loop() {
		for _, c := range set {
			if err := codec.Decode(c.Payload, f.Len, v); err != nil {
				b.Fatal(err)
			}
		}
	}
}

func BenchmarkSeal(b *testing.B) {
	_, f, _ := benchSet(b, 1, codec.Int4)
	tip := Genesis(f, vector(99, f.Len), Params{})
	for b.Loop() {
		tip.seal()
	}
}
