package trainer

import (
	"io"

	"atoll/optimizer"
	"atoll/tensor"
	"atoll/tensor/llama"
)

// inner is an inner optimizer with its state for one model.
type inner interface {
	// step changes params by one step along grads times a factor at learning rate lr.
	step(params, grads []float32, lr float64, factor float32)
	// steps is how many steps the state has seen.
	steps() int64
	// reader and load are SaveState and LoadState of a Trainer.
	reader() io.Reader
	load(io.Reader) error
}

// newInner makes the optimizer that the config names, before its first step.
func (c OptimConfig) newInner(views []tensor.View, precision tensor.Precision) inner {
	moments := c.momentsIn(precision)
	if c.Name == optimizer.NameMuon {
		return newMuon(c.muon(), views, precision, moments)
	}
	return newAdamW(c.AdamW, views, moments)
}

// momentsIn is what moments are kept in where products have a precision: in bfloat16 too, if they follow gradients fast enough for it.
func (c OptimConfig) momentsIn(products tensor.Precision) tensor.Precision {
	keeps := []float64{c.AdamW.Beta1, c.AdamW.Beta2}
	if c.Name == optimizer.NameMuon {
		keeps = append(keeps, c.Momentum)
	}
	for _, keep := range keeps {
		if !optimizer.MayBeNarrow(keep) {
			return tensor.F32
		}
	}
	return products
}

func (c OptimConfig) muon() optimizer.Muon {
	return optimizer.Muon{Momentum: c.Momentum, AdamW: c.AdamW}
}

type adamW struct {
	optimizer.AdamW
	decay []optimizer.Span
	state *optimizer.AdamState
}

func newAdamW(o optimizer.AdamW, views []tensor.View, moments tensor.Precision) *adamW {
	return &adamW{AdamW: o, decay: matrices(views), state: optimizer.NewAdamState(length(views), moments)}
}

func (a *adamW) step(params, grads []float32, lr float64, factor float32) {
	a.StepScaled(params, grads, a.decay, a.state, lr, factor)
}
func (a *adamW) steps() int64           { return a.state.Step }
func (a *adamW) reader() io.Reader      { return a.state.Reader() }
func (a *adamW) load(r io.Reader) error { return a.state.Load(r) }

type muon struct {
	optimizer.Muon
	blocks []optimizer.Block
	state  *optimizer.MuonState
	work   *optimizer.Workspace
}

func newMuon(o optimizer.Muon, views []tensor.View, precision, moments tensor.Precision) *muon {
	b := blocks(views)
	work := optimizer.NewWorkspace(b)
	work.Precision = precision
	return &muon{Muon: o, blocks: b, state: optimizer.NewMuonState(b, moments), work: work}
}

func (m *muon) step(params, grads []float32, lr float64, factor float32) {
	m.StepScaled(params, grads, m.blocks, m.state, m.work, lr, factor)
}
func (m *muon) steps() int64           { return m.state.Step }
func (m *muon) reader() io.Reader      { return m.state.Reader() }
func (m *muon) load(r io.Reader) error { return m.state.Load(r) }

// length is how many values the views have together.
func length(views []tensor.View) int {
	n := 0
	for _, v := range views {
		n += v.Len
	}
	return n
}

// matrices returns the spans of the tensors with two dimensions, neighbours
// joined: weight decay leaves the gains of norms alone.
func matrices(views []tensor.View) []optimizer.Span {
	var spans []optimizer.Span
	for _, v := range views {
		if len(v.Shape) != 2 {
			continue
		}
		spans = optimizer.AppendSpan(spans, optimizer.Span{Offset: v.Offset, Len: v.Len})
	}
	return spans
}

// blocks says what Muon does with each tensor: it takes the matrices inside
// layers. Query, key and value are three matrices, for each has a purpose of its
// own.
func blocks(views []tensor.View) []optimizer.Block {
	var list []optimizer.Block
	for _, v := range views {
		b := optimizer.Block{Span: optimizer.Span{Offset: v.Offset, Len: v.Len}, Decay: len(v.Shape) == 2}
		if llama.Hidden(v) {
			b.Rows = v.Shape[0]
		}
		list = append(list, b)
	}
	return list
}
