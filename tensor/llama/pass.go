package llama

import (
	"atoll/tensor"
	"atoll/tensor/nn"
)

// forward runs the first s.Batch*s.Context inputs through every block and
// leaves the final norm's output in normed.
func (m *Model) forward(p *tensor.Slab, s nn.AttentionShape) {
	c, rows := m.config, s.Batch*s.Context
	nn.Embedding(m.stream(0), embedOf(p), m.inputs[:rows], c.Hidden)
	for l := range m.layers {
		if m.cut() {
			return
		}
		w := layerOf(p, l)
		m.attentionForward(w, &m.layers[l], s)
		m.mlpForward(w, &m.layers[l], m.stream(l+1), rows)
	}
	nn.RMSNorm(m.normed, m.rstd, m.out, c.normOf(p), rows, c.Hidden, c.NormEps)
}

// stream is the residual stream before block l.
func (m *Model) stream(l int) []float32 {
	if l < len(m.layers) {
		return m.layers[l].in
	}
	return m.out
}

// attentionForward: mid = in + attention(norm(in)) out^T.
func (m *Model) attentionForward(w layerWeights, a *layerState, s nn.AttentionShape) {
	c, rows := m.config, s.Batch*s.Context
	nn.RMSNorm(a.norm1, a.rstd1, a.in, w.norm1, rows, c.Hidden, c.NormEps)
	nn.Linear(m.Precision, a.qkv, a.norm1, w.qkv, rows, c.Hidden, c.qkvDim(), false)
	m.rope.Apply(a.qkv, rows, s.Context, c.Heads+c.KVHeads, c.qkvDim())
	nn.Attention(a.att, a.lse, a.qkv, m.scratch, s)
	copy(a.mid[:rows*c.Hidden], a.in)
	nn.Linear(m.Precision, a.mid, a.att, w.out, rows, c.Hidden, c.Hidden, true)
}

// mlpForward: out = mid + swiglu(norm(mid) gateUp^T) down^T.
func (m *Model) mlpForward(w layerWeights, a *layerState, out []float32, rows int) {
	c := m.config
	nn.RMSNorm(a.norm2, a.rstd2, a.mid, w.norm2, rows, c.Hidden, c.NormEps)
	nn.Linear(m.Precision, a.gateUp, a.norm2, w.gateUp, rows, c.Hidden, 2*c.Intermediate, false)
	nn.SwiGLU(m.act, a.gateUp, rows, c.Intermediate)
	copy(out[:rows*c.Hidden], a.mid)
	nn.Linear(m.Precision, out, m.act, w.down, rows, c.Intermediate, c.Hidden, true)
}

// head is the mean loss over rows, computed in chunks that bound the logits.
// Where grad is not nil it adds the head's gradient and leaves the gradient of
// the final norm's output in dnorm.
func (m *Model) head(p, grad *tensor.Slab, rows int) float64 {
	c, w := m.config, m.config.headOf(p)
	chunk, total := chunkRows(c, rows), 0.0
	for lo := 0; lo < rows; lo += chunk {
		hi := min(lo+chunk, rows)
		x := m.normed[lo*c.Hidden : hi*c.Hidden]
		nn.Linear(m.Precision, m.logits, x, w, hi-lo, c.Hidden, c.Vocab, false)
		nn.CrossEntropy(m.losses[lo:hi], m.logits, m.targets[lo:hi], hi-lo, c.Vocab, 1/float32(rows))
		if grad != nil {
			dx := m.dnorm[lo*c.Hidden : hi*c.Hidden]
			nn.LinearBackward(m.Precision, dx, c.headOf(grad), m.logits, x, w, hi-lo, c.Hidden, c.Vocab, lo > 0 || !m.Fresh)
		}
	}
	for _, loss := range m.losses[:rows] {
		total += loss
	}
	return total / float64(rows)
}

// backward takes the gradient in dnorm back through every block. dx is the
// gradient of the residual stream, to which each block adds.
func (m *Model) backward(p, grad *tensor.Slab, s nn.AttentionShape) {
	c, rows := m.config, s.Batch*s.Context
	clear(m.dx[:rows*c.Hidden])
	m.clearAdded(grad)
	nn.RMSNormBackward(m.dx, c.normOf(grad), m.dnorm, m.out, c.normOf(p), m.rstd, rows, c.Hidden)
	for l := c.Layers - 1; l >= 0; l-- {
		if m.cut() {
			return
		}
		w, g := layerOf(p, l), layerOf(grad, l)
		m.mlpBackward(w, g, &m.layers[l], rows)
		m.attentionBackward(w, g, &m.layers[l], s)
		m.graded(grad.Views[1+l*layerTensors].Offset)
	}
	nn.EmbeddingBackward(embedOf(grad), m.dx, m.inputs[:rows], c.Hidden)
	m.graded(0)
}

// clearAdded sets those gradients to 0 that are added up row by row, if the pass is fresh. Products overwrite the others.
func (m *Model) clearAdded(grad *tensor.Slab) {
	if !m.Fresh {
		return
	}
	for _, v := range grad.Views {
		if len(v.Shape) == 1 || v.Name == embedName && !m.config.Tied {
			clear(grad.Of(v))
		}
	}
}

func (m *Model) graded(lo int) {
	if m.Graded != nil {
		m.Graded(lo)
	}
}

func (m *Model) mlpBackward(w, g layerWeights, a *layerState, rows int) {
	c := m.config
	nn.LinearInputGrad(m.Precision, m.dact, m.dx, w.down, rows, c.Intermediate, c.Hidden)
	nn.SwiGLUBackward(m.dgateUp, m.act, m.dact, a.gateUp, rows, c.Intermediate)
	nn.LinearWeightGrad(m.Precision, g.down, m.dx, m.act, rows, c.Intermediate, c.Hidden, !m.Fresh)
	nn.LinearBackward(m.Precision, m.dnorm, g.gateUp, m.dgateUp, a.norm2, w.gateUp, rows, c.Hidden, 2*c.Intermediate, !m.Fresh)
	nn.RMSNormBackward(m.dx, g.norm2, m.dnorm, a.mid, w.norm2, a.rstd2, rows, c.Hidden)
}

func (m *Model) attentionBackward(w, g layerWeights, a *layerState, s nn.AttentionShape) {
	c, rows := m.config, s.Batch*s.Context
	nn.LinearBackward(m.Precision, m.dnorm, g.out, m.dx, a.att, w.out, rows, c.Hidden, c.Hidden, !m.Fresh)
	nn.AttentionBackward(m.dqkv, m.dnorm, a.att, a.lse, a.qkv, m.scratch, s)
	m.rope.Backward(m.dqkv, rows, s.Context, c.Heads+c.KVHeads, c.qkvDim())
	nn.LinearBackward(m.Precision, m.dnorm, g.qkv, m.dqkv, a.norm1, w.qkv, rows, c.Hidden, c.qkvDim(), !m.Fresh)
	nn.RMSNormBackward(m.dx, g.norm1, m.dnorm, a.in, w.norm1, a.rstd1, rows, c.Hidden)
}
