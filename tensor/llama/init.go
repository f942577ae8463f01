package llama

import (
	"hash/fnv"
	"math"
	"strings"

	"atoll/tensor"
)

// initStd is the standard deviation of fresh matrices (GPT-2's).
const initStd = 0.02

// Init fills the parameters from a seed: norms with 1, matrices with values of
// mean 0 and standard deviation 0.02, divided by sqrt(2*Layers) for the two
// projections of a layer that write to the residual stream.
//
// Values are the same bits on every architecture, and each tensor depends only
// on the seed and its own name.
func Init(c Config, p *tensor.Slab, seed uint64) {
	residual := initStd / math.Sqrt(float64(2*c.Layers))
	for _, v := range p.Views {
		switch x := p.Of(v); {
		case len(v.Shape) == 1:
			fill(x, 1)
		case strings.HasSuffix(v.Name, ".o_proj.weight"), strings.HasSuffix(v.Name, ".down_proj.weight"):
			fillNormal(x, residual, streamOf(seed, v.Name))
		default:
			fillNormal(x, initStd, streamOf(seed, v.Name))
		}
	}
}

func fill(x []float32, value float32) {
	for i := range x {
		x[i] = value
	}
}

// fillNormal fills x with sums of 12 uniform 16-bit integers: the Irwin-Hall
// approximation of a normal distribution, cut at 6 standard deviations. The
// sums are exact, so the one multiplication is the only rounding.
func fillNormal(x []float32, std float64, s stream) {
	const mean = 12 * math.MaxUint16 / 2
	scale := std / math.Sqrt(1<<32-1) // variance of the sum: 12 * (2^32 - 1) / 12
	for i := range x {
		sum := sum16(s.at(3*uint64(i))) + sum16(s.at(3*uint64(i)+1)) + sum16(s.at(3*uint64(i)+2))
		x[i] = float32(float64(sum-mean) * scale)
	}
}

// sum16 adds the four 16-bit parts of a word.
func sum16(w uint64) int {
	return int(w&0xffff + w>>16&0xffff + w>>32&0xffff + w>>48)
}

// stream is a counter-based random source, splitmix64 (Steele, Lea and Flood,
// OOPSLA 2014). It gives any element at once.
type stream uint64

// streamOf derives the stream of a named thing from a seed.
func streamOf(seed uint64, name string) stream {
	h := fnv.New64a()
	h.Write([]byte(name))
	return stream(stream(seed).at(0) ^ h.Sum64())
}

// at returns element i of the stream.
func (s stream) at(i uint64) uint64 {
	z := uint64(s) + (i+1)*0x9e3779b97f4a7c15
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// uniform returns a number from [0, 1), a multiple of 2^-53, from element i.
func (s stream) uniform(i uint64) float64 {
	return float64(s.at(i)>>11) / (1 << 53)
}
