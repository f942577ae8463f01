package optimizer

import (
	"fmt"
	"math"

	"atoll/tensor"
)

// Names of the optimizers, as flags and documents have them.
const (
	NameAdamW = "adamw"
	NameMuon  = "muon"
)

// Muon orthogonalises the momentum of each hidden matrix and leaves all other
// parameters, embeddings, heads and gains, to AdamW (K. Jordan et al., Muon: an
// optimizer for hidden layers in neural networks, 2024). For a matrix p of r
// rows and c columns with gradient g:
//
//	m = Momentum m + (1-Momentum) g
//	u = Momentum m + (1-Momentum) g, Nesterov's form
//	p = p - lr (0.2 sqrt(max(r, c)) orthogonal(u) + WeightDecay p)
//
// where orthogonal keeps the singular vectors of u and brings its singular
// values near 1. The entries of an orthogonal matrix have a root mean square of
// 1/sqrt(max(r, c)) and AdamW's updates one of about 0.2. So the factor lets
// AdamW's learning rate and weight decay carry over (J. Liu et al., Muon is
// scalable for LLM training, 2025, section 2.2, the report on Moonlight).
type Muon struct {
	Momentum float64 // decay rate of the matrices' momentum, in [0, 1)
	AdamW    AdamW   // of the other parameters; its WeightDecay is the matrices' too
}

// muonRMS is the root mean square of an update at a learning rate of 1.
const muonRMS = 0.2

// muonTiny is where a decaying momentum counts as 0: it would otherwise end as a
// denormal number, on which arithmetic is many times slower.
const muonTiny = 0x1p-100

// Block is a stretch of a flat vector that Muon's step treats in one way.
type Block struct {
	Span
	Rows  int  // of a hidden matrix, which divides Len; 0 = for AdamW
	Decay bool // whether AdamW decays it; matrices always decay
}

// Validate returns an error that names the first field out of range.
func (o Muon) Validate() error {
	if !(o.Momentum >= 0 && o.Momentum < 1) {
		return fmt.Errorf("Muon Momentum is %v: use 0 or more and below 1", o.Momentum)
	}
	return o.AdamW.Validate()
}

// Step updates params in place with one step along grads at learning rate lr
// and advances s. Blocks follow each other and cover params; s and w were made
// for them. Anything else is a programming error and panics.
func (o Muon) Step(params, grads []float32, blocks []Block, s *MuonState, w *Workspace, lr float64) {
	o.StepScaled(params, grads, blocks, s, w, lr, 1)
}

// StepScaled is Step along grads times a factor.
func (o Muon) StepScaled(params, grads []float32, blocks []Block, s *MuonState, w *Workspace, lr float64, factor float32) {
	s.check(len(params), len(grads), blocks)
	s.Step++
	plain := o.AdamW.coefficients(s.Step, lr, factor)
	decayed := plain
	decayed.Keep = float32(1 - lr*o.AdamW.WeightDecay)
	seen := 0 // of the second moments
	for _, b := range blocks {
		lo, hi := b.Offset, b.Offset+b.Len
		p, g, m := params[lo:hi], grads[lo:hi], s.M.part(lo, hi)
		if b.Rows > 0 {
			o.matrix(p, g, m, b.Rows, w, lr, factor)
			continue
		}
		v, c := s.V.part(seen, seen+b.Len), plain
		if b.Decay {
			c = decayed
		}
		update(p, g, m, v, c)
		seen += b.Len
	}
}

// matrix takes the step of one hidden matrix.
func (o Muon) matrix(p, g []float32, m Moments, rows int, w *Workspace, lr float64, factor float32) {
	cols := len(p) / rows
	u := w.x[:len(p)]
	norm := w.follow(m, g, u, float32(o.Momentum), factor)
	u = w.orthogonal(u, norm, rows, cols)
	step := lr * muonRMS * math.Sqrt(float64(max(rows, cols)))
	w.blend(p, u, float32(1-lr*o.AdamW.WeightDecay), float32(-step))
}

// follow moves the momentum m along factor g, leaves the direction of the step in u
// and returns the direction's Euclidean norm.
func (w *Workspace) follow(m Moments, g, u []float32, momentum, factor float32) float64 {
	w.loop = loop{m: m, g: g, u: u, keep: momentum, take: 1 - momentum, factor: factor}
	n := pieces(len(g))
	tensor.Parallel(n, w.followTask)
	total := 0.0
	for _, sum := range w.sums[:n] {
		total += sum
	}
	return math.Sqrt(total)
}

func (w *Workspace) followPiece(i int) {
	l, lo, hi := w.piece(i)
	m, g, u := l.m.part(lo, hi), l.g[lo:hi], l.u[lo:hi]
	if m.narrow == nil {
		follow(m.wide, g, u, l.keep, l.take, l.factor)
	} else {
		followBF16(m.narrow, g, u, l.keep, l.take, l.factor)
	}
	w.sums[i] = tensor.SumSquares(u)
}

// followBF16 widens momentum part by part. Its parts stay in the first cache.
func followBF16(m []uint16, g, u []float32, keep, take, factor float32) {
	var wide [256]float32
	for len(m) > 0 {
		n := min(len(m), len(wide))
		tensor.WidenBF16(wide[:n], m[:n])
		follow(wide[:n], g, u, keep, take, factor)
		tensor.NarrowBF16(m[:n], wide[:n])
		m, g, u = m[n:], g[n:], u[n:]
	}
}

// follow rounds each product, so that every architecture gets the same bits.
func follow(m, g, u []float32, keep, take, factor float32) {
	g, u = g[:len(m)], u[:len(m)]
	for i, was := range m {
		fresh := float32(take * float32(factor*g[i]))
		now := float32(keep*was) + fresh
		if now > -muonTiny && now < muonTiny {
			now = 0
		}
		m[i] = now
		u[i] = float32(keep*now) + fresh
	}
}
