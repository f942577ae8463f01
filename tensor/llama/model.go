package llama

import (
	"fmt"

	"atoll/tensor"
	"atoll/tensor/nn"
)

// Model computes losses, gradients and logits for up to batch windows at a
// time. It holds no parameters, only activations.
type Model struct {
	// Cut is asked before each layer, which takes seconds where a large model
	// meets a slow machine; true ends the pass, and what it returns is
	// worthless. nil is never.
	Cut func() bool

	// Graded is told during LossGrad how far the gradients are that this pass adds:
	// those at lo of the slab and beyond are all added, but for what a tied
	// embedding still gets, which has its place at the start of the slab. lo falls
	// from the last layer's offset to 0, with which LossGrad ends. nil is nobody.
	// It is not told of a pass that Cut ends.
	Graded func(lo int)

	// Fresh has LossGrad overwrite the gradient instead of adding to it: one pass over memory less, and none to set it
	// to 0 before.
	Fresh bool

	// Precision is the arithmetic of matrix products: of layers, of attention and of the head. All else is
	// float32, and so are parameters and gradients.
	Precision tensor.Precision

	config  Config
	batch   int
	rope    *nn.Rope
	inputs  []int32   // [rows]
	targets []int32   // [rows]
	losses  []float64 // [rows]
	workspace
}

// NewModel allocates all that a model of batch windows needs; nothing of size
// is allocated later. The config must be valid.
func NewModel(c Config, batch int) *Model {
	var size arena
	size.workspace(c, batch)
	a := arena{memory: tensor.Floats(size.used)}
	rows := batch * c.Context
	return &Model{
		config:    c,
		batch:     batch,
		rope:      nn.NewRope(c.Context, c.headDim(), c.RopeTheta),
		inputs:    make([]int32, rows),
		targets:   make([]int32, rows),
		losses:    make([]float64, rows),
		workspace: a.workspace(c, batch),
	}
}

// Config returns the model's shape.
func (m *Model) Config() Config { return m.config }

// Loss is the mean negative log-likelihood, in nats per token, of each token
// given those before it in its window.
//
//	tokens [n, Context+1], 1 <= n <= batch
//
// It panics on another length and on a token outside [0, Vocab).
func (m *Model) Loss(p *tensor.Slab, tokens []int32) float64 {
	s := m.load(tokens)
	m.forward(p, s)
	return m.head(p, nil, s.Batch*s.Context)
}

// LossGrad is Loss that also adds its gradient to grad, or overwrites it: see Fresh.
func (m *Model) LossGrad(p, grad *tensor.Slab, tokens []int32) float64 {
	s := m.load(tokens)
	m.forward(p, s)
	loss := m.head(p, grad, s.Batch*s.Context)
	m.backward(p, grad, s)
	return loss
}

func (m *Model) cut() bool { return m.Cut != nil && m.Cut() }

// Logits scores each token as the successor of prefix. It reads the last
// Context tokens of prefix. The result, [Vocab], is valid until the next call.
// It panics on an empty prefix and on a token outside [0, Vocab).
func (m *Model) Logits(p *tensor.Slab, prefix []int32) []float32 {
	c := m.config
	prefix = prefix[max(0, len(prefix)-c.Context):]
	if len(prefix) == 0 {
		panic("llama: Logits of an empty prefix")
	}
	c.checkTokens(prefix)
	copy(m.inputs, prefix)
	m.forward(p, m.attention(1, len(prefix)))
	last := m.normed[(len(prefix)-1)*c.Hidden : len(prefix)*c.Hidden]
	nn.Linear(m.Precision, m.logits, last, c.headOf(p), 1, c.Hidden, c.Vocab, false)
	return m.logits[:c.Vocab]
}

// load splits windows into inputs and targets, which are the same tokens one
// position later.
func (m *Model) load(tokens []int32) nn.AttentionShape {
	context := m.config.Context
	n := len(tokens) / (context + 1)
	if n < 1 || n > m.batch || len(tokens)%(context+1) != 0 {
		panic(fmt.Sprintf("llama: %d tokens are not 1 to %d windows of %d", len(tokens), m.batch, context+1))
	}
	m.config.checkTokens(tokens)
	for b := range n {
		window := tokens[b*(context+1) : (b+1)*(context+1)]
		copy(m.inputs[b*context:], window[:context])
		copy(m.targets[b*context:], window[1:])
	}
	return m.attention(n, context)
}

func (m *Model) attention(batch, context int) nn.AttentionShape {
	s := m.config.attention(batch, context)
	s.Precision = m.Precision
	return s
}

func (c Config) checkTokens(tokens []int32) {
	for _, t := range tokens {
		if t < 0 || int(t) >= c.Vocab {
			panic(fmt.Sprintf("llama: token %d is outside the vocabulary of %d", t, c.Vocab))
		}
	}
}

// layerWeights are one block's parameters, or their gradients.
type layerWeights struct {
	norm1  []float32 // [Hidden]
	qkv    []float32 // [qkvDim, Hidden]
	out    []float32 // [Hidden, Hidden]
	norm2  []float32 // [Hidden]
	gateUp []float32 // [2*Intermediate, Hidden]
	down   []float32 // [Hidden, Intermediate]
}

// layerTensors is the number of tensors of one block in Specs.
const layerTensors = 9

func layerOf(p *tensor.Slab, layer int) layerWeights {
	v := p.Views[1+layer*layerTensors:][:layerTensors]
	return layerWeights{
		norm1:  p.Of(v[0]),
		qkv:    span(p, v[1], v[3]),
		out:    p.Of(v[4]),
		norm2:  p.Of(v[5]),
		gateUp: span(p, v[6], v[7]),
		down:   p.Of(v[8]),
	}
}

// span is the window from the first to the last of adjacent views.
func span(p *tensor.Slab, first, last tensor.View) []float32 {
	return p.Data[first.Offset : last.Offset+last.Len]
}

func embedOf(p *tensor.Slab) []float32 { return p.Of(p.Views[0]) }

func (c Config) normOf(p *tensor.Slab) []float32 {
	return p.Of(p.Views[1+c.Layers*layerTensors])
}

func (c Config) headOf(p *tensor.Slab) []float32 {
	if c.Tied {
		return embedOf(p)
	}
	return p.Of(p.Views[2+c.Layers*layerTensors])
}
