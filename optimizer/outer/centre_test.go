package outer

import (
	"testing"

	"atoll/tensor/codec"
)

// judgeClip is centred clipping as its formula reads.
func judgeClip(m *medians, vs [][]float64, weights []float64) []float64 {
	u := make([]float64, len(vs[0]))
	for range centrePasses {
		var distances []float64
		for _, v := range vs {
			distances = append(distances, length(minus(v, u)))
		}
		tau := m.of(distances, weights)
		moved, total := make([]float64, len(u)), 0.0
		for i, v := range vs {
			total += weights[i]
			near := 1.0
			if distances[i] > tau {
				near = tau / distances[i]
			}
			for j, d := range minus(v, u) {
				moved[j] += weights[i] * near * d
			}
		}
		for j := range u {
			u[j] += moved[j] / total
		}
	}
	return u
}

func minus(a, b []float64) []float64 {
	d := make([]float64, len(a))
	for i := range a {
		d[i] = a[i] - b[i]
	}
	return d
}

// Liars among eight learners send their progress turned around and ten times as
// long. The merge moves by so much of the honest move.
func TestMergeAgainstSignFlips(t *testing.T) {
	for _, c := range []struct {
		liars       int
		least, most float64 // of the honest progress that the merged one has along it
	}{{0, 0.9, 1.01}, {1, 0.7, 1.01}, {2, 0.5, 1.01}, {3, 0.2, 1.01}} {
		if got := alongHonest(t, c.liars); got < c.least || got > c.most {
			t.Errorf("%d liars of 8: %.2f of the honest progress, want %.2f to %.2f", c.liars, got, c.least, c.most)
		}
	}
}

// alongHonest folds one round of eight deltas about one direction, some of them
// turned around, without a reference for norms.
func alongHonest(t *testing.T, liars int) float64 {
	t.Helper()
	p := toyParams()
	p.Codec, p.ClipFactor, p.Eta = codec.F32, 1e6, 1
	f := toyFragment()
	honest := vector(1, f.Len)
	var set []Contribution
	for i := range 8 {
		v := vector(uint64(100+i), f.Len)
		for j := range v {
			v[j] = honest[j] + v[j]/2
			if i < liars {
				v[j] *= -10
			}
		}
		payload, err := codec.Encode(codec.F32, v)
		if err != nil {
			t.Fatal(err)
		}
		set = append(set, Contribution{Payload: payload, Delta: Delta{
			ID: ID{byte(i)}, Author: Author{byte(i)}, Round: 1, Steps: 24, Tokens: 24 * 512,
			Codec: codec.F32, Size: len(payload),
		}})
	}
	tip, _, err := Fold(p, f, Genesis(f, make([]float32, f.Len), p), 1, set)
	if err != nil {
		t.Fatal(err)
	}
	var along, norm float64
	for j, x := range honest {
		along += float64(x) * float64(tip.Global[j])
		norm += float64(x) * float64(x)
	}
	return along / norm
}
