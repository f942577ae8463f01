package nn

import (
	"math"
	"math/rand/v2"

	"pgregory.net/rapid"
)

// The operations once more, forward only, in float64 and as plainly as they can
// be written. Their numeric derivatives judge the backward functions.

func refRMSNorm(x, weight []float64, rows, dim int, eps float64) []float64 {
	out := make([]float64, rows*dim)
	for r := range rows {
		row, sum := x[r*dim:(r+1)*dim], 0.0
		for _, v := range row {
			sum += v * v
		}
		for i, v := range row {
			out[r*dim+i] = v / math.Sqrt(sum/float64(dim)+eps) * weight[i]
		}
	}
	return out
}

func refRope(x []float64, rows, context, heads, headDim, stride int, theta float64) []float64 {
	out, half := append([]float64(nil), x...), headDim/2
	for r := range rows {
		for h := range heads {
			for i := range half {
				angle := float64(r%context) * math.Pow(theta, -2*float64(i)/float64(headDim))
				sin, cos := math.Sincos(angle)
				at := r*stride + h*headDim + i
				a, b := x[at], x[at+half]
				out[at], out[at+half] = a*cos-b*sin, b*cos+a*sin
			}
		}
	}
	return out
}

func refAttention(qkv []float64, s AttentionShape) []float64 {
	out := make([]float64, s.Batch*s.Context*s.Heads*s.HeadDim)
	for b := range s.Batch {
		for h := range s.Heads {
			for t := range s.Context {
				at := (b*s.Context+t)*s.Heads*s.HeadDim + h*s.HeadDim
				refAttend(out[at:at+s.HeadDim], qkv[b*s.Context*s.Stride():], s, h, t)
			}
		}
	}
	return out
}

// refAttend adds to out what position t of head h sees in one sequence.
func refAttend(out, qkv []float64, s AttentionShape, h, t int) {
	kv := h / (s.Heads / s.KVHeads)
	query := qkv[t*s.Stride()+h*s.HeadDim:]
	weights, sum := make([]float64, t+1), 0.0
	for u := range weights {
		key, score := qkv[u*s.Stride()+(s.Heads+kv)*s.HeadDim:], 0.0
		for i := range s.HeadDim {
			score += query[i] * key[i]
		}
		weights[u] = math.Exp(score / math.Sqrt(float64(s.HeadDim)))
		sum += weights[u]
	}
	for u, w := range weights {
		value := qkv[u*s.Stride()+(s.Heads+s.KVHeads+kv)*s.HeadDim:]
		for i := range s.HeadDim {
			out[i] += w / sum * value[i]
		}
	}
}

func refSwiGLU(gateUp []float64, rows, dim int) []float64 {
	out := make([]float64, rows*dim)
	for r := range rows {
		for i := range dim {
			g, u := gateUp[2*r*dim+i], gateUp[2*r*dim+dim+i]
			out[r*dim+i] = g / (1 + math.Exp(-g)) * u
		}
	}
	return out
}

func refCrossEntropy(logits []float64, targets []int32, rows, vocab int) []float64 {
	losses := make([]float64, rows)
	for r := range rows {
		row, sum := logits[r*vocab:(r+1)*vocab], 0.0
		for _, v := range row {
			sum += math.Exp(v)
		}
		losses[r] = math.Log(sum) - row[targets[r]]
	}
	return losses
}

func refLinear(x, w []float64, rows, in, out int) []float64 {
	y := make([]float64, rows*out)
	for r := range rows {
		for o := range out {
			for i := range in {
				y[r*out+o] += x[r*in+i] * w[o*in+i]
			}
		}
	}
	return y
}

// random returns n normal values that float32 holds exactly.
func random(rng *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = float64(float32(rng.NormFloat64()))
	}
	return x
}

func narrow(x []float64) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		y[i] = float32(v)
	}
	return y
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// derivative is the gradient of f in x by central differences.
func derivative(x []float64, f func() float64) []float64 {
	const h = 1e-5
	d := make([]float64, len(x))
	for i, v := range x {
		x[i] = v + h
		above := f()
		x[i] = v - h
		d[i] = (above - f()) / (2 * h)
		x[i] = v
	}
	return d
}

// same fails unless got agrees with want within tolerance of the largest value.
func same(t rapid.TB, name string, got []float32, want []float64, tolerance float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s has %d values, want %d", name, len(got), len(want))
	}
	size := 1.0
	for _, v := range want {
		size = max(size, math.Abs(v))
	}
	for i, v := range want {
		if !(math.Abs(float64(got[i])-v) <= tolerance*size) {
			t.Fatalf("%s[%d] = %v, want %v", name, i, got[i], v)
		}
	}
}
