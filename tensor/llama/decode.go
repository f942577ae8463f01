package llama

import (
	"fmt"

	"atoll/tensor"
	"atoll/tensor/nn"
)

// Decoder reads one text token by token. It keeps the keys and values of the
// tokens so far, so that the next one costs one row through the model and not
// the whole text again.
type Decoder struct {
	config Config
	params *tensor.Slab
	rope   *nn.Rope
	layers []cache
	length int // tokens read

	x      []float32 // [Hidden] residual stream
	norm   []float32 // [Hidden]
	rstd   []float32 // [1]
	qkv    []float32 // [qkvDim]
	att    []float32 // [Hidden]
	scores []float32 // [Context]
	gateUp []float32 // [2*Intermediate]
	act    []float32 // [Intermediate]
	logits []float32 // [Vocab]
}

// cache is what one block remembers.
type cache struct {
	keys   []float32 // [Context, kvDim] after rotation
	values []float32 // [Context, kvDim]
}

// NewDecoder returns a decoder that has read nothing. It reads p and never
// writes it.
func NewDecoder(c Config, p *tensor.Slab) *Decoder {
	d := &Decoder{
		config: c,
		params: p,
		rope:   nn.NewRope(c.Context, c.headDim(), c.RopeTheta),
		layers: make([]cache, c.Layers),
		x:      make([]float32, c.Hidden),
		norm:   make([]float32, c.Hidden),
		rstd:   make([]float32, 1),
		qkv:    make([]float32, c.qkvDim()),
		att:    make([]float32, c.Hidden),
		scores: make([]float32, c.Context),
		gateUp: make([]float32, 2*c.Intermediate),
		act:    make([]float32, c.Intermediate),
		logits: make([]float32, c.Vocab),
	}
	for l := range d.layers {
		d.layers[l] = cache{make([]float32, c.Context*c.kvDim()), make([]float32, c.Context*c.kvDim())}
	}
	return d
}

// Len is the number of tokens read; there is room for Context.
func (d *Decoder) Len() int { return d.length }

// Reset forgets all that was read.
func (d *Decoder) Reset() { d.length = 0 }

// Next reads a token and scores each token as its successor. The result,
// [Vocab], is valid until the next call. It panics on a token outside [0, Vocab)
// and when Context tokens have been read.
func (d *Decoder) Next(token int32) []float32 {
	c := d.config
	if d.length == c.Context {
		panic(fmt.Sprintf("llama: Decoder has read its context of %d tokens: Reset it first", c.Context))
	}
	c.checkTokens([]int32{token})
	nn.Embedding(d.x, embedOf(d.params), []int32{token}, c.Hidden)
	for l := range d.layers {
		w := layerOf(d.params, l)
		d.attention(w, &d.layers[l])
		d.mlp(w)
	}
	d.length++
	nn.RMSNorm(d.norm, d.rstd, d.x, c.normOf(d.params), 1, c.Hidden, c.NormEps)
	nn.Linear(tensor.F32, d.logits, d.norm, c.headOf(d.params), 1, c.Hidden, c.Vocab, false)
	return d.logits
}

// attention adds a block's attention at the present position to x.
func (d *Decoder) attention(w layerWeights, a *cache) {
	c, kv := d.config, d.config.kvDim()
	nn.RMSNorm(d.norm, d.rstd, d.x, w.norm1, 1, c.Hidden, c.NormEps)
	nn.Linear(tensor.F32, d.qkv, d.norm, w.qkv, 1, c.Hidden, c.qkvDim(), false)
	d.rope.ApplyAt(d.qkv, d.length, c.Heads+c.KVHeads)
	copy(a.keys[d.length*kv:(d.length+1)*kv], d.qkv[c.Hidden:])
	copy(a.values[d.length*kv:(d.length+1)*kv], d.qkv[c.Hidden+kv:])
	nn.AttentionRow(d.att, d.qkv[:c.Hidden], a.keys, a.values, d.scores, d.length+1, c.attention(1, c.Context))
	nn.Linear(tensor.F32, d.x, d.att, w.out, 1, c.Hidden, c.Hidden, true)
}

// mlp adds a block's feed-forward layer to x.
func (d *Decoder) mlp(w layerWeights) {
	c := d.config
	nn.RMSNorm(d.norm, d.rstd, d.x, w.norm2, 1, c.Hidden, c.NormEps)
	nn.Linear(tensor.F32, d.gateUp, d.norm, w.gateUp, 1, c.Hidden, 2*c.Intermediate, false)
	nn.SwiGLU(d.act, d.gateUp, 1, c.Intermediate)
	nn.Linear(tensor.F32, d.x, d.act, w.down, 1, c.Intermediate, c.Hidden, true)
}
