// Package llama is the decoder-only transformer in the arithmetic and with the
// parameter names of Hugging Face's LlamaForCausalLM: RMSNorm before each
// block, rotary positions, causal grouped-query attention, SwiGLU, no biases.
//
// Parameters and gradients are slabs made by NewParams: one flat vector, every
// tensor a named window. A Model owns the activations of one batch and is used
// by one goroutine at a time; inside, work is spread by tensor.Parallel.
package llama

import (
	"fmt"
	"math"

	"atoll/tensor"
)

// Config is the shape of a model. All sizes count elements.
type Config struct {
	Vocab        int     // number of tokens
	Hidden       int     // width of the residual stream
	Layers       int     // number of transformer blocks
	Heads        int     // query heads; Hidden/Heads is even
	KVHeads      int     // key and value heads; divides Heads
	Intermediate int     // width of the feed-forward layer
	Context      int     // positions in a training window
	RopeTheta    float64 // base of the rotary frequencies
	NormEps      float64 // added to the mean square in RMSNorm
	Tied         bool    // the head is the embedding, transposed
}

// The shapes of the shared benchmark.
var (
	Tiny  = sized(256, 128, 4, 4, 4, 344, 128)
	Small = sized(256, 384, 6, 6, 6, 1024, 256)
	Base  = sized(4096, 768, 12, 12, 12, 2048, 256)
)

func sized(vocab, hidden, layers, heads, kvHeads, intermediate, context int) Config {
	return Config{vocab, hidden, layers, heads, kvHeads, intermediate, context, 10000, 1e-5, true}
}

// Named returns the config called "tiny", "small" or "base".
func Named(name string) (Config, bool) {
	switch name {
	case "tiny":
		return Tiny, true
	case "small":
		return Small, true
	case "base":
		return Base, true
	}
	return Config{}, false
}

// maxSize bounds each size of a config that may come from a peer's genesis, so
// that products of three sizes stay within an int64.
const maxSize = 1 << 20

// Validate names the first field that no model can have.
func (c Config) Validate() error {
	sizes := []struct {
		name  string
		value int
	}{
		{"Vocab", c.Vocab}, {"Hidden", c.Hidden}, {"Layers", c.Layers}, {"Heads", c.Heads},
		{"KVHeads", c.KVHeads}, {"Intermediate", c.Intermediate}, {"Context", c.Context},
	}
	for _, s := range sizes {
		if s.value < 1 || s.value > maxSize {
			return fmt.Errorf("model %s is %d: must be from 1 to %d", s.name, s.value, maxSize)
		}
	}
	switch {
	case c.Hidden%c.Heads != 0 || c.Hidden/c.Heads%2 != 0:
		return fmt.Errorf("model Heads is %d: must divide Hidden %d into heads of even size", c.Heads, c.Hidden)
	case c.Heads%c.KVHeads != 0:
		return fmt.Errorf("model KVHeads is %d: must divide Heads %d", c.KVHeads, c.Heads)
	case !(c.RopeTheta >= 1) || math.IsInf(c.RopeTheta, 0):
		return fmt.Errorf("model RopeTheta is %v: must be at least 1 and finite", c.RopeTheta)
	case !(c.NormEps > 0) || math.IsInf(c.NormEps, 0):
		return fmt.Errorf("model NormEps is %v: must be above 0 and finite", c.NormEps)
	}
	return nil
}

func (c Config) headDim() int { return c.Hidden / c.Heads }
func (c Config) kvDim() int   { return c.KVHeads * c.headDim() }
func (c Config) qkvDim() int  { return c.Hidden + 2*c.kvDim() }

// Names of the tensors, as LlamaForCausalLM has them.
const (
	embedName = "model.embed_tokens.weight"
	normName  = "model.norm.weight"
	headName  = "lm_head.weight"
)

func layerName(layer int, part string) string {
	return fmt.Sprintf("model.layers.%d.%s.weight", layer, part)
}

// Specs lists every tensor in slab order; matrices are [out, in]. Query, key
// and value follow each other, and so do gate and up: the model multiplies by
// each such group as one matrix.
func (c Config) Specs() []tensor.Spec {
	specs := []tensor.Spec{{Name: embedName, Shape: []int{c.Vocab, c.Hidden}}}
	for l := range c.Layers {
		add := func(part string, shape ...int) {
			specs = append(specs, tensor.Spec{Name: layerName(l, part), Shape: shape})
		}
		add("input_layernorm", c.Hidden)
		add("self_attn.q_proj", c.Hidden, c.Hidden)
		add("self_attn.k_proj", c.kvDim(), c.Hidden)
		add("self_attn.v_proj", c.kvDim(), c.Hidden)
		add("self_attn.o_proj", c.Hidden, c.Hidden)
		add("post_attention_layernorm", c.Hidden)
		add("mlp.gate_proj", c.Intermediate, c.Hidden)
		add("mlp.up_proj", c.Intermediate, c.Hidden)
		add("mlp.down_proj", c.Hidden, c.Intermediate)
	}
	specs = append(specs, tensor.Spec{Name: normName, Shape: []int{c.Hidden}})
	if !c.Tied {
		specs = append(specs, tensor.Spec{Name: headName, Shape: []int{c.Vocab, c.Hidden}})
	}
	return specs
}

// Hidden reports whether a tensor is a matrix inside a layer, which maps one
// hidden vector to another: neither embedding nor head nor the gains of a norm.
func Hidden(v tensor.View) bool {
	return len(v.Shape) == 2 && v.Name != embedName && v.Name != headName
}

// Params is the number of parameters.
func (c Config) Params() int {
	n := 0
	for _, s := range c.Specs() {
		size := 1
		for _, d := range s.Shape {
			size *= d
		}
		n += size
	}
	return n
}

// NewParams allocates a slab of zeros for the parameters or their gradients.
func NewParams(c Config) *tensor.Slab { return tensor.NewSlab(c.Specs()) }
