package trainer

import (
	"fmt"
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
	// encode and decode are State and SetState of a Builtin.
	encode() ([]byte, error)
	decode([]byte) error
	// reader and load are SaveState and LoadState of a Trainer.
	reader() io.Reader
	load(io.Reader) error
}

// newInner makes the optimizer that the config names, before its first step.
func (c OptimConfig) newInner(views []tensor.View, precision tensor.Precision) inner {
	if c.Name == optimizer.NameMuon {
		return newMuon(c.muon(), views, precision)
	}
	return newAdamW(c.AdamW, views)
}

func (c OptimConfig) muon() optimizer.Muon {
	return optimizer.Muon{Momentum: c.Momentum, AdamW: c.AdamW}
}

type adamW struct {
	optimizer.AdamW
	params int
	decay  []optimizer.Span
	state  *optimizer.AdamState
}

func newAdamW(o optimizer.AdamW, views []tensor.View) *adamW {
	n := length(views)
	return &adamW{AdamW: o, params: n, decay: matrices(views), state: optimizer.NewAdamState(n)}
}

func (a *adamW) step(params, grads []float32, lr float64, factor float32) {
	a.StepScaled(params, grads, a.decay, a.state, lr, factor)
}
func (a *adamW) steps() int64            { return a.state.Step }
func (a *adamW) encode() ([]byte, error) { return a.state.MarshalBinary() }
func (a *adamW) reader() io.Reader       { return a.state.Reader() }
func (a *adamW) load(r io.Reader) error  { return a.state.Load(r) }

func (a *adamW) decode(b []byte) error {
	var next optimizer.AdamState
	if err := next.UnmarshalBinary(b); err != nil {
		return err
	}
	if len(next.M) != a.params {
		return otherModel(len(next.M), a.params)
	}
	*a.state = next
	return nil
}

type muon struct {
	optimizer.Muon
	blocks []optimizer.Block
	state  *optimizer.MuonState
	work   *optimizer.Workspace
}

func newMuon(o optimizer.Muon, views []tensor.View, precision tensor.Precision) *muon {
	b := blocks(views)
	work := optimizer.NewWorkspace(b)
	work.Precision = precision
	return &muon{Muon: o, blocks: b, state: optimizer.NewMuonState(b), work: work}
}

func (m *muon) step(params, grads []float32, lr float64, factor float32) {
	m.StepScaled(params, grads, m.blocks, m.state, m.work, lr, factor)
}
func (m *muon) steps() int64            { return m.state.Step }
func (m *muon) encode() ([]byte, error) { return m.state.MarshalBinary() }
func (m *muon) reader() io.Reader       { return m.state.Reader() }
func (m *muon) load(r io.Reader) error  { return m.state.Load(r) }

func (m *muon) decode(b []byte) error {
	var next optimizer.MuonState
	if err := next.UnmarshalBinary(b); err != nil {
		return err
	}
	if !next.Fits(m.blocks) {
		return otherModel(len(next.M), len(m.state.M))
	}
	*m.state = next
	return nil
}

func otherModel(got, want int) error {
	return fmt.Errorf("it is of %d parameters, the model has %d: it belongs to another run, start without it", got, want)
}

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
