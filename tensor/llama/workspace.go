package llama

import (
	"atoll/tensor"
	"atoll/tensor/nn"
)

// chunkFloats bounds the logits held at once: 4 MiB, which fits a core's share
// of the last-level cache. Without the bound a large vocabulary would make the
// logits the largest buffer of all.
const chunkFloats = 1 << 20

// lineFloats rounds buffers up to a 64-byte cache line.
const lineFloats = 16

// arena hands out windows of one allocation. With no memory behind it, it only
// counts.
type arena struct {
	memory []float32
	used   int
}

func (a *arena) take(n int) []float32 {
	from := a.used
	a.used += (n + lineFloats - 1) / lineFloats * lineFloats
	if a.memory == nil {
		return nil
	}
	return a.memory[from : from+n : from+n]
}

// layerState is what one block keeps from the forward for the backward pass.
type layerState struct {
	in     []float32 // [rows, Hidden] residual stream
	norm1  []float32 // [rows, Hidden]
	rstd1  []float32 // [rows]
	qkv    []float32 // [rows, qkvDim] after rotation
	lse    []float32 // [batch, Heads, context]
	att    []float32 // [rows, Hidden]
	mid    []float32 // [rows, Hidden] residual stream after attention
	norm2  []float32 // [rows, Hidden]
	rstd2  []float32 // [rows]
	gateUp []float32 // [rows, 2*Intermediate]
}

func (a *arena) layer(c Config, rows int) layerState {
	return layerState{
		in:     a.take(rows * c.Hidden),
		norm1:  a.take(rows * c.Hidden),
		rstd1:  a.take(rows),
		qkv:    a.take(rows * c.qkvDim()),
		lse:    a.take(rows * c.Heads),
		att:    a.take(rows * c.Hidden),
		mid:    a.take(rows * c.Hidden),
		norm2:  a.take(rows * c.Hidden),
		rstd2:  a.take(rows),
		gateUp: a.take(rows * 2 * c.Intermediate),
	}
}

// workspace is every float buffer of a model.
type workspace struct {
	layers  []layerState
	out     []float32 // [rows, Hidden] residual stream after the last block
	normed  []float32 // [rows, Hidden]
	rstd    []float32 // [rows]
	logits  []float32 // [chunk, Vocab], then their gradient
	act     []float32 // [rows, Intermediate]
	scratch []float32 // attention, one part per thread

	dx      []float32 // [rows, Hidden] gradient of the residual stream
	dnorm   []float32 // [rows, Hidden] of a norm's or the attention's output
	dqkv    []float32 // [rows, qkvDim]
	dact    []float32 // [rows, Intermediate]
	dgateUp []float32 // [rows, 2*Intermediate]
}

func (a *arena) workspace(c Config, batch int) workspace {
	rows := batch * c.Context
	w := workspace{layers: make([]layerState, c.Layers)}
	for l := range w.layers {
		w.layers[l] = a.layer(c, rows)
	}
	w.out = a.take(rows * c.Hidden)
	w.normed = a.take(rows * c.Hidden)
	w.rstd = a.take(rows)
	w.logits = a.take(chunkRows(c, rows) * c.Vocab)
	w.act = a.take(rows * c.Intermediate)
	w.scratch = a.take(tensor.Threads() * c.attention(batch, c.Context).Scratch())
	w.dx = a.take(rows * c.Hidden)
	w.dnorm = a.take(rows * c.Hidden)
	w.dqkv = a.take(rows * c.qkvDim())
	w.dact = a.take(rows * c.Intermediate)
	w.dgateUp = a.take(rows * 2 * c.Intermediate)
	return w
}

// chunkRows is how many rows of logits are computed at once.
func chunkRows(c Config, rows int) int {
	return min(rows, max(1, chunkFloats/c.Vocab))
}

func (c Config) attention(batch, context int) nn.AttentionShape {
	return nn.AttentionShape{Batch: batch, Context: context, Heads: c.Heads, KVHeads: c.KVHeads, HeadDim: c.headDim()}
}

// WorkspaceBytes is the memory that NewModel allocates for batch windows, with
// the present number of threads. Parameters and gradients come on top, 4 bytes
// each per parameter.
func (c Config) WorkspaceBytes(batch int) int64 {
	var a arena
	a.workspace(c, batch)
	const perRow = 8 + 4 + 4 // a loss, an input and a target
	rotary := 6 * c.Context * c.headDim()
	return 4*int64(a.used) + int64(perRow*batch*c.Context) + int64(rotary)
}
